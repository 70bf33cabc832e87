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

    Of a step that several parts asked for, the first result counts, or that it has none. An outcome that rests on
    another result is left out, and the run is then partial. Steps with a name in `first_steps`, and notes with a kind
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
    for place, (run_reader, part) in enumerate(parts):
        left_out = (first_steps, first_notes) if place else ((), ())
        with run_reader.errors():
            yield from rows.of(run_reader, part, *left_out)
    if rows.lacks_outcomes:
        *_, status = run_statements(run.model_copy(update={"status": "partial"}))
        yield status


class _CopiedRows:
    """Copies rows of several runs into one. Attempts get new ids, because an id must be unique in a journal."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._results: dict[str, int | None] = {}
        """By key of a step: the hash of the result that counts; None if copied outcomes rest on its having none."""
        self.lacks_outcomes = False
        """Whether an outcome was left out."""
        self._ids = count(int.from_bytes(os.urandom(5)) << 23)  # as RunWriter chooses them

    def of(
        self, run_reader: RunReader, part: str, left_out_steps: Collection[str], left_out_notes: Collection[str]
    ) -> Iterator[Statement]:
        attempts: dict[int, int] = {}
        repeated: set[int] = set()
        own: dict[str, int] = {}
        """As `_results`, for the steps of this part."""
        for row in _rows(run_reader, "steps", part):
            key, attempt = row["key"], row["attempt"]
            own[key] = hash(row["result"])
            if key not in self._results and row["name"] not in left_out_steps:
                self._results[key] = own[key]
                new = None if attempt is None else attempts.setdefault(attempt, next(self._ids))
                yield self._copy("steps", row, attempt=new)
                continue
            # a step that serves several histories, such as a canary: its cost counts as that of an attempt
            if attempt is not None:
                repeated.add(attempt)
            if attempt is not None or row["calls"] or row["cost"]:
                yield self._copy("attempts", row, id=next(self._ids), ended=_end(row), error=_PERFORMED_TWICE)
        for row in _rows(run_reader, "attempts", part):
            if row["id"] not in repeated:
                yield self._copy("attempts", row, id=attempts.get(row["id"]) or next(self._ids))
        cases = set()
        for row in _rows(run_reader, "outcomes", part):
            asked = () if row["status"] in _WITHOUT_RESULT else json.loads(row["body"])["steps"]
            results = {key: own.get(key) for key in asked}
            if all(self._results.get(key, result) == result for key, result in results.items()):
                self._results.update(results)
                cases.add((row["benchmark"], row["case_id"]))
                yield self._copy("outcomes", row)
            else:
                self.lacks_outcomes = True
        for row in _rows(run_reader, "cases", part):
            if (row["benchmark"], row["id"]) in cases:
                yield self._copy("cases", row)
        # the merged run has other rows, and its failures count until it is resumed itself
        for row in _rows(run_reader, "notes", part):
            if row["kind"] not in (TRIED_AGAIN, *left_out_notes):
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
