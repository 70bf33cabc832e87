"""Shows a run, reads shards as one, compares arms, and lists what was missed."""

from __future__ import annotations

import argparse
import json
import sys

from .shared import add_json, add_list, add_results, flat, folders


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="*", help="a run; several are read as shards of one")
    add_list(parser, "--compare", metavar="PROVIDER", help="compare these, question by question")
    parser.add_argument("--benchmark", metavar="NAME", help="with --compare: on which benchmark")
    parser.add_argument("--measure", metavar="NAME", help="with --compare: by which measure (default: the headline)")
    parser.add_argument("--failures", action="store_true", help="show what was missed, one by one")
    add_list(parser, "--providers", metavar="NAME", help="with --failures: only of these")
    add_results(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    if args.compare:
        return _compare(args)
    if not args.runs:
        return _list(args)
    from memorybench.reporting.failures import failures, show_failures
    from memorybench.reporting.terminal import console, show_header
    from memorybench.wiring.results import find

    with find(args.runs, folders(args)) as found:
        if args.failures:
            outcomes = failures((outcome for _, _, outcome in found.settled()), flat(args.providers))
            if args.json:
                json.dump([outcome.model_dump(mode="json") for outcome in outcomes], sys.stdout, indent=2)
                print()
            else:
                show_failures(console(), outcomes)
            return 0
        summary = found.summary()
        if args.json:
            from memorybench.reporting.documents import as_json

            sys.stdout.write(as_json(found.document(summary)))
        else:
            out = console()
            show_header(out, "MEMORYBENCH RESULTS", found.facts())
            found.suite.show(out, found, summary)
    return 0


def _list(args: argparse.Namespace) -> int:
    from memorybench.reporting.terminal import console, show_runs
    from memorybench.wiring.results import overview

    rows = overview(folders(args))
    if args.json:
        print(json.dumps([{**row.run.model_dump(mode="json"), "counts": row.counts} for row in rows], indent=2))
    else:
        show_runs(console(), [(row.run, row.counts) for row in rows])
    return 0


def _compare(args: argparse.Namespace) -> int:
    from memorybench.reporting.comparison import pairs
    from memorybench.reporting.terminal import console, headline, show_comparison
    from memorybench.wiring.results import comparable, measure_named

    subjects = tuple(dict.fromkeys(flat(args.compare)))
    with comparable(subjects, args.benchmark, args.runs, folders(args)) as (found, benchmark):
        results = [
            result
            for subject, one in found.items()
            for result in one.summary().overall(benchmark)
            if result.subject == subject
        ]
        measure = measure_named(args.measure, results) if args.measure else headline(results)
        outcomes = (
            outcome
            for subject, one in found.items()
            for _, _, outcome in one.settled()
            if outcome.trial.subject.name == subject
        )
        compared = pairs(outcomes, subjects, benchmark, results[0].measure(measure))
        if args.json:
            print(json.dumps([pair.model_dump(mode="json") for pair in compared], indent=2))
        else:
            show_comparison(console(), benchmark, results, measure, [pair.sentence() for pair in compared])
    return 0
