"""What all verbs that run something have in common: flags, the run itself, what is shown of it, and the exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .shared import add_json, add_list, dollars, positive

if TYPE_CHECKING:
    from memorybench.suites.stored_run import StoredRun
    from memorybench.suites.summary import Summary
    from memorybench.wiring.running import Finished, Runnable
    from memorybench.wiring.thresholds import Threshold

RESULTS = "results"
_ANOTHER = "start a new run; with --reuse RUN it takes over every step that is still the same"


def add_run(parser: argparse.ArgumentParser, *, output: str = RESULTS) -> None:
    parser.add_argument("--allow-code", action="store_true", help="run code that configs name")
    parser.add_argument(
        "--concurrency", metavar="N", type=positive, help="calls at once (default: 10, or as the resumed run was begun)"
    )
    parser.add_argument("--output", metavar="DIR", type=Path, default=Path(output), help=f"default: ./{output}")
    parser.add_argument("--run-id", metavar="ID", help="name the run yourself")
    parser.add_argument("--resume", metavar="RUN", help="go on with a run: what is scored is not done again")
    parser.add_argument("--reuse", metavar="RUN", help="a new run that takes over the steps of an old one")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    parser.add_argument("--budget", metavar="DOLLARS", type=dollars, help="stop paying beyond that")
    parser.add_argument(
        "--threshold", metavar="NAME=VALUE", action="append", default=[], help="exit 3 where a figure misses it"
    )
    parser.add_argument(
        "--threshold-on", choices=("value", "lower"), default="value", help="hold the estimate or its lower end to it"
    )
    add_list(parser, "--config-dir", metavar="DIR", help="more folders with configs")
    add_json(parser)


def refuse_changes(args: argparse.Namespace, flags: Mapping[str, str]) -> None:
    """With --resume, nothing that the run depends on may be given: by argument name, the flag."""
    from memorybench.core.errors import BadInput

    given = [flag for name, flag in flags.items() if getattr(args, name) not in (None, False, [])]
    if given:
        raise BadInput("--resume", f"goes on with what was started, {given[0]} can not change it", remedy=_ANOTHER)


def chosen_id(args: argparse.Namespace) -> str:
    from memorybench.files.names import safe_run_id
    from memorybench.wiring.running import new_run_id

    if args.resume is not None:
        return str(args.resume)
    return safe_run_id(args.run_id, "--run-id") if args.run_id else new_run_id()


def run_and_show(
    args: argparse.Namespace,
    prepared: Runnable,
    *,
    title: str,
    command: str,
    thresholds: Sequence[Threshold] = (),
    exempt: Sequence[str] = (),
    hints: Callable[[Summary], Mapping[str, str]] = lambda summary: {},
    formats: Sequence[str] = ("json", "markdown"),
    missed: Callable[[StoredRun, Summary], bool] = lambda stored, summary: False,
) -> int:
    """Performs a run, shows it, and returns the exit code. `missed` tells whether a check was missed: exit 3."""
    from memorybench.reporting.json_document import to_json
    from memorybench.reporting.progress import progress
    from memorybench.reporting.terminal import console, show_header
    from memorybench.wiring.running import run_prepared
    from memorybench.wiring.suites import find

    finished = run_prepared(
        prepared,
        args.output,
        chosen_id(args),
        resuming=args.resume is not None,
        concurrency=args.concurrency,
        budget=args.budget,
        formats=formats,
        announce=lambda facts: None if args.json else show_header(console(), title, facts),
        watching=progress,
    )
    if args.json:
        sys.stdout.write(to_json(finished.report))
    else:
        _show(args, finished, command, hints, formats)
    code = _exit_code(args, finished, thresholds, exempt)
    with find([finished.summary.run_id], [args.output]) as stored:
        return 3 if code == 0 and missed(stored, finished.summary) else code


def _show(
    args: argparse.Namespace,
    finished: Finished,
    command: str,
    hints: Callable[[Summary], Mapping[str, str]],
    formats: Sequence[str],
) -> None:
    from memorybench.reporting.report_files import FORMATS
    from memorybench.reporting.terminal import console, show_hints, show_report

    out, summary = console(), finished.summary
    show_report(out, finished.report)
    folder = args.output / summary.run_id
    out.print(f"\nResults saved to: {folder}/ ({', '.join(FORMATS[name][0] for name in reversed(formats))})")
    if finished.ending.interrupted or summary.status == "partial":
        output = f" --output {args.output}" if args.output != _default_output(args) else ""
        budget = " --budget DOLLARS" if args.budget is not None else ""
        out.print(f"Go on with: {command} --resume {summary.run_id}{output}{budget}")
        return
    told = hints(summary)
    if told:
        out.print("What to try next:")
        show_hints(out, told)


def _default_output(args: argparse.Namespace) -> Path:
    return Path(getattr(args, "usual_output", RESULTS))


def results_flag(args: argparse.Namespace) -> str:
    """How a command that reads finds this run: nothing to say where it looks there anyway."""
    return "" if args.output == Path(RESULTS) else f" --results {args.output}"


def _exit_code(
    args: argparse.Namespace, finished: Finished, thresholds: Sequence[Threshold], exempt: Sequence[str]
) -> int:
    from memorybench.wiring.thresholds import hold

    if finished.ending.interrupted:
        return 130
    summary = finished.summary
    held = hold(summary, thresholds, args.threshold_on, exempt)
    for line in held:
        print(line.line, file=sys.stderr if args.json else sys.stdout)
    if any(line.missed for line in held):
        return 3
    counts = summary.counts
    return 1 if counts["failed"] or counts["unscored"] or summary.status != "complete" else 0
