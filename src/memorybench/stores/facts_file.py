"""The SQLite file of the reference store. Its tables may be queried by scenarios:

facts(id, user, content, category, source, trust, retrieval_count, created, updated)
history(fact, user, content, replaced)    what a fact said before it was updated; gone when the fact is forgotten
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from memorybench.core.errors import BadInput

FILE = "memory.db"
_APPLICATION = 0x4D42686D  # "MBhm": tells our file from another program's
_VERSION = 1
_PATIENCE = 30.0
"""Seconds to wait for another session that writes to the same file."""
_TABLES = (
    # AUTOINCREMENT: the id of a forgotten fact is never given to another
    """CREATE TABLE facts (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        user TEXT NOT NULL,
        content TEXT NOT NULL,
        category TEXT,
        source TEXT,
        trust REAL NOT NULL,
        retrieval_count INTEGER NOT NULL,
        created TEXT NOT NULL,
        updated TEXT NOT NULL,
        UNIQUE (user, content)
    )""",
    """CREATE TABLE history (
        fact INTEGER NOT NULL REFERENCES facts (id) ON DELETE CASCADE,
        user TEXT NOT NULL,
        content TEXT NOT NULL,
        replaced TEXT NOT NULL
    )""",
)


def open_facts(folder: Path) -> sqlite3.Connection:
    """What a statement wrote survives a killed process, and nothing that was deleted is left in the file."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = folder / FILE
    try:
        # created here and not by SQLite: only its owner may read what people said
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        db = sqlite3.connect(file, timeout=_PATIENCE, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        raise _unusable(file, str(error)) from error
    try:
        _ensure_tables(db, file)
    except sqlite3.Error as error:
        db.close()
        raise _unusable(file, str(error)) from error
    except BadInput:
        db.close()
        raise
    return db


def _ensure_tables(db: sqlite3.Connection, file: Path) -> None:
    # SQLite's rollback journal is left as it is: it goes with its transaction, while a write-ahead log would keep
    # what was deleted
    db.execute("PRAGMA secure_delete = ON")
    # a killed process loses nothing by this; only a power cut does, and a store under test need not survive that
    db.execute("PRAGMA synchronous = OFF")
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("BEGIN IMMEDIATE")  # two sessions may open a new file at once: one creates, the other finds
    with db:
        application = db.execute("PRAGMA application_id").fetchone()[0]
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0:
            for statement in (*_TABLES, f"PRAGMA application_id = {_APPLICATION}", f"PRAGMA user_version = {_VERSION}"):
                db.execute(statement)
        elif application != _APPLICATION:
            raise _unusable(file, "a database of another program")
        elif version != _VERSION:
            raise _unusable(file, f"written by another version of memorybench (format {version}, ours is {_VERSION})")


def _unusable(file: Path, problem: str) -> BadInput:
    return BadInput(
        str(file), problem, expected="a memory of memorybench, or no file yet", remedy="name another folder"
    )
