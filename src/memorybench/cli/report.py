"""Writes the report files of a run again, from its journal."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from .arguments import add_json, add_results, folders


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", metavar="RUN", nargs="+", help="Report this run, or FOLDER/RUN; several are read as shards of one"
    )
    parser.add_argument(
        "--format", choices=("all", "json", "markdown"), default="all", help="Choose the format (default: all)"
    )
    parser.add_argument("--output", metavar="DIR", type=Path, help="Write to this folder (default: the run's own)")
    add_results(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.core.errors import BadInput, JournalError
    from memorybench.reporting.report_files import FORMATS, write_reports
    from memorybench.suites.gate import report_of
    from memorybench.suites.registry import open_run
    from memorybench.suites.running import rewrite_reports
    from memorybench.suites.suite import RunPlace

    formats = tuple(FORMATS) if args.format == "all" else (args.format,)
    with open_run(args.runs, folders(args)) as stored:
        if len(stored.parts) > 1 and args.output is None:
            raise BadInput("--output", "missing; the shards have a folder each", expected="a folder for their report")
        report = report_of(stored)
        if args.output is None:
            files = rewrite_reports(report, RunPlace(stored.folder, stored.run.id), formats)
        else:
            try:
                files = write_reports(report, args.output, formats)
            except JournalError as error:
                raise BadInput("--output", str(error.__cause__), remedy="name another folder") from error
        run_id = stored.summary.run_id
    if args.json:
        print(json.dumps({"run_id": run_id, "files": [str(file) for file in files]}, indent=2))
    else:
        print(f"Report of {run_id} written to {', '.join(map(str, files))}")
    return 0
