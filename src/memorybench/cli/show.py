"""Shows one case of a run: what was asked, found, answered and judged."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

from .arguments import add_json, add_results, folders, place_words, positive
from .output import print_paged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from memorybench.core.report_sections import Section
    from memorybench.core.trials import Trial
    from memorybench.suites.case_view import CaseView
    from memorybench.suites.stored_run import StoredRun


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", metavar="RUN", nargs="+", help="Read this run, FOLDER/RUN or `latest`; several are shards of one"
    )
    parser.add_argument(
        "case", metavar="CASE", help="Show the question or case with this id, or unique beginning of an id"
    )
    parser.add_argument("--provider", metavar="NAME", help="Show this provider, model, store or agent (default: all)")
    parser.add_argument(
        "--benchmark", metavar="NAME", help="Look in this benchmark only; needed if several have the id"
    )
    parser.add_argument("--variant", metavar="NAME", help="Show this variant, such as a phase of a scenario")
    parser.add_argument("--repeat", metavar="N", type=positive, help="Show this repeat, counting from 1 (default: all)")
    parser.add_argument("--full", action="store_true", help="Show long texts and all memories in full")
    add_results(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.reporting.json_document import as_json
    from memorybench.suites.case_view import case_document, find_case
    from memorybench.suites.registry import suite_of
    from memorybench.suites.stored_run import read_run

    with read_run(args.runs, folders(args)) as stored:
        view = find_case(
            stored,
            args.case,
            provider=args.provider,
            benchmark=args.benchmark,
            variant=args.variant,
            repeat=args.repeat,
            full=args.full,
        )
        if args.json:
            sys.stdout.write(as_json(case_document(view)))
        elif len(view.trials) == 1:
            _show_trial(view, suite_of(stored.run).case_sections(stored.run, view.trials[0]))
        else:
            _show_trials(view, show_command(args, stored, view.trials[0].outcome.trial))
    return 0


def show_command(args: argparse.Namespace, stored: StoredRun, trial: Trial) -> str:
    """Return the command that shows one trial of a run."""
    from memorybench.reporting.typed_commands import as_typed

    words = ["memorybench", "show", *run_names(args, stored), trial.case_id]
    words += ["--provider", trial.subject.name]
    words += ["--benchmark", trial.benchmark] if len(stored.spec.get("benchmarks", ())) > 1 else []
    words += ["--variant", trial.variant] if trial.variant else []
    words += ["--repeat", str(trial.repeat)] if stored.spec.get("repeats", 1) > 1 else []
    return as_typed(shlex.join([*words, *place_words(args)]))


def run_names(args: argparse.Namespace, stored: StoredRun) -> list[str]:
    """Return how a suggested command with the same --results names the runs: RUN, FOLDER/RUN or a bundle."""
    searched = folders(args)
    bundles: dict[str, str] = getattr(args, "bundles", {})
    names = (run.id if one.folder in searched else str(one.folder / run.id) for one, run in stored.parts)
    return list(dict.fromkeys(bundles.get(name, name) for name in names))


def _show_trial(view: CaseView, own: Sequence[Section] | None) -> None:
    from memorybench.core.report_sections import Provenance
    from memorybench.reporting.terminal import show_header, show_report
    from memorybench.suites.case_sections import trial_report

    report = trial_report(view, view.trials[0], own)
    facts = next(section.facts for section in report.sections if isinstance(section, Provenance))

    def draw(out: Console) -> None:
        show_header(out, "MEMORYBENCH CASE", facts)
        show_report(out, report, "a wider terminal")

    print_paged(draw)


def _show_trials(view: CaseView, command: str) -> None:
    from memorybench.reporting.terminal import show_hints, show_report
    from memorybench.suites.case_sections import trials_report

    def draw(out: Console) -> None:
        show_report(out, trials_report(view), "a wider terminal")
        show_hints(out, {command: "one of them, with all steps"})

    print_paged(draw)
