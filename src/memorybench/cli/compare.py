"""Compares runs, or providers of runs, question by question."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from .arguments import add_json, add_list, add_results, folders, positive, split_list

if TYPE_CHECKING:
    from memorybench.core.report_sections import Report
    from memorybench.suites.run_comparison import RunComparison


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sides",
        metavar="SIDE",
        nargs="+",
        help="Compare these: RUN, FOLDER/RUN, RUN:PROVIDER, or PROVIDER in its latest run; of one RUN, its providers",
    )
    add_list(
        parser,
        "--measure",
        metavar="NAME",
        help="Test these measures, such as recall@5; `all` for every one except time and cost (default: the main ones)",
    )
    parser.add_argument("--benchmark", metavar="NAME", help="Compare on this benchmark (default: all that both have)")
    parser.add_argument(
        "--only",
        choices=("wins", "losses", "changed"),
        help="List questions that the first side wins, loses, or either",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=positive,
        help="With --only: list at most N questions (default: 20; with --json: all)",
    )
    parser.add_argument(
        "--offset", metavar="N", type=int, default=0, help="With --only: skip the first N questions (default: 0)"
    )
    parser.add_argument(
        "--format", choices=("terminal", "markdown"), default="terminal", help="Choose the format (default: terminal)"
    )
    add_results(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.core.errors import BadInput
    from memorybench.reporting.json_document import to_json
    from memorybench.reporting.markdown import to_markdown
    from memorybench.suites.run_comparison import compare_runs

    if args.offset < 0:
        raise BadInput("--offset", f"invalid value {args.offset}", expected="0 or more")
    compared = compare_runs(args.sides, folders(args), benchmark=args.benchmark, measures=split_list(args.measure))
    report = compared.report(args.only, args.limit, args.offset)
    if args.json:
        sys.stdout.write(to_json(report))
    elif args.format == "markdown":
        sys.stdout.write(to_markdown(report))
    else:
        _show(compared, report)
    return 0


def compare_providers(args: argparse.Namespace) -> int:
    """Run `results --compare`, an old form of `compare`: compare providers of the given runs, or of the latest ones."""
    from memorybench.core.errors import BadInput
    from memorybench.suites.run_comparison import compare_runs

    names = split_list(args.compare)
    if len(names) < 2:
        raise BadInput("--compare", f"only {len(names)} providers are named", expected="two or more")
    measures = split_list([args.measure] if args.measure else None)
    try:
        compared = compare_runs(names, folders(args), among=args.runs, benchmark=args.benchmark, measures=measures)
    except BadInput as error:
        if error.where not in names:
            raise
        raise BadInput(
            "--compare",
            f"{error.where}: {error.problem}",
            remedy=error.remedy or "memorybench compare RUN:PROVIDER RUN:PROVIDER",
        ) from error
    if args.json:
        print(json.dumps([pair.old_document() for pair in compared.comparisons], indent=2))
    else:
        _show(compared, compared.report())
    return 0


def _show(compared: RunComparison, report: Report) -> None:
    from memorybench.reporting.terminal import console, show_header, show_report

    out = console()
    show_header(out, "MEMORYBENCH COMPARE", compared.facts())
    show_report(out, report, whole_in="a wider terminal or --format markdown")
