"""Writes one row a question, with the figures and the texts, to a file or to standard output."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .shared import add_results, folders


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", help="a run; several are read as shards of one")
    parser.add_argument("--format", choices=("csv", "json", "jsonl"), default="csv", help="default: csv")
    parser.add_argument("--output", metavar="FILE", type=Path, help="default: standard output")
    add_results(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.compose.results import find
    from memorybench.reporting.export import rows, write
    from memorybench.vocabulary.errors import BadInput

    with find(args.runs, folders(args)) as found:
        wanted = (row for run, at, outcome in found.settled() for row in rows(run, [(at, outcome)]))
        if args.output is None or str(args.output) == "-":
            write(wanted, args.format, sys.stdout)
            return 0
        draft = args.output.with_name(f".{args.output.name}.part")
        try:
            with draft.open("w", encoding="utf-8", newline="") as file:
                written = write(wanted, args.format, file)
            draft.replace(args.output)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise BadInput(
                str(args.output), f"can not be written ({error.strerror})", remedy="name another file"
            ) from error
    print(f"{written} rows written to {args.output}")
    return 0
