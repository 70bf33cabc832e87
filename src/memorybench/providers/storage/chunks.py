"""Chunks, their vectors, and the replies of a model about them: in SQLite or in Postgres."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from memorybench.core.conversation import Memory

from .sqlite_store import Format, SqliteStore

Kind = Literal["chunk", "question"]

TABLES = ("chunks", "handles", "notes")
CREATE_TABLES = (
    """CREATE TABLE IF NOT EXISTS @chunks (
        scope TEXT NOT NULL,
        session TEXT NOT NULL,
        place INTEGER NOT NULL,
        turns TEXT NOT NULL,
        context TEXT NOT NULL,
        said TEXT NOT NULL,
        UNIQUE (scope, session, place)
    )""",
    """CREATE TABLE IF NOT EXISTS @handles (
        scope TEXT NOT NULL,
        session TEXT NOT NULL,
        place INTEGER NOT NULL,
        kind TEXT NOT NULL,
        said TEXT NOT NULL,
        vector @VECTOR NOT NULL
    )""",
    "CREATE INDEX IF NOT EXISTS @handles_of_scope ON @handles (scope, session)",
    """CREATE TABLE IF NOT EXISTS @notes (
        scope TEXT NOT NULL,
        topic TEXT NOT NULL,
        said TEXT NOT NULL,
        UNIQUE (scope, topic)
    )""",
)
"""Statements that create the tables in SQLite or Postgres. `@` stands for the prefix of table names, `@VECTOR` for the
type of a column of vectors."""


class StoredChunk(Struct, frozen=True):
    session: str
    place: int
    """1-based position among the chunks of its session."""
    turns: tuple[str, ...]
    context: str
    """Text that a model wrote and that is put before the chunk; may be empty."""
    text: str

    @property
    def memory_id(self) -> str:
        return f"{self.session}#{self.place}"

    @property
    def content(self) -> str:
        return f"{self.context}\n{self.text}" if self.context else self.text

    def as_memory(self, score: float | None = None) -> Memory:
        return Memory(id=self.memory_id, content=self.content, score=score, sources=(self.session, *self.turns))


class SearchKey(Struct, frozen=True):
    """A text by which a chunk can be found, its own text or a question about it, with the vector of that text."""

    place: int
    kind: Kind
    text: str
    vector: bytes
    """The vector as 32-bit floats. Its Euclidean length is 1, or it is all zeros."""


class Similarity(NamedTuple):
    """The highest cosine between a query and the search keys of one kind that a chunk has."""

    session: str
    place: int
    kind: Kind
    cosine: float


class ChunkStore:
    """Base class of the stores of chunks in SQLite and in Postgres. A store must be used on the thread that opened it.

    Its methods raise ServiceError if the database fails. Tables and columns keep their former names, such as `handles`
    for search keys, so that stores of earlier versions can be read.
    """

    store_id: str
    prefix = ""
    """The beginning of all table names."""
    parameter = "?"
    """The placeholder of a value in a statement."""
    collation = ""
    """The SQL clause that sorts text by its bytes; empty if the database does so by default."""
    cosine = "cosine(vector, ?)"

    def transaction(self) -> AbstractContextManager[Any]:
        """Return a context manager that yields a cursor. At its end, it commits; after an error, it rolls back."""
        raise NotImplementedError

    def to_text(self, text: str) -> str:
        """Return the text in a form that the database can store."""
        return text

    def to_vector(self, vector: bytes) -> bytes | str:
        """Return the vector in the form in which the database expects it."""
        return vector

    def replace(self, scope: str, session: str, chunks: Sequence[StoredChunk], keys: Sequence[SearchKey]) -> None:
        """Store the chunks and search keys of a session instead of those that an earlier add of the session stored."""
        with self.transaction() as cursor:
            for table in ("chunks", "handles"):
                cursor.execute(self._sql(f"DELETE FROM @{table} WHERE scope = ? AND session = ?"), (scope, session))  # noqa: S608
            to_text, to_vector = self.to_text, self.to_vector
            cursor.executemany(
                self._sql(
                    "INSERT INTO @chunks (scope, session, place, turns, context, said) VALUES (?, ?, ?, ?, ?, ?)"
                ),
                [
                    (scope, session, one.place, json.dumps(one.turns), to_text(one.context), to_text(one.text))
                    for one in chunks
                ],
            )
            cursor.executemany(
                self._sql("INSERT INTO @handles (scope, session, place, kind, said, vector) VALUES (?, ?, ?, ?, ?, ?)"),
                [(scope, session, key.place, key.kind, to_text(key.text), to_vector(key.vector)) for key in keys],
            )

    def entries(self, scope: str) -> Sequence[StoredChunk]:
        """Return all chunks of a scope, in an order that does not depend on when they were added."""
        statement = (
            "SELECT session, place, turns, context, said FROM @chunks WHERE scope = ?"
            " ORDER BY session @COLLATION, place"
        )
        with self.transaction() as cursor:
            return [
                StoredChunk(session, place, tuple(json.loads(turns)), *texts)
                for session, place, turns, *texts in cursor.execute(self._sql(statement), (scope,))
            ]

    def similarities(self, scope: str, vector: bytes) -> Sequence[Similarity]:
        """Return the similarity of each chunk of a scope to a vector of length 1, for each kind of its search keys."""
        statement = (
            "SELECT session, place, kind, max(@COSINE) FROM @handles WHERE scope = ? GROUP BY session, place, kind"
        )
        with self.transaction() as cursor:
            return [Similarity(*row) for row in cursor.execute(self._sql(statement), (self.to_vector(vector), scope))]

    def save_reply(self, scope: str, topic: str, text: str) -> None:
        statement = (
            "INSERT INTO @notes (scope, topic, said) VALUES (?, ?, ?)"
            " ON CONFLICT (scope, topic) DO UPDATE SET said = excluded.said"
        )
        with self.transaction() as cursor:
            cursor.execute(self._sql(statement), (scope, topic, self.to_text(text)))

    def load_reply(self, scope: str, topic: str) -> str | None:
        with self.transaction() as cursor:
            statement = self._sql("SELECT said FROM @notes WHERE scope = ? AND topic = ?")
            row = cursor.execute(statement, (scope, topic)).fetchone()
            return row[0] if row else None

    def clear(self, scope: str) -> None:
        with self.transaction() as cursor:
            for table in TABLES:
                cursor.execute(self._sql(f"DELETE FROM @{table} WHERE scope = ?"), (scope,))  # noqa: S608

    def close(self) -> None:
        raise NotImplementedError

    def _sql(self, statement: str) -> str:
        statement = statement.replace("@COLLATION", self.collation).replace("@COSINE", self.cosine)
        return statement.replace("@", self.prefix).replace("?", self.parameter)


class SqliteChunkStore(SqliteStore, ChunkStore):
    format = Format(
        application=0x4D42636B,  # "MBck"
        version=1,
        table_names=TABLES,
        tables=[statement.replace("@VECTOR", "BLOB").replace("@", "") for statement in CREATE_TABLES],
    )

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self._db.create_function("cosine", 2, _product, deterministic=True)


def _product(stored: bytes, query: bytes) -> float:
    import numpy as np

    return float(np.frombuffer(stored, np.float32) @ np.frombuffer(query, np.float32))
