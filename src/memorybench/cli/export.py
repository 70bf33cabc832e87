"""Writes one row per question and provider, or per test case, to a file or standard output; or logs for Inspect."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .arguments import add_results, folders

if TYPE_CHECKING:
    from memorybench.suites.stored_run import StoredRun


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", help="Export this run; several are read as shards of one")
    parser.add_argument(
        "--format", choices=("csv", "json", "jsonl", "inspect"), default="csv", help="Choose the format (default: csv)"
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        help="Write to this file, or folder for inspect (default: stdout)",
    )
    add_results(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.files.writing import replacing
    from memorybench.reporting.export import rows, write
    from memorybench.suites.registry import open_run

    with open_run(args.runs, folders(args)) as stored:
        if args.format == "inspect":
            return _inspect(stored, args.output)
        wanted = (row for run, at, outcome in stored.settled() for row in rows(run, [(at, outcome)]))
        if args.output is None or str(args.output) == "-":
            if reconfigure := getattr(sys.stdout, "reconfigure", None):
                reconfigure(encoding="utf-8")  # as in a file
            write(wanted, args.format, sys.stdout)
            return 0
        with replacing(args.output) as file:
            written = write(wanted, args.format, file)
    print(f"{written} rows written to {args.output}")
    return 0


def _inspect(stored: StoredRun, folder: Path | None) -> int:
    from memorybench.core.errors import BadInput
    from memorybench.suites.inspect_log import write_logs

    if folder is None or str(folder) == "-":
        raise BadInput("--output", "--format inspect writes several files", expected="a folder, e.g. --output logs")
    try:
        written = write_logs(stored.parts, stored.summary, folder)
    except OSError as error:
        raise BadInput(str(folder), f"cannot be written ({error.strerror})", remedy="name another folder") from error
    print(f"{len(written)} logs written to {folder}; read them with: inspect view --log-dir {folder}")
    return 0
