"""Writes a run whose rows come from a file, such as a bundle, into a new journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from .checksums import CHECKSUMS, crc
from .places import journal_of
from .rows import Run
from .run_reader import check_new
from .run_writer import run_statements
from .writer import Statement, Writer

ImportedRow = tuple[str, Mapping[str, Any]]
"""The name of a table, and one row of it as a mapping from column to value."""


def write_imported(folder: Path, run: Run, rows: Iterable[ImportedRow]) -> None:
    """Write a run and its rows to the journal in `folder`, in one transaction."""
    check_new(folder, run.id)
    with closing(Writer(journal_of(folder))) as writer:
        writer.write_now(_statements(run, rows))


def _statements(run: Run, rows: Iterable[ImportedRow]) -> Iterator[Statement]:
    yield from run_statements(run)
    for table, row in rows:
        columns = CHECKSUMS[table]["crc"]
        values = [row[column] for column in columns]
        marks = ",".join("?" * (len(columns) + 1))
        # a file from others may repeat a row: that is reported, and the first one counts
        sql = f"INSERT INTO {table} ({', '.join(columns)}, crc) VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608
        yield sql, (*values, crc(*values))
