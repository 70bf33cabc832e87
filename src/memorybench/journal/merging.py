"""Writes a new run from rows that exist already, in one transaction: those of several runs, or those of a bundle."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime, timedelta
from itertools import chain, count
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from .checksums import CHECKSUMS, checked_rows, insert
from .contract import Row
from .lock import LOCK_NAME
from .places import journal_of
from .rows import TRIED_AGAIN, Run
from .run_changes import Fault, tag_statement
from .run_reader import RunReader, check_new
from .run_writer import run_statements
from .writer import Statement, Writer

_PERFORMED_TWICE = "performed by another part of the run, too, whose result counts"
_WITHOUT_RESULT = ("failed", "blocked")
"""Statuses of trials that have no scores, and that a resumed run performs again."""
ImportedRow = tuple[str, Mapping[str, Any]]
"""The name of a table, and one row of it as a mapping from column to value."""


def write_merged(
    folder: Path,
    run: Run,
    parts: Sequence[tuple[RunReader, str]],
    tags: Sequence[str] = (),
    fault: Fault = None,
    *,
    first_steps: Collection[str] = (),
    first_notes: Collection[str] = (),
) -> None:
    """Write the new run `run` with the rows of other runs, which do not change; `parts` are pairs of reader and run id.

    Of a step that several parts asked for, the first result counts. An outcome that rests on another result, or on
    having none, is left out, and the run is then partial. Steps with a name in `first_steps`, and notes with a kind
    in `first_notes`, are taken from the first part only.

    Raise JournalError at a row that does not match its checksum. If the process is killed, either the whole run is
    written or nothing of it.
    """
    check_new(folder, run.id)
    own = folder / run.id
    new = [place for place in (own, *own.parents) if not place.exists()]
    lock = journal_of(folder).lock(run.id)
    try:
        with closing(Writer(journal_of(folder), fault=fault)) as writer:
            writer.write_now(_statements(run, parts, tags, first_steps, first_notes))
    except BaseException:
        with suppress(OSError):  # a folder is not empty
            (own / LOCK_NAME).unlink()
            for place in new:
                place.rmdir()
        raise
    finally:
        lock.release()


def write_imported(folder: Path, run: Run, rows: Iterable[ImportedRow]) -> None:
    """Write a run with rows that come from a file, such as a bundle, in one transaction."""
    check_new(folder, run.id)
    # a file from others may repeat a row: that is reported, and the first one counts
    inserts = (_insert(table, row, keep=True) for table, row in rows)
    with closing(Writer(journal_of(folder))) as writer:
        writer.write_now(chain(run_statements(run), inserts))


def _insert(table: str, row: Mapping[str, Any], *, keep: bool = False) -> Statement:
    return insert(table, [row[column] for column in CHECKSUMS[table]["crc"]], keep=keep)


def _statements(
    run: Run,
    parts: Sequence[tuple[RunReader, str]],
    tags: Sequence[str],
    first_steps: Collection[str],
    first_notes: Collection[str],
) -> Iterator[Statement]:
    yield from run_statements(run)
    yield from (tag_statement(run.id, tag) for tag in tags)
    rows = _CopiedRows(run.id)
    copied = [_Part(run_reader, part) for run_reader, part in parts]
    # all steps first: a part that could not read a reply must not drop the result that a later part has
    for place, one in enumerate(copied):
        with one.run_reader.errors():
            yield from rows.steps_of(one, first_steps if place else ())
    for place, one in enumerate(copied):
        with one.run_reader.errors():
            yield from rows.others_of(one, first_notes if place else ())
    if rows.lacks_outcomes:
        *_, status = run_statements(run.model_copy(update={"status": "partial"}))
        yield status


class _Part(Struct):
    """One of the runs whose rows are copied."""

    run_reader: RunReader
    run: str
    attempts: dict[int, int] = field(default_factory=dict)
    """By id of an attempt of a copied step: its new id."""
    repeated: set[int] = field(default_factory=set)
    """Ids of attempts of steps that an earlier part has, too."""
    results: dict[str, int] = field(default_factory=dict)
    """By key of a step: the hash of its result in this run."""

    def rows(self, table: str) -> Iterator[Row]:
        return _rows(self.run_reader, table, self.run)


class _CopiedRows:
    """Copies rows of several runs into one. Attempts get new ids, because an id must be unique in a journal."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._results: dict[str, int] = {}
        """By key of a step: the hash of the result that counts."""
        self.lacks_outcomes = False
        """Whether an outcome was left out."""
        self._ids = count(int.from_bytes(os.urandom(5)) << 23)  # as RunWriter chooses them

    def steps_of(self, part: _Part, left_out: Collection[str]) -> Iterator[Statement]:
        """Copy the steps of a part, except those with a name in `left_out` or with a result in an earlier part."""
        for row in part.rows("steps"):
            key, attempt = row["key"], row["attempt"]
            part.results[key] = hash(row["result"])
            if key not in self._results and row["name"] not in left_out:
                self._results[key] = part.results[key]
                new = None if attempt is None else part.attempts.setdefault(attempt, next(self._ids))
                yield self._copy("steps", row, attempt=new)
                continue
            # a step that serves several histories, such as a canary: its cost counts as that of an attempt
            if attempt is not None:
                part.repeated.add(attempt)
            if attempt is not None or row["calls"] or row["cost"]:
                yield self._copy("attempts", row, id=next(self._ids), ended=_end(row), error=_PERFORMED_TWICE)

    def others_of(self, part: _Part, left_out: Collection[str]) -> Iterator[Statement]:
        """Copy the other rows of a part, except notes of a kind in `left_out`. The steps of all parts come first."""
        for row in part.rows("attempts"):
            if row["id"] not in part.repeated:
                yield self._copy("attempts", row, id=part.attempts.get(row["id"]) or next(self._ids))
        cases = set()
        for row in part.rows("outcomes"):
            asked = () if row["status"] in _WITHOUT_RESULT else json.loads(row["body"])["steps"]
            results = {key: part.results.get(key) for key in asked}
            if all(self._results.get(key, result) == result for key, result in results.items()):
                cases.add((row["benchmark"], row["case_id"]))
                yield self._copy("outcomes", row)
            else:
                self.lacks_outcomes = True
        for row in part.rows("cases"):
            if (row["benchmark"], row["id"]) in cases:
                yield self._copy("cases", row)
        # the merged run has other rows, and its failures count until it is resumed itself
        for row in part.rows("notes"):
            if row["kind"] not in (TRIED_AGAIN, *left_out):
                yield self._copy("notes", row)

    def _copy(self, table: str, row: Row, **changes: Any) -> Statement:
        return _insert(table, {**row, **changes, "run": self._run})


def _rows(run_reader: RunReader, table: str, run: str) -> Iterator[Row]:
    order = {"attempts": "id", "outcomes": "ordinal, trial", "steps": "started, key"}.get(table, "rowid")
    name = journal_of(run_reader.folder).name
    return checked_rows(name, run_reader.connection, table, f"run = ? ORDER BY {order}", (run,))


def _end(step: Row) -> str:
    started = datetime.fromisoformat(step["started"])
    return (started + timedelta(seconds=step["seconds"])).isoformat(timespec="milliseconds")
