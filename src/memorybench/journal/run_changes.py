"""Changes runs as a whole: tags, names, deletion. Each change is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from memorybench.core.records import canonical

from .checksums import CHECKSUMS, crc
from .database import FILE_NAME, open_for_writing, sqlite_errors
from .rows import Run
from .run_reader import RunReader
from .writer import Statement, Writer

Fault = Callable[[], None] | None
_STEPS_OF = ("reuse", "answers_of", "failed_in")
BASELINES = ("baseline", "gate")
"""Keys of a saved spec that name a run of the folder that the report compares with."""


def tag_statement(run: str, tag: str) -> Statement:
    return "INSERT OR IGNORE INTO tags (run, tag, crc) VALUES (?,?,?)", (run, tag, crc(run, tag))


def spec_statement(run: str, spec: str) -> Statement:
    """Replace the saved spec of a run; `spec` is JSON."""
    return (
        "UPDATE runs SET spec = :spec, crc = crc(id, suite, :spec, fingerprints, program, planned, created)"
        " WHERE id = :run",
        {"spec": spec, "run": run},
    )


def references(run: Run, other: str) -> dict[str, Any]:
    """Return the values of the run's spec that name the other run, by key."""
    values = {key: run.spec.get(key) for key in (*_STEPS_OF, *BASELINES)}
    return {key: value for key, value in values.items() if value == other or _names(value, other)}


def _names(value: Any, run: str) -> bool:
    """Return whether a baseline, which may be in another folder, is that run."""
    return isinstance(value, Mapping) and value.get("run") == run and not value.get("folder")


def change_tags(folder: Path, run: str, add: Sequence[str], remove: Sequence[str], fault: Fault = None) -> None:
    removals: list[Statement] = [("DELETE FROM tags WHERE run = ? AND tag = ?", (run, tag)) for tag in remove]
    _commit(folder, [*removals, *(tag_statement(run, tag) for tag in add)], fault)


def delete_rows(folder: Path, run: str, fault: Fault = None) -> None:
    """Delete a run. Runs that reused its steps have copies of them."""
    _commit(folder, [(f"DELETE FROM {table} WHERE {_id(table)} = ?", (run,)) for table in CHECKSUMS], fault)  # noqa: S608  ours


def rename_rows(folder: Path, run: str, new: str, fault: Fault = None) -> None:
    """Rename a run, also where other runs name it; the checksums of all changed rows are computed again."""
    names = {"run": run, "new": new}
    with RunReader.open(folder) as run_reader:
        run_reader.check_run(run)  # a new checksum must not hide that a row was changed
        users = [(other, found) for other in run_reader.runs() if (found := references(other, run))]
    statements: list[Statement] = [(_rename(table, _id(table)), names) for table in CHECKSUMS]
    statements.append((_rename("steps", "reused_from"), names))
    for user, found in users:
        changes = {key: new if value == run else {**value, "run": new} for key, value in found.items()}
        statements.append(spec_statement(user.id, canonical({**user.spec, **changes})))
    _commit(folder, statements, fault)


def free_space(folder: Path) -> None:
    """Return the space of deleted rows to the file system."""
    with sqlite_errors(folder / FILE_NAME), closing(open_for_writing(folder)) as db:
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _id(table: str) -> str:
    return "id" if table == "runs" else "run"


def _rename(table: str, column: str) -> str:
    """Return the statement that replaces a run's name in one column. Rows without a checksum stay without one."""
    changes = [f"{column} = :new"]
    for checksum, columns in CHECKSUMS[table].items():
        values = ", ".join(":new" if name == column else name for name in columns)
        changes.append(f"{checksum} = CASE WHEN {checksum} IS NOT NULL THEN crc({values}) END")
    return f"UPDATE {table} SET {', '.join(changes)} WHERE {column} = :run"  # noqa: S608  ours


def _commit(folder: Path, statements: Sequence[Statement], fault: Fault) -> None:
    with closing(Writer(folder, fault=fault)) as writer:
        writer.write_now(statements)
