"""The journal in a SQLite file of the results folder, which is the default."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager, closing
from pathlib import Path

from memorybench.core.errors import BadInput

from . import database
from .contract import Connection, Journal
from .database import FILE_NAME, SqliteConnection, check, sqlite_errors
from .lock import RunLock, is_held


class SqliteJournal(Journal):
    can_share = False

    def __init__(self, folder: Path, file_name: str = FILE_NAME) -> None:
        self.folder = folder
        self.path = folder / file_name
        self.name = str(self.path)

    def exists(self) -> bool:
        return self.path.exists()

    def open_for_writing(self) -> SqliteConnection:
        return database.open_for_writing(self.folder)

    def open_for_reading(self, *, thorough: bool = True) -> SqliteConnection:
        if not self.path.exists():
            raise BadInput(
                str(self.folder),
                f"has no {FILE_NAME}",
                expected="a results folder",
                remedy="name one with --results, or make a run first: memorybench eval --limit 60",
            )
        check(self.path, thorough=thorough)
        return database.open_for_reading(self.path)

    def open_beside_writer(self) -> SqliteConnection:
        return database.connect(self.path)

    def attach_outcomes(
        self, connection: Connection, db: sqlite3.Connection, schema: str, run: str, first: int
    ) -> None:
        database.attach_for_reading(db, self.path, schema)

    def errors(self) -> AbstractContextManager[None]:
        return sqlite_errors(self.path)

    def lock(self, run: str, *, shared: bool = False) -> RunLock:
        if self.path.exists():
            check(self.path, thorough=False)  # before the lock creates a folder next to an invalid file
        return RunLock(self.folder / run, run)

    def is_locked(self, run: str) -> bool:
        return is_held(self.folder / run)

    def free_space(self) -> None:
        with sqlite_errors(self.path), closing(self.open_for_writing()) as db:
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
