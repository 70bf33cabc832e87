"""Tags, renames and deletes runs. Each change is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from memorybench.core.records import canonical

from .checksums import CHECKSUMS, insert, update_statements
from .contract import Connection
from .places import journal_of
from .rows import Run
from .run_reader import RunReader
from .writer import Statement, Writer

Fault = Callable[[], None] | None
_STEPS_OF = ("reuse", "answers_of", "failed_in")
BASELINES = ("baseline", "gate")
"""Keys of a saved spec that may name another run with which the report compares this one."""


def tag_statement(run: str, tag: str) -> Statement:
    return insert("tags", (run, tag), keep=True)


def spec_statements(db: Connection, run: str, spec: str) -> list[Statement]:
    """Return the statements that replace the saved spec of a run by `spec`, a JSON text."""
    return list(update_statements(db, "runs", "id = ?", (run,), {"spec": spec}))


def references(run: Run, other: str) -> dict[str, Any]:
    """Return those keys of the run's saved spec, with their values, that name the run `other`."""
    values = {key: run.spec.get(key) for key in (*_STEPS_OF, *BASELINES)}
    return {key: value for key, value in values.items() if value == other or _names(value, other)}


def _names(value: Any, run: str) -> bool:
    """Return whether a value of a saved spec is a baseline that names this run in the same results folder."""
    return isinstance(value, Mapping) and value.get("run") == run and not value.get("folder")


def change_tags(folder: Path, run: str, add: Sequence[str], remove: Sequence[str], fault: Fault = None) -> None:
    removals: list[Statement] = [("DELETE FROM tags WHERE run = ? AND tag = ?", (run, tag)) for tag in remove]
    _commit(folder, [*removals, *(tag_statement(run, tag) for tag in add)], fault)


def change_spec(folder: Path, run: Run, changes: Mapping[str, Any]) -> None:
    """Write new values into the saved spec of a run. They must affect no result, as thresholds do."""
    with closing(Writer(journal_of(folder))) as writer, RunReader.open(folder, thorough=False) as run_reader:
        writer.write_now(spec_statements(run_reader.connection, run.id, canonical({**run.spec, **changes})))


def delete_rows(folder: Path, run: str, fault: Fault = None) -> None:
    """Delete all rows of a run. Runs that reused its steps are not affected: they have copies."""
    _commit(folder, _deletes(run, (*CHECKSUMS, *journal_of(folder).shared_tables)), fault)


def rename_rows(folder: Path, run: str, new: str, fault: Fault = None) -> None:
    """Rename a run, also in the specs and steps of runs that refer to it, and recompute the checksums of these rows.

    Raise JournalError if a row of the run does not match its checksum.
    """
    columns = [*((table, _id(table)) for table in CHECKSUMS), ("steps", "reused_from")]
    # the writer is opened first: it migrates the tables of an earlier version
    with closing(Writer(journal_of(folder), fault=fault)) as writer, RunReader.open(folder) as run_reader:
        run_reader.check_run(run)  # a new checksum must not hide that a row was changed
        db = run_reader.connection
        statements: list[Statement] = [
            statement
            for table, column in columns
            for statement in update_statements(db, table, f"{column} = ?", (run,), {column: new})
        ]
        for user in run_reader.runs():
            found = references(user, run)
            changes = {key: new if value == run else {**value, "run": new} for key, value in found.items()}
            statements += spec_statements(db, user.id, canonical({**user.spec, **changes})) if found else []
        # a process that resumes the run writes these rows again
        writer.write_now([*statements, *_deletes(run, writer.journal.shared_tables)])


def _deletes(run: str, tables: Iterable[str]) -> list[Statement]:
    return [(f"DELETE FROM {table} WHERE {_id(table)} = ?", (run,)) for table in tables]  # noqa: S608  ours


def _id(table: str) -> str:
    return "id" if table == "runs" else "run"


def _commit(folder: Path, statements: Sequence[Statement], fault: Fault) -> None:
    with closing(Writer(journal_of(folder), fault=fault)) as writer:
        writer.write_now(statements)
