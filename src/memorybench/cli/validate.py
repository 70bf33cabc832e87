"""Checks a config, a dataset or a results file, and changes nothing."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.suites.registry import suites
from memorybench.text.quantities import quantity


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        type=Path,
        help="Check this YAML, JSON, JSONL, CSV (.gz), .db or results folder",
    )
    parser.add_argument(
        "--journal", metavar="URL", help="Check the rows of this Postgres database, postgresql://USER@HOST/DATABASE"
    )


def run(args: argparse.Namespace) -> int:
    if args.journal is not None:
        from memorybench.journal.places import journal_of, results_folder
        from memorybench.wiring.validation import describe_journal

        journal = journal_of(results_folder(Path(), args.journal))
        print(f"{journal.name}: {describe_journal(journal)}")
    elif not args.files:
        raise BadInput("FILE", "missing", expected="files to check, or --journal URL")
    code = 0
    for path in args.files:
        try:
            print(f"{path}: {describe_file(path)}")
        except BadInput as error:
            if len(args.files) == 1:
                raise
            code = 2
            print(error)
    return code


def describe_file(path: Path) -> str:
    from memorybench.files.json_stream import first_members
    from memorybench.files.loading import load
    from memorybench.journal.sqlite import FILE_NAME
    from memorybench.wiring.validation import describe_config, describe_database, is_config, is_database

    if path.is_dir():
        if not (path / FILE_NAME).exists():
            raise BadInput(
                str(path),
                "is a folder without results",
                expected="a file, or a folder with results.db",
                remedy="name the files in it",
            )
        path = path / FILE_NAME
    if is_database(path):
        return describe_database(path)
    if is_config(path):
        return f"valid {describe_config(load(path))}"
    described = _described_by_suite(path, first_members(path))  # a large dataset is not loaded as a whole
    if described is not None:
        return described
    value = load(path).value
    rows = value if isinstance(value, list) else [value]
    first = rows[0] if rows and isinstance(rows[0], dict) else {}
    described = _described_by_suite(path, first)
    if described is not None:
        return described
    size = quantity(len(value), "item") if isinstance(value, list) else "one value"
    return f"well-formed, {quantity(len(value), 'key')}" if isinstance(value, dict) else f"well-formed, {size}"


def _described_by_suite(path: Path, first: Mapping[str, Any]) -> str | None:
    """Return a suite's description of a file that begins with this row; None if no suite recognises it."""
    described = (suite.describe_file(path, first) for suite in suites())
    return next((text for text in described if text is not None), None)
