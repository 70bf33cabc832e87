"""Turns on disk: one SQLite file that any number of scopes share.

Kept is what was said, never an index of it: indexes are built per scope when it is searched, so that one scope's
word statistics never lean on another's, and a crash can not leave an index that disagrees with its turns.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memorybench.vocabulary.conversation import Memory, Session, Turn
from memorybench.vocabulary.errors import BadInput

_APPLICATION = 0x4D42746D  # "MBtm": tells our file from another program's
_VERSION = 1
_PATIENCE = 60.0  # seconds to wait for another process that writes to the same file
_SCHEMA = (
    "CREATE TABLE store (incarnation TEXT NOT NULL)",
    """CREATE TABLE turns (
        scope TEXT NOT NULL,
        session TEXT NOT NULL,
        place INTEGER NOT NULL,
        turn TEXT NOT NULL,
        lead TEXT NOT NULL,
        said TEXT NOT NULL,
        vector BLOB,
        UNIQUE (scope, session, place)
    )""",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
)


@dataclass(frozen=True, slots=True)
class KeptTurn:
    session: str
    place: int
    """1-based, as the turn stood in its session."""
    turn: str
    lead: str
    """What a reader sees before `said` and a search does not: the date, and the role of a nameless speaker."""
    said: str
    vector: bytes | None = None

    @property
    def memory_id(self) -> str:
        return f"{self.session}#{self.place}"

    def as_memory(self, score: float | None = None) -> Memory:
        return Memory(
            id=self.memory_id,
            content=self.lead + self.said,
            score=score,
            sources=(self.session, self.turn),
        )


def kept_turns(session: Session) -> list[KeptTurn]:
    """The turns of a session that say something."""
    return [
        KeptTurn(
            session=session.id,
            place=place,
            turn=turn.id if turn.id is not None else f"{session.id}:{place}",
            lead=_lead(session, turn),
            said=storable(f"{turn.speaker}: {turn.content}" if turn.speaker else turn.content),
        )
        for place, turn in enumerate(session.turns, start=1)
        if turn.content.strip()
    ]


def storable(text: str) -> str:
    """The text without lone surrogates, which neither SQLite nor an embedder can encode."""
    return text.encode("utf-8", "replace").decode()


def _lead(session: Session, turn: Turn) -> str:
    at = turn.at or session.at
    date = f"[{at.date().isoformat()}] " if at else ""
    return date if turn.speaker else f"{date}{turn.role}: "


class TurnStore:
    """Lives on the thread that opened it. What a method wrote survives a killed process when it has returned.

    A power cut may take the last writes with it: WAL with synchronous=NORMAL does not wait for the disk.
    """

    def __init__(self, file: Path) -> None:
        self._db = _open(file)
        self.incarnation: str = self._db.execute("SELECT incarnation FROM store").fetchone()[0]

    def replace(self, scope: str, session: str, turns: Sequence[KeptTurn]) -> None:
        """Whatever was kept of this session gives way, so that adding it again after a lost reply changes nothing."""
        with self._db:
            self._db.execute("DELETE FROM turns WHERE scope = ? AND session = ?", (scope, session))
            self._db.executemany(
                "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(scope, kept.session, kept.place, kept.turn, kept.lead, kept.said, kept.vector) for kept in turns],
            )

    def turns(self, scope: str) -> list[KeptTurn]:
        """In an order that does not tell when they were added: a resumed ingest ranks ties as an unbroken one."""
        rows = self._db.execute(
            "SELECT session, place, turn, lead, said, vector FROM turns WHERE scope = ? ORDER BY session, place",
            (scope,),
        )
        return [KeptTurn(*row) for row in rows]

    def clear(self, scope: str) -> None:
        with self._db:
            self._db.execute("DELETE FROM turns WHERE scope = ?", (scope,))
        # what was cleared still stands in the write-ahead log until that is cut off
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        self._db.close()


def _open(file: Path) -> sqlite3.Connection:
    try:
        # created here and not by SQLite: only its owner may read what people said
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        db = sqlite3.connect(file, timeout=_PATIENCE)
    except (OSError, sqlite3.Error) as error:
        raise _unusable(file, str(error)) from error
    try:
        _ensure_schema(db, file)  # before anything is set: another program's file is left as it was
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


def _ensure_schema(db: sqlite3.Connection, file: Path) -> None:
    db.execute("BEGIN IMMEDIATE")  # two processes may open a new file at once: one creates, the other finds
    with db:
        application = db.execute("PRAGMA application_id").fetchone()[0]
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0:
            for statement in _SCHEMA:
                db.execute(statement)
            db.execute("INSERT INTO store VALUES (?)", (secrets.token_hex(16),))
        elif application != _APPLICATION:
            raise _unusable(file, "a database of another program")
        elif version != _VERSION:
            raise _unusable(file, f"written by another version of memorybench (format {version}, ours is {_VERSION})")


def _unusable(file: Path, problem: str) -> BadInput:
    return BadInput(str(file), problem, expected="a memory store of memorybench, or no file yet", remedy="name another")
