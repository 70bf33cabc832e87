"""Chunks, what they are found by, and what a model wrote about them: in one SQLite file, or behind the same interface
in Postgres (postgres_store.py)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from memorybench.core.conversation import Memory
from memorybench.core.errors import ServiceError

from .store_file import Format, cut_off_log, incarnation_of, open_store_file

Kind = Literal["chunk", "question"]

_FORMAT = Format(
    application=0x4D42636B,  # "MBck"
    version=1,
    tables=(
        """CREATE TABLE chunks (
            scope TEXT NOT NULL,
            session TEXT NOT NULL,
            place INTEGER NOT NULL,
            turns TEXT NOT NULL,
            context TEXT NOT NULL,
            said TEXT NOT NULL,
            UNIQUE (scope, session, place)
        )""",
        """CREATE TABLE handles (
            scope TEXT NOT NULL,
            session TEXT NOT NULL,
            place INTEGER NOT NULL,
            kind TEXT NOT NULL,
            said TEXT NOT NULL,
            vector BLOB NOT NULL
        )""",
        "CREATE INDEX handles_of_scope ON handles (scope, session)",
        "CREATE TABLE notes (scope TEXT NOT NULL, topic TEXT NOT NULL, said TEXT NOT NULL, UNIQUE (scope, topic))",
    ),
)


@dataclass(frozen=True, slots=True)
class KeptChunk:
    session: str
    place: int
    """1-based, among the chunks of its session."""
    turns: tuple[str, ...]
    context: str
    """What a model wrote to stand in front of it; empty: nothing."""
    said: str

    @property
    def memory_id(self) -> str:
        return f"{self.session}#{self.place}"

    @property
    def content(self) -> str:
        return f"{self.context}\n{self.said}" if self.context else self.said

    def as_memory(self, score: float | None = None) -> Memory:
        return Memory(id=self.memory_id, content=self.content, score=score, sources=(self.session, *self.turns))


@dataclass(frozen=True, slots=True)
class Handle:
    """A text that a chunk is found by, as a vector of length 1, or 0 where the text has no direction."""

    place: int
    kind: Kind
    said: str
    vector: bytes
    """32-bit floats."""


class Likeness(NamedTuple):
    """How near the nearest handle of this kind is."""

    session: str
    place: int
    kind: Kind
    cosine: float


class ChunkStore(Protocol):
    """Lives on the thread that opened it. Raises a ServiceError where the database fails."""

    @property
    def store_id(self) -> str: ...

    def replace(self, scope: str, session: str, chunks: Sequence[KeptChunk], handles: Sequence[Handle]) -> None:
        """Whatever was kept of this session gives way, so that adding it again after a lost reply changes nothing."""
        ...

    def chunks(self, scope: str) -> Sequence[KeptChunk]:
        """In an order that does not tell when they were added: a resumed ingest ranks ties as an unbroken one."""
        ...

    def likenesses(self, scope: str, vector: bytes) -> Sequence[Likeness]:
        """Of a vector of length 1 to every chunk, for each kind of handle it has."""
        ...

    def note(self, scope: str, topic: str, said: str) -> None: ...

    def noted(self, scope: str, topic: str) -> str | None: ...

    def clear(self, scope: str) -> None: ...

    def close(self) -> None: ...


class SqliteChunkStore:
    """What a method wrote survives a killed process when it has returned."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._db = open_store_file(file, _FORMAT)
        self._db.create_function("likeness", 2, _product, deterministic=True)
        self.store_id = incarnation_of(self._db)

    def replace(self, scope: str, session: str, chunks: Sequence[KeptChunk], handles: Sequence[Handle]) -> None:
        with self._transaction() as db:
            db.execute("DELETE FROM chunks WHERE scope = ? AND session = ?", (scope, session))
            db.execute("DELETE FROM handles WHERE scope = ? AND session = ?", (scope, session))
            db.executemany(
                "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?)",
                [(scope, session, kept.place, json.dumps(kept.turns), kept.context, kept.said) for kept in chunks],
            )
            db.executemany(
                "INSERT INTO handles VALUES (?, ?, ?, ?, ?, ?)",
                [(scope, session, handle.place, handle.kind, handle.said, handle.vector) for handle in handles],
            )

    def chunks(self, scope: str) -> Sequence[KeptChunk]:
        with self._transaction() as db:
            rows = db.execute(
                "SELECT session, place, turns, context, said FROM chunks WHERE scope = ? ORDER BY session, place",
                (scope,),
            )
            return [
                KeptChunk(session, place, tuple(json.loads(turns)), *texts) for session, place, turns, *texts in rows
            ]

    def likenesses(self, scope: str, vector: bytes) -> Sequence[Likeness]:
        with self._transaction() as db:
            rows = db.execute(
                "SELECT session, place, kind, max(likeness(vector, ?)) FROM handles WHERE scope = ?"
                " GROUP BY session, place, kind",
                (vector, scope),
            )
            return [Likeness(*row) for row in rows]

    def note(self, scope: str, topic: str, said: str) -> None:
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO notes VALUES (?, ?, ?)", (scope, topic, said))

    def noted(self, scope: str, topic: str) -> str | None:
        with self._transaction() as db:
            row = db.execute("SELECT said FROM notes WHERE scope = ? AND topic = ?", (scope, topic)).fetchone()
            return row[0] if row else None

    def clear(self, scope: str) -> None:
        with self._transaction() as db:
            for table in ("chunks", "handles", "notes"):
                db.execute(f"DELETE FROM {table} WHERE scope = ?", (scope,))  # noqa: S608  our own names
        cut_off_log(self._db)

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._db:
                yield self._db
        except sqlite3.Error as error:
            raise ServiceError(f"{self._file}: {error}") from error


def _product(kept: bytes, asked: bytes) -> float:
    import numpy as np

    return float(np.frombuffer(kept, np.float32) @ np.frombuffer(asked, np.float32))
