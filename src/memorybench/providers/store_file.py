"""SQLite files that hold memories: created for their owner alone, and told from another program's."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memorybench.core.errors import BadInput

_PATIENCE = 60.0  # seconds to wait for another process that writes to the same file


@dataclass(frozen=True, slots=True)
class Format:
    application: int
    """SQLite's application_id: tells our file from another program's."""
    version: int
    tables: Sequence[str]
    """Statements that create them. The table `store`, which holds the incarnation, is there already."""


def open_store_file(file: Path, format: Format) -> sqlite3.Connection:
    """What a transaction wrote survives a killed process once it has ended.

    A power cut may take the last writes with it: WAL with synchronous=NORMAL does not wait for the disk.
    """
    try:
        # created here and not by SQLite: only its owner may read what people said
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        db = sqlite3.connect(file, timeout=_PATIENCE)
    except (OSError, sqlite3.Error) as error:
        raise _unusable(file, str(error)) from error
    try:
        _ensure_format(db, file, format)  # before anything is set: another program's file is left as it was
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA secure_delete = ON")
    except sqlite3.Error as error:
        db.close()
        raise _unusable(file, str(error)) from error
    except BadInput:
        db.close()
        raise
    return db


def incarnation_of(db: sqlite3.Connection) -> str:
    """Made with the file, and gone with it."""
    return str(db.execute("SELECT incarnation FROM store").fetchone()[0])


def cut_off_log(db: sqlite3.Connection) -> None:
    """What was deleted still stands in the write-ahead log until this is done."""
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _ensure_format(db: sqlite3.Connection, file: Path, format: Format) -> None:
    db.execute("BEGIN IMMEDIATE")  # two processes may open a new file at once: one creates, the other finds
    with db:
        application = db.execute("PRAGMA application_id").fetchone()[0]
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0:
            _create(db, format)
        elif application != format.application:
            raise _unusable(file, "a database of another program")
        elif version != format.version:
            problem = f"written by another version of memorybench (format {version}, ours is {format.version})"
            raise _unusable(file, problem)


def _create(db: sqlite3.Connection, format: Format) -> None:
    db.execute("CREATE TABLE store (incarnation TEXT NOT NULL)")
    db.execute("INSERT INTO store VALUES (?)", (secrets.token_hex(16),))
    for statement in format.tables:
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {format.application}")
    db.execute(f"PRAGMA user_version = {format.version}")


def _unusable(file: Path, problem: str) -> BadInput:
    return BadInput(str(file), problem, expected="a memory store of memorybench, or no file yet", remedy="name another")
