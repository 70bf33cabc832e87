"""Calibrates a judge: compares its verdicts with human labels, and corrects a score for its errors."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorybench.text.quantities import quantity

from .arguments import add_action, add_concurrency, add_json
from .output import interval_text

if TYPE_CHECKING:
    from memorybench.metrics.intervals import Interval
    from memorybench.suites.calibration import Calibration


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    calibrate = add_action(actions, "calibrate", "compare a judge with human labels")
    calibrate.add_argument(
        "labels",
        metavar="LABELS",
        type=Path,
        help="Read responses from this JSONL, JSON or CSV file (question, answer, response, label: yes or no)",
    )
    calibrate.add_argument(
        "--judge-model", metavar="MODEL", help="Judge with this model (required, unless rows have a verdict)"
    )
    calibrate.add_argument("--judge-prompt", metavar="TEXT|FILE", help="Replace the judge prompts (file or text)")
    calibrate.add_argument(
        "--benchmark",
        metavar="NAME",
        help="Use the judge prompts of this benchmark (default: bundled ones by question type)",
    )
    calibrate.add_argument(
        "--score",
        metavar="X",
        type=_score,
        help="Correct this score, measured with the judge, for its errors (0.71 or 355/500)",
    )
    add_concurrency(calibrate)
    calibrate.add_argument(
        "--output",
        metavar="DIR",
        type=Path,
        default=Path("results"),
        help="Write results to this folder (default: ./results)",
    )
    calibrate.add_argument(
        "--journal",
        metavar="URL",
        help="Store rows in this Postgres database, postgresql://USER@HOST/DATABASE (default: a SQLite file)",
    )
    add_json(calibrate)


def run(args: argparse.Namespace) -> int:
    calibration = _calibration(args)
    figures = _figures(calibration, args.score)
    if args.json:
        print(json.dumps(_document(args.labels.name, calibration, figures), indent=2))
    else:
        _show(calibration, figures)
    if calibration.problem:
        print(f"memorybench: {calibration.problem}; start the service, then repeat the command", file=sys.stderr)
    if calibration.status == "interrupted":
        return 130
    return 0 if calibration.counts["scored"] == calibration.planned else 1


def _calibration(args: argparse.Namespace) -> Calibration:
    from memorybench.core.errors import BadInput
    from memorybench.journal.places import results_folder
    from memorybench.suites.calibration import calibrate, compare_verdicts, read_labels
    from memorybench.suites.judge_prompts import judge_prompts
    from memorybench.wiring.live import LiveWiring

    labels = read_labels(args.labels)
    if labels.unlabelled:
        rows = quantity(labels.unlabelled, "row")
        print(f"{args.labels}: skipped {rows} without a label", file=sys.stderr)
    if labels.complete:
        if args.judge_model:
            raise BadInput(
                "--judge-model",
                f"{args.labels} already has verdicts",
                remedy="leave out --judge-model, or remove the verdicts",
            )
        return compare_verdicts(labels)
    if args.judge_model in (None, "none"):
        raise BadInput(
            str(args.labels), "the file has no verdicts of a judge", remedy="add --judge-model MODEL to get them"
        )
    wiring = LiveWiring()
    config = wiring.catalog.benchmark(args.benchmark) if args.benchmark else None
    prompts = judge_prompts(config, args.judge_prompt)
    results = results_folder(args.output, args.journal)
    return calibrate(labels, wiring.model(args.judge_model), prompts, results, wiring, args.concurrency)


def _figures(calibration: Calibration, score: tuple[float, int | None] | None) -> dict[str, tuple[Interval, int]]:
    """Return each figure by name, with the number of responses that it is computed from."""
    from memorybench.metrics.agreement import agreement, correct_for_judge, kappa, sensitivity, specificity

    confusion = calibration.confusion
    figures = {
        "agreement": (agreement(confusion), confusion.n),
        "kappa": (kappa(confusion), confusion.n),
        "sensitivity": (sensitivity(confusion), confusion.rights),
        "specificity": (specificity(confusion), confusion.wrongs),
    }
    if score is not None:
        figures["corrected_score"] = (correct_for_judge(*score, confusion), confusion.n)
    return figures


def _document(labels: str, calibration: Calibration, figures: Mapping[str, tuple[Interval, int]]) -> dict[str, Any]:
    planned = calibration.planned
    measures = [{"name": name, **found._asdict(), "n": n, "planned": planned} for name, (found, n) in figures.items()]
    return {
        "run_id": calibration.run_id,
        "suite": "calibration",
        "status": calibration.status,
        "counts": {"planned": planned, **calibration.counts},
        "confusion": calibration.confusion.model_dump(),
        **(calibration.costs.plain() if calibration.costs else {}),
        "results": [{"benchmark": labels, "subject": calibration.judge, "group": {}, "measures": measures}],
    }


def _show(calibration: Calibration, figures: Mapping[str, tuple[Interval, int]]) -> None:
    counts, cells = calibration.counts, calibration.confusion
    print(f"Judge: {calibration.judge}")
    print(f"\n{'':14}{'judge: yes':>12}{'judge: no':>12}")
    print(f"{'people: yes':14}{cells.both_yes:>12}{cells.person_yes:>12}")
    print(f"{'people: no':14}{cells.judge_yes:>12}{cells.both_no:>12}\n")
    for name, (found, n) in figures.items():
        print(f"{name.replace('_', ' '):16}{interval_text(found) or 'undefined'}  n = {n}")
    others = [f"{number} {status}" for status, number in counts.items() if status != "scored"]
    others += [f"{pending} pending"] if (pending := calibration.planned - sum(counts.values())) else []
    print(f"\n{calibration.planned} labelled = {counts['scored']} scored, {', '.join(others)}")
    if calibration.costs:
        print(f"cost: {calibration.costs.text()}")
    if calibration.run_id:
        print(f"Recorded as run {calibration.run_id}; repeating the command reuses its verdicts")


def _score(text: str) -> tuple[float, int | None]:
    """Parse a score such as `0.71` or `355/500`; return the share and the number of answers, or None for `0.71`."""
    hits, slash, n = text.partition("/")
    try:
        score = int(hits) / int(n) if slash else float(hits)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(f"invalid score {text!r}; expected 0.71 or 355/500") from None
    if not 0 <= score <= 1:
        raise argparse.ArgumentTypeError(f"the score {text!r} is not between 0 and 1")
    return score, int(n) if slash else None
