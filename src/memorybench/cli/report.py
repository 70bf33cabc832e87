"""Writes the report files of a run again, from its journal."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from .arguments import add_json, add_results, folders

_PAGES = (".html", ".htm")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        metavar="RUN",
        nargs="+",
        help="Report this run, FOLDER/RUN or `latest`; several are read as shards of one",
    )
    parser.add_argument(
        "--format", choices=("all", "json", "markdown", "html"), default="all", help="Choose the format (default: all)"
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        type=Path,
        help="Write to this folder or, with --format html, .html file (default: the run's folder; required for shards)",
    )
    add_results(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.charts.page import html_report
    from memorybench.core.errors import BadInput, JournalError
    from memorybench.files.writing import replacing
    from memorybench.reporting.report_files import FORMATS, write_reports
    from memorybench.suites.finished import rewrite_reports
    from memorybench.suites.gate import report_of
    from memorybench.suites.html_report import is_installed
    from memorybench.suites.stored_run import read_run

    is_page = args.output is not None and args.output.suffix.lower() in _PAGES
    if is_page and args.format != "html":
        raise BadInput(
            "--output",
            f"{args.output} is the name of a web page",
            expected="a folder",
            remedy="name a folder, or add --format html",
        )
    formats = {"all": tuple(FORMATS), "html": ()}.get(args.format, (args.format,))
    with read_run(args.runs, folders(args)) as stored:
        if len(stored.parts) > 1 and args.output is None:
            raise BadInput(
                "--output",
                "missing; several shards have no common folder",
                remedy="add --output FOLDER for their report",
            )
        report = report_of(stored)
        wants_html = args.format == "html" or (args.format == "all" and is_installed())
        html = html_report(stored, report) if wants_html else None
        if args.output is None:
            files = rewrite_reports(stored, report, html, formats)
        else:
            try:
                if is_page:
                    with replacing(args.output) as file:
                        file.write(html or "")
                files = [args.output] if is_page else write_reports(report, args.output, formats, html)
            except JournalError as error:
                raise BadInput("--output", str(error.__cause__), remedy="name another folder") from error
        run_id = stored.summary.run_id
    if args.json:
        print(json.dumps({"run_id": run_id, "files": [str(file) for file in files]}, indent=2))
    else:
        print(f"Report of {run_id} written to {', '.join(map(str, files))}")
    return 0
