"""Calibrates a judge: its verdicts against human labels, and what its errors do to a score."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .shared import add_json, positive

if TYPE_CHECKING:
    from memorybench.metrics.intervals import Interval
    from memorybench.wiring.calibration import Calibration


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    about = "confusion matrix, Cohen's kappa, sensitivity and specificity against human labels"
    calibrate = actions.add_parser("calibrate", help=about, description=about, allow_abbrev=False)
    calibrate.add_argument(
        "labels",
        metavar="LABELS",
        type=Path,
        help="JSONL or CSV: question, answer, response, label (yes or no), and question_type and verdict if known",
    )
    calibrate.add_argument("--judge-model", metavar="MODEL", help="who judges, where the rows have no verdict")
    calibrate.add_argument("--judge-prompt", metavar="TEXT|FILE", help="in the place of the named prompts")
    calibrate.add_argument("--benchmark", metavar="NAME", help="use the judge prompts of this benchmark")
    calibrate.add_argument(
        "--score", metavar="X", type=_score, help="a score by this judge to correct: 0.71, or 355/500 for its interval"
    )
    calibrate.add_argument("--concurrency", metavar="N", type=positive, default=10, help="calls at once (default: 10)")
    calibrate.add_argument("--output", metavar="DIR", type=Path, default=Path("results"), help="default: ./results")
    calibrate.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    add_json(calibrate)


def run(args: argparse.Namespace) -> int:
    calibration = _calibration(args)
    figures = _figures(calibration, args.score)
    if args.json:
        print(json.dumps(_document(args.labels.name, calibration, figures), indent=2))
    else:
        _show(calibration, figures)
    if calibration.status == "interrupted":
        return 130
    return 0 if calibration.counts["scored"] == sum(calibration.counts.values()) else 1


def _calibration(args: argparse.Namespace) -> Calibration:
    from memorybench.core.errors import BadInput
    from memorybench.wiring.calibration import calibrate, compared, read_labels
    from memorybench.wiring.judging import judge_prompts
    from memorybench.wiring.models import JUDGE_VARIABLE, NO_MODEL, choose_model

    labels = read_labels(args.labels)
    if labels.unlabelled:
        print(f"{args.labels}: {labels.unlabelled} rows without a label are left out", file=sys.stderr)
    if labels.complete:
        if args.judge_model:
            raise BadInput("--judge-model", f"{args.labels} holds verdicts already", remedy="leave out one of the two")
        return compared(labels)
    if args.judge_model in (None, NO_MODEL):
        raise BadInput(str(args.labels), "holds no verdicts", remedy="name a judge with --judge-model")
    config = None
    if args.benchmark:
        from memorybench.catalog.catalog import Catalog

        config = Catalog(Path()).benchmark(args.benchmark)
    prompts = judge_prompts(config, args.judge_prompt)
    chosen = choose_model(args.judge_model, JUDGE_VARIABLE, [])
    assert chosen is not None  # a model that was named is chosen, or refused
    return calibrate(labels, chosen, prompts, args.output, concurrency=args.concurrency)


def _figures(calibration: Calibration, score: tuple[float, int | None] | None) -> dict[str, tuple[Interval, int]]:
    """Each with the number of responses it rests on."""
    from memorybench.metrics.agreement import agreement, corrected, kappa, sensitivity, specificity

    confusion = calibration.confusion
    figures = {
        "agreement": (agreement(confusion), confusion.n),
        "kappa": (kappa(confusion), confusion.n),
        "sensitivity": (sensitivity(confusion), confusion.rights),
        "specificity": (specificity(confusion), confusion.wrongs),
    }
    if score is not None:
        figures["corrected_score"] = (corrected(*score, confusion), confusion.n)
    return figures


def _document(labels: str, calibration: Calibration, figures: Mapping[str, tuple[Interval, int]]) -> dict[str, Any]:
    planned = sum(calibration.counts.values())
    measures = [{"name": name, **found._asdict(), "n": n, "planned": planned} for name, (found, n) in figures.items()]
    return {
        "run_id": calibration.run_id,
        "suite": "calibration",
        "status": calibration.status,
        "counts": {"planned": planned, **calibration.counts},
        "confusion": calibration.confusion.model_dump(),
        "results": [{"benchmark": labels, "subject": calibration.judge, "group": {}, "measures": measures}],
    }


def _show(calibration: Calibration, figures: Mapping[str, tuple[Interval, int]]) -> None:
    counts, cells = calibration.counts, calibration.confusion
    print(f"Judge: {calibration.judge}")
    print(f"\n{'':14}{'judge: yes':>12}{'judge: no':>12}")
    print(f"{'people: yes':14}{cells.both_yes:>12}{cells.person_yes:>12}")
    print(f"{'people: no':14}{cells.judge_yes:>12}{cells.both_no:>12}\n")
    for name, (found, n) in figures.items():
        print(f"{name.replace('_', ' '):16}{_spelled(found)}  n = {n}")
    others = ", ".join(f"{number} {status}" for status, number in counts.items() if status != "scored")
    print(f"\n{sum(counts.values())} labelled = {counts['scored']} scored, {others}")
    if calibration.run_id:
        print(f"Recorded as run {calibration.run_id}: asked for again, it pays for nothing twice")


def _spelled(found: Interval) -> str:
    if found.value is None:
        return "undefined"
    ends = "" if found.low is None or found.high is None else f" [{found.low:.3f}, {found.high:.3f}]"
    return f"{found.value:.3f}{ends}"


def _score(text: str) -> tuple[float, int | None]:
    """`0.71`, or `355/500`, which tells how sure it is, too."""
    hits, slash, n = text.partition("/")
    try:
        score = int(hits) / int(n) if slash else float(hits)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(f"{text!r} is no score; expected 0.71 or 355/500") from None
    if not 0 <= score <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and 1")
    return score, int(n) if slash else None
