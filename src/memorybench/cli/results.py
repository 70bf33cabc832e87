"""Shows a run, reads shards as one run, compares providers, and lists failed trials."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from typing import TYPE_CHECKING

from memorybench.core.errors import BadInput
from memorybench.reporting.typed_commands import as_typed
from memorybench.suites.registry import suite_of
from memorybench.suites.stored_run import read_run

from .arguments import add_json, add_list, add_results, folders, place_words, positive, refuse_flags, split_list
from .output import print_paged, print_wrapped
from .show import run_names, show_command

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from memorybench.suites.stored_run import StoredRun

_PAGE = 20
_SECONDS_BETWEEN_LOOKS = 0.5


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        metavar="RUN",
        nargs="*",
        help="Show this run, FOLDER/RUN or `latest`; without RUN, list all. Several runs are read as shards of one",
    )
    add_list(parser, "--compare", metavar="PROVIDER", help="Compare these providers; see `memorybench compare`")
    parser.add_argument("--benchmark", metavar="NAME", help="With --compare: use only this benchmark")
    parser.add_argument(
        "--measure", metavar="NAME", help="With --compare: use this measure, such as recall@5 (default: the main ones)"
    )
    parser.add_argument("--watch", action="store_true", help="Follow a run in progress until it ends (default: latest)")
    parser.add_argument("--failures", action="store_true", help="List wrong and failed trials one by one")
    add_list(parser, "--providers", metavar="NAME", help="With --failures: show only these providers")
    add_list(parser, "--question-type", metavar="TYPE", help="With --failures: show only these types of questions")
    add_list(
        parser,
        "--reason",
        metavar="REASON",
        help="With --failures: show only these reasons, such as not-retrieved; --failures lists those of the run",
    )
    parser.add_argument(
        "--limit", metavar="N", type=positive, help="With --failures: show at most N (default: 20; all with --json)"
    )
    parser.add_argument("--offset", metavar="N", type=int, help="With --failures: skip the first N (default: 0)")
    add_results(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    _check_flags(args)
    if args.compare is not None:
        from .compare import compare_providers

        return compare_providers(args)
    if args.watch:
        return _watch(args)
    if not args.runs:
        from .runs import show_runs

        return show_runs(args)
    return _show(args)


def _show(args: argparse.Namespace) -> int:
    from memorybench.reporting.json_document import to_json
    from memorybench.reporting.terminal import console, show_header, show_report, whole_in
    from memorybench.suites.gate import report_of

    with read_run(args.runs, folders(args)) as stored:
        if args.failures:
            _show_failures(args, stored)
        elif args.json:
            sys.stdout.write(to_json(report_of(stored)))
        else:
            out, report = console(), report_of(stored)
            show_header(out, "MEMORYBENCH RESULTS", suite_of(stored.run).facts(stored.runs))
            show_report(out, report, whole_in(stored.folder / stored.run.id), place_words(args))
            for check in report.document.get("checks", ()):
                print_wrapped(check["text"])
    return 0


def _watch(args: argparse.Namespace) -> int:
    """Show the progress of a run that another process performs until it ends, then its results."""
    from memorybench.journal.lock import is_held
    from memorybench.journal.places import journal_of, results_folder
    from memorybench.reporting.progress import read_progress
    from memorybench.reporting.progress_view import follow_progress
    from memorybench.suites.run_list import find_run
    from memorybench.suites.stored_run import LATEST
    from memorybench.suites.suite import resume_command

    if len(args.runs) > 1:
        raise BadInput("--watch", f"{len(args.runs)} runs are named", expected="one run")
    name = args.runs[0] if args.runs else LATEST
    # a run that has just been started has a lock, but may not be recorded yet
    own = next((place for folder in folders(args) if is_held(place := folder / name)), None)
    if own is None:
        row = find_run(name, folders(args))
        own = row.folder / row.run.id
    results = results_folder(own.parent, args.journal)
    journal = journal_of(results)
    with follow_progress(lambda: read_progress(own)):
        while is_held(own) or journal.is_locked(own.name):  # processes on other machines have the lock in the database
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    run = find_run(own.name, [results]).run
    code = _show(argparse.Namespace(**{**vars(args), "runs": [own.name], "results": [own.parent]}))
    if run.status == "complete":
        return code
    ended = "stopped before its end" if run.finished else "was killed"
    command = as_typed(resume_command(suite_of(run).command_of(run), results, own.name))
    print(f"Run {own.name} {ended}; continue with: {command}", file=sys.stderr if args.json else sys.stdout)
    return 1


def _check_flags(args: argparse.Namespace) -> None:
    """Raise BadInput for a flag that would have no effect."""
    is_comparison = args.compare is not None
    lists_failures = args.failures and not is_comparison and (args.runs or args.watch)
    if args.watch and is_comparison:
        raise BadInput("--watch", "is not valid with --compare", remedy="compare when the run has ended")
    if args.failures and not lists_failures:
        remedy = "use `memorybench results RUN --failures`"
        raise BadInput("--failures", "is valid only with a run, and not with --compare", remedy=remedy)
    if not lists_failures:
        flags = ("--providers", "--question-type", "--reason", "--limit", "--offset")
        refuse_flags(args, flags, "a run and --failures", "use it with `memorybench results RUN --failures`")
    if not is_comparison:
        remedy = "use it with `memorybench results RUN --compare PROVIDER PROVIDER`"
        refuse_flags(args, ("--benchmark", "--measure"), "--compare", remedy)


def _show_failures(args: argparse.Namespace, stored: StoredRun) -> None:
    from memorybench.reporting.terminal import show_case, show_table
    from memorybench.suites.failures import failure_case, failure_document, find_failures, reason_table

    found = find_failures(stored, split_list(args.providers), split_list(args.question_type), split_list(args.reason))
    failures = found.trials
    first = max(args.offset or 0, 0)
    last = len(failures) if args.json and args.limit is None else first + (args.limit or _PAGE)
    page = failures[first:last]
    commands = [show_command(args, stored, outcome.trial) for outcome in page]
    if args.json:
        rows = [failure_document(one, stored.case(one), shown) for one, shown in zip(page, commands, strict=True)]
        json.dump(rows, sys.stdout, indent=2)
        print()
        return

    def draw(out: Console) -> None:
        if not failures:
            out.print("No failures.")
            return
        show_table(out, reason_table(found))
        if hidden := sorted(found.without_wrong & {one.trial.subject.name for one in failures}):
            out.print(f"–: wrong results of baselines are listed with --providers {' '.join(hidden)}", markup=False)
        out.print()
        for outcome, command in zip(page, commands, strict=True):
            show_case(out, failure_case(outcome, stored.case(outcome), command))
        if first > 0 or last < len(failures):
            out.print(
                f"Showing {first + 1}–{first + len(page)} of {len(failures)}."
                if page
                else f"Only {len(failures)} failures."
            )
        if last < len(failures):
            out.print(f"Next: {_next_page(args, run_names(args, stored), last)}", soft_wrap=True)

    print_paged(draw)


def _next_page(args: argparse.Namespace, runs: Iterable[str], offset: int) -> str:
    words = ["memorybench", "results", *runs, "--failures", "--offset", str(offset)]
    words += ["--limit", str(args.limit)] if args.limit else []
    for flag, values in (("--providers", args.providers), ("--question-type", args.question_type)):
        words += [flag, *values] if values else []
    words += ["--reason", *args.reason] if args.reason else []
    return as_typed(shlex.join([*words, *place_words(args)]))
