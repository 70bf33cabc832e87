"""The tables, as numbered migrations. Never change a migration, only append: files of all earlier versions must open.

Types are those of SQLite; postgres.py translates them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .contract import Cursor


class _Connection(Protocol):
    def execute(self, sql: str, /) -> Cursor: ...


def first_tables(db: _Connection) -> None:
    db.execute(
        """CREATE TABLE runs (
            id TEXT PRIMARY KEY, suite TEXT NOT NULL, spec TEXT NOT NULL, fingerprints TEXT NOT NULL,
            program TEXT NOT NULL, status TEXT NOT NULL, planned INTEGER NOT NULL,
            created TEXT NOT NULL, finished TEXT, crc INTEGER NOT NULL)"""
    )
    db.execute(
        """CREATE TABLE cases (
            run TEXT NOT NULL REFERENCES runs(id), benchmark TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL,
            crc INTEGER NOT NULL,
            PRIMARY KEY (run, benchmark, id))"""
    )
    db.execute(
        """CREATE TABLE steps (
            run TEXT NOT NULL REFERENCES runs(id), key TEXT NOT NULL, name TEXT NOT NULL, subject TEXT NOT NULL,
            inputs TEXT NOT NULL, result TEXT NOT NULL, started TEXT NOT NULL, seconds REAL NOT NULL,
            tries INTEGER NOT NULL, uncertain INTEGER NOT NULL, calls INTEGER NOT NULL,
            input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cost REAL,
            reused_from TEXT, attempt INTEGER, crc INTEGER NOT NULL,
            UNIQUE (run, key))"""
    )
    db.execute("CREATE INDEX canaries ON steps (key) WHERE name = 'canary'")
    db.execute(
        """CREATE TABLE attempts (
            id INTEGER PRIMARY KEY, run TEXT NOT NULL REFERENCES runs(id), key TEXT NOT NULL, name TEXT NOT NULL,
            subject TEXT NOT NULL, started TEXT NOT NULL, ended TEXT, error TEXT,
            tries INTEGER NOT NULL DEFAULT 0, uncertain INTEGER NOT NULL DEFAULT 0, calls INTEGER NOT NULL DEFAULT 0,
            input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0, cost REAL DEFAULT 0)"""
    )
    db.execute(
        """CREATE TABLE outcomes (
            run TEXT NOT NULL REFERENCES runs(id), trial TEXT NOT NULL, ordinal INTEGER NOT NULL,
            benchmark TEXT NOT NULL, case_id TEXT NOT NULL, subject TEXT NOT NULL, status TEXT NOT NULL,
            body TEXT NOT NULL, finished TEXT NOT NULL, crc INTEGER NOT NULL,
            UNIQUE (run, trial))"""
    )
    db.execute("CREATE TABLE notes (run TEXT NOT NULL REFERENCES runs(id), kind TEXT NOT NULL, text TEXT NOT NULL)")


def shared_steps(db: _Connection) -> None:
    """Create an index of the steps that any run may reuse."""
    db.execute("DROP INDEX canaries")
    db.execute(f"CREATE INDEX shared_steps ON steps (key) WHERE name IN {_SHARED_BEFORE_3}")


def shared_column(db: _Connection) -> None:
    """Add the column `shared` to steps: whether any run may reuse the step.

    Before, that depended on the step's name.
    """
    db.execute("DROP INDEX shared_steps")
    db.execute("ALTER TABLE steps ADD COLUMN shared INTEGER NOT NULL DEFAULT 0")
    db.execute(f"UPDATE steps SET shared = 1 WHERE name IN {_SHARED_BEFORE_3}")  # noqa: S608  a constant
    db.execute("CREATE INDEX shared_steps ON steps (key) WHERE shared = 1")


def checksums_of_all_rows(db: _Connection) -> None:
    """Add checksums to attempts, notes and the status of a run; they are NULL in existing rows."""
    db.execute("ALTER TABLE attempts ADD COLUMN crc INTEGER")
    db.execute("ALTER TABLE notes ADD COLUMN crc INTEGER")
    db.execute("ALTER TABLE runs ADD COLUMN state_crc INTEGER")


def tags_of_runs(db: _Connection) -> None:
    """Create the table of tags. Tags are not a column of `runs`, because users may set them during a run."""
    db.execute(
        """CREATE TABLE tags (
            run TEXT NOT NULL REFERENCES runs(id), tag TEXT NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (run, tag))"""
    )


_SHARED_BEFORE_3 = ("canary", "entail", "feedback", "stated", "written")
MIGRATIONS: tuple[Callable[[_Connection], None], ...] = (
    first_tables,
    shared_steps,
    shared_column,
    checksums_of_all_rows,
    tags_of_runs,
)
