"""Base class of the SQLite files that hold memories."""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from memorybench.core.errors import BadInput, ServiceError

_BUSY_TIMEOUT = 60.0  # seconds to wait for another process that writes to the same file
_PAUSE = 0.01


class Format(Struct, frozen=True):
    """The tables of one kind of SQLite file, and the numbers by which such a file is recognized."""

    application: int
    """SQLite's application_id, which distinguishes a file of memorybench from one of another program."""
    version: int
    tables: Sequence[str]
    """SQL statements that create the tables. Each table has a column `scope`."""
    table_names: Sequence[str]


class SqliteStore:
    """One SQLite file for any number of scopes. Must be used on the thread that opened it.

    The file is readable by its owner only. A committed transaction survives a killed process; a power cut may lose
    the last ones, because WAL mode with synchronous=NORMAL does not wait for the disk.
    """

    format: Format

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            # not created by SQLite, which would let others read it
            os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
            self._db = sqlite3.connect(file, timeout=_BUSY_TIMEOUT)
        except (OSError, sqlite3.Error) as error:
            raise self._unopenable(error) from error
        try:
            self.store_id = self._ensure_format()  # before any PRAGMA: the file of another program stays unchanged
            self._use_log()
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute("PRAGMA secure_delete = ON")
        except (sqlite3.Error, BadInput) as error:
            self._db.close()
            raise error if isinstance(error, BadInput) else self._unopenable(error) from error

    def _use_log(self) -> None:
        """Set WAL mode. Retry while another process opens the file, because SQLite itself does not wait for that."""
        end = time.monotonic() + _BUSY_TIMEOUT
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(_PAUSE)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Cursor]:
        try:
            with self._db:
                yield self._db.cursor()
        except sqlite3.Error as error:
            raise ServiceError(f"{self._file}: {error}") from error

    def clear(self, scope: str) -> None:
        """Delete the data of a scope, also from the write-ahead log."""
        with self.transaction() as cursor:
            for table in self.format.table_names:
                cursor.execute(f"DELETE FROM {table} WHERE scope = ?", (scope,))  # noqa: S608  names of ours
        with self.transaction() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        self._db.close()

    def _ensure_format(self) -> str:
        """Check the format of the file, or create the tables of a new file. Return the store id that the file contains.

        Raise BadInput if the file belongs to another program or has another version.
        """
        db, format = self._db, self.format
        db.execute("BEGIN IMMEDIATE")  # two processes may open a new file at once: one of them creates the tables
        with db:
            application = db.execute("PRAGMA application_id").fetchone()[0]
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0:
                # files of earlier versions call the store id `incarnation`
                db.execute("CREATE TABLE store (incarnation TEXT NOT NULL)")
                db.execute("INSERT INTO store VALUES (?)", (secrets.token_hex(16),))
                for statement in format.tables:
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {format.application}")
                db.execute(f"PRAGMA user_version = {format.version}")
            elif application != format.application:
                raise self._unusable("the file is a database of another program")
            elif version != format.version:
                raise self._unusable(
                    f"the file has format {version}; this version of memorybench reads format {format.version}"
                )
            return str(db.execute("SELECT incarnation FROM store").fetchone()[0])

    def _unopenable(self, error: Exception) -> BadInput:
        if isinstance(error, sqlite3.DatabaseError) and error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
            return self._unusable(str(error))
        return BadInput(
            str(self._file),
            f"cannot open the file: {error}",
            remedy="check the free space and the permissions of its folder",
        )

    def _unusable(self, problem: str) -> BadInput:
        return BadInput(
            str(self._file),
            problem,
            expected="a memory store of memorybench, or a path where there is no file",
            remedy="choose another path",
        )
