"""Shows a run, merges shards, compares providers, and lists what was missed."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from .arguments import add_json, add_list, add_results, folders, split_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memorybench.core.measures import Metric
    from memorybench.suites.stored_run import StoredRun


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", metavar="RUN", nargs="*", help="Show this run, `latest`, or list all; several are shards of one"
    )
    add_list(parser, "--compare", metavar="PROVIDER", help="Compare these providers, question by question")
    parser.add_argument("--benchmark", metavar="NAME", help="Compare on this benchmark")
    parser.add_argument("--measure", metavar="NAME", help="Compare by this measure (default: the main one)")
    parser.add_argument("--failures", action="store_true", help="Show what was missed, one by one")
    add_list(parser, "--providers", metavar="NAME", help="With --failures: show only these providers")
    add_results(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    if args.compare is not None:
        return _compare(args)
    if not args.runs:
        from .runs import show_runs

        return show_runs(args)
    from memorybench.reporting.json_document import to_json
    from memorybench.reporting.terminal import console, show_header, show_report
    from memorybench.suites.registry import open_run, suite_of

    with open_run(args.runs, folders(args)) as stored:
        if args.failures:
            _show_failures(args, stored)
        elif args.json:
            sys.stdout.write(to_json(suite_of(stored.run).report(stored)))
        else:
            out = console()
            show_header(out, "MEMORYBENCH RESULTS", suite_of(stored.run).facts(stored.runs))
            show_report(out, suite_of(stored.run).report(stored))
    return 0


def _show_failures(args: argparse.Namespace, stored: StoredRun) -> None:
    from memorybench.reporting.terminal import console, show_cases
    from memorybench.suites.report_parts import failure_case, is_failure

    providers = split_list(args.providers)
    outcomes = (
        outcome
        for outcome in stored.outcomes()
        if is_failure(outcome) and (not providers or outcome.trial.subject.name in providers)
    )
    if args.json:
        json.dump([outcome.model_dump(mode="json") for outcome in outcomes], sys.stdout, indent=2)
        print()
    else:
        show_cases(console(), map(failure_case, outcomes), "No failures.")


def _compare(args: argparse.Namespace) -> int:
    from memorybench.core.errors import BadInput
    from memorybench.core.report_sections import Column, Table, text_column
    from memorybench.reporting.terminal import console, show_table
    from memorybench.suites.comparison import compare_subjects
    from memorybench.suites.registry import suite_of
    from memorybench.suites.stored_run import open_comparable
    from memorybench.suites.summary import find_measure, headline
    from memorybench.text.sanitize import sanitize

    subjects = tuple(dict.fromkeys(split_list(args.compare)))
    if len(subjects) < 2:
        raise BadInput("--compare", f"{len(subjects)} named", expected="two or more providers")

    def metrics(stored: StoredRun) -> Sequence[Metric]:
        return suite_of(stored.run).metrics(stored)

    with open_comparable(subjects, args.benchmark, args.runs, folders(args), metrics) as (runs, benchmark):
        results = [
            result
            for subject, stored in runs.items()
            for result in stored.summary.overall(benchmark)
            if result.subject == subject
        ]
        measure = find_measure(args.measure, results) if args.measure else headline(results)
        outcomes = (
            outcome
            for subject, stored in runs.items()
            for outcome in stored.outcomes()
            if outcome.trial.subject.name == subject
        )
        pairs = compare_subjects(outcomes, subjects, benchmark, results[0].measure(measure))
        if args.json:
            print(json.dumps([pair.document() for pair in pairs], indent=2))
            return 0
        rows = tuple((result.subject, result.measure(measure), result.measure(measure)) for result in results)
        columns = (text_column("provider"), Column(f"{measure} [95%]", "interval"), Column("n", "n"))
        out = console()
        show_table(out, Table(f"COMPARISON: {benchmark}", columns, rows))
        for pair in pairs:
            out.print(sanitize(pair.sentence()))
    return 0
