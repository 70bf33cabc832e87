"""Writes a run to a file or standard output: rows for scripts, tables for papers, JUnit XML, logs for Inspect."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from memorybench.core.errors import BadInput
from memorybench.suites.stored_run import read_run
from memorybench.text.quantities import quantity
from memorybench.text.sanitize import escape_json, sanitize

from .arguments import add_results, folders

if TYPE_CHECKING:
    from memorybench.core.report_sections import Table
    from memorybench.suites.stored_run import StoredRun


FORMATS = ("csv", "json", "jsonl", "parquet", "latex", "markdown", "junit", "inspect")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        metavar="RUN",
        nargs="+",
        help="Export this run, FOLDER/RUN or `latest`; several are read as shards of one",
    )
    parser.add_argument("--format", choices=FORMATS, default="csv", help="Choose the format (default: csv)")
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        help="Write to this file, or folder for inspect (default: standard output; required for parquet, inspect)",
    )
    parser.add_argument(
        "--table",
        metavar="TITLE|N",
        help="With latex and markdown: write only this table, by its title or number, counting from 1 (default: all)",
    )
    add_results(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.reporting.export import layout, rows, write

    if args.table is not None and args.format not in ("latex", "markdown"):
        raise BadInput(
            "--table", f"not supported with --format {args.format}", expected="--format latex or --format markdown"
        )
    output = None if str(args.output) == "-" else args.output
    with read_run(args.runs, folders(args)) as stored:
        if args.format == "inspect":
            return _inspect(stored, output)
        if args.format in ("latex", "markdown", "junit"):
            text = _junit(stored) if args.format == "junit" else _tables(stored, args.format, args.table)
            with _open_output(output, is_json=False) as file:
                file.write(text)
            if output is not None:
                print(f"{args.format} written to {output}")
            return 0
        columns = layout(stored.outcomes())
        found = rows(stored.trials(), columns)
        if args.format == "parquet":
            from memorybench.reporting.parquet import write_parquet

            if output is None:
                raise BadInput(
                    "--output",
                    "missing: --format parquet writes a binary file",
                    remedy="name a file, such as --output r.parquet",
                )
            written = write_parquet(found, columns, output)
        else:
            with _open_output(output, is_json=args.format != "csv") as file:
                written = write(found, columns, args.format, file)
    if output is not None:
        print(f"{quantity(written, 'row')} written to {output}")
    return 0


@contextmanager
def _open_output(path: Path | None, *, is_json: bool) -> Iterator[TextIO]:
    """Yield the file, or standard output in UTF-8. On a terminal, control characters are removed (in JSON, escaped)."""
    from memorybench.files.writing import replacing
    from memorybench.wiring.output import CleanedStream

    if path is not None:
        with replacing(path) as file:
            yield file
        return
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(encoding="utf-8")  # as in a file
    if not sys.stdout.isatty():
        yield sys.stdout
        return
    yield cast(TextIO, CleanedStream(sys.stdout, escape_json if is_json else sanitize))


def _junit(stored: StoredRun) -> str:
    from memorybench.suites.gate import run_checks
    from memorybench.suites.junit import to_junit

    thresholds, gate = run_checks(stored)
    checks = [*thresholds, *(gate.checks if gate else ())]
    return to_junit(" + ".join(run.id for run in stored.runs), stored.trials(), checks)


def _tables(stored: StoredRun, form: str, wanted: str | None) -> str:
    from memorybench.core.report_sections import Table
    from memorybench.reporting.latex import to_latex
    from memorybench.reporting.markdown import tables_to_markdown
    from memorybench.suites.gate import report_of

    sections = report_of(stored).sections
    tables = [section for section in sections if isinstance(section, Table)]
    if wanted is not None:
        tables = [_find_table(wanted, tables)]
    return to_latex(tables) if form == "latex" else tables_to_markdown(tables)


def _find_table(wanted: str, tables: Sequence[Table]) -> Table:
    """Return the table with this number, counting from 1, or with a title that begins with this text."""
    if wanted.isdecimal() and 1 <= int(wanted) <= len(tables):
        return tables[int(wanted) - 1]
    exact = [table for table in tables if table.title.lower() == wanted.lower()]
    matches = exact or [table for table in tables if table.title.lower().startswith(wanted.lower())]
    if len(matches) != 1:
        titles = ", ".join(f"{number} {table.title}" for number, table in enumerate(tables, 1))
        raise BadInput(
            "--table",
            f'no table "{wanted}"' if not matches else f'{len(matches)} tables match "{wanted}"',
            expected=f"one of: {titles}",
        )
    return matches[0]


def _inspect(stored: StoredRun, folder: Path | None) -> int:
    from memorybench.suites.inspect_log import write_logs

    if folder is None:
        raise BadInput(
            "--output", "missing: --format inspect writes several files", remedy="name a folder, such as --output logs"
        )
    try:
        written = write_logs(stored.parts, stored.summary, folder)
    except OSError as error:
        raise BadInput(
            str(folder), f"the folder cannot be written ({error.strerror})", remedy="name another folder"
        ) from error
    print(f"{len(written)} logs written to {folder}; read them with: inspect view --log-dir {folder}")
    return 0
