"""Chunks in Postgres, searched by pgvector. The extra `postgres` brings the driver."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from memorybench.core.errors import BadInput, ServiceError, Transient

from .chunk_store import Handle, KeptChunk, Likeness

_WHERE = "local.database"
_TABLES = """
CREATE TABLE IF NOT EXISTS memorybench_store (incarnation TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS memorybench_chunks (
    scope TEXT NOT NULL,
    session TEXT NOT NULL,
    place INTEGER NOT NULL,
    turns TEXT NOT NULL,
    context TEXT NOT NULL,
    said TEXT NOT NULL,
    UNIQUE (scope, session, place)
);
CREATE TABLE IF NOT EXISTS memorybench_handles (
    scope TEXT NOT NULL,
    session TEXT NOT NULL,
    place INTEGER NOT NULL,
    kind TEXT NOT NULL,
    said TEXT NOT NULL,
    vector vector NOT NULL
);
CREATE INDEX IF NOT EXISTS memorybench_handles_of_scope ON memorybench_handles (scope, session);
CREATE TABLE IF NOT EXISTS memorybench_notes (
    scope TEXT NOT NULL,
    topic TEXT NOT NULL,
    said TEXT NOT NULL,
    UNIQUE (scope, topic)
);
"""
_PATIENCE = 10  # seconds to wait for a connection
_OPENING = 0x4D42636B  # "MBck": the advisory lock of those who create tables


class PostgresChunkStore:
    """Lives on one thread, with one connection, which is opened anew after it was lost.

    Vectors are compared with every handle of a scope: an approximate index would measure itself, not the method.
    """

    def __init__(self, address: str, schema: str = "") -> None:
        """`schema`: SQL that is run first, at every opening; of our tables, it may create some in another manner."""
        self._driver = _driver(address)
        self._address = address
        self._connection: Any = None
        try:
            with self._transaction() as db:
                db.execute("SELECT pg_advisory_xact_lock(%s)", (_OPENING,))
                self.store_id = _prepared(db, schema)
        except ServiceError as error:
            raise BadInput(
                _WHERE, f"Postgres can not be used: {error}", remedy="check connectionString; pgvector must be there"
            ) from error

    def replace(self, scope: str, session: str, chunks: Sequence[KeptChunk], handles: Sequence[Handle]) -> None:
        with self._transaction() as db, db.cursor() as cursor:
            cursor.execute("DELETE FROM memorybench_chunks WHERE scope = %s AND session = %s", (scope, session))
            cursor.execute("DELETE FROM memorybench_handles WHERE scope = %s AND session = %s", (scope, session))
            cursor.executemany(
                "INSERT INTO memorybench_chunks (scope, session, place, turns, context, said)"
                " VALUES (%s, %s, %s, %s, %s, %s)",
                [
                    (scope, session, kept.place, json.dumps(kept.turns), _storable(kept.context), _storable(kept.said))
                    for kept in chunks
                ],
            )
            cursor.executemany(
                "INSERT INTO memorybench_handles (scope, session, place, kind, said, vector)"
                " VALUES (%s, %s, %s, %s, %s, %s)",
                [
                    (scope, session, handle.place, handle.kind, _storable(handle.said), _as_text(handle.vector))
                    for handle in handles
                ],
            )

    def chunks(self, scope: str) -> Sequence[KeptChunk]:
        with self._transaction() as db:
            rows = db.execute(
                "SELECT session, place, turns, context, said FROM memorybench_chunks WHERE scope = %s"
                ' ORDER BY session COLLATE "C", place',
                (scope,),
            )
            return [
                KeptChunk(session, place, tuple(json.loads(turns)), *texts) for session, place, turns, *texts in rows
            ]

    def likenesses(self, scope: str, vector: bytes) -> Sequence[Likeness]:
        with self._transaction() as db:
            rows = db.execute(
                # <#> is the negative inner product, which is the cosine of vectors of length 1
                "SELECT session, place, kind, max(-(vector <#> %s::vector)) FROM memorybench_handles WHERE scope = %s"
                " GROUP BY session, place, kind",
                (_as_text(vector), scope),
            )
            return [Likeness(*row) for row in rows]

    def note(self, scope: str, topic: str, said: str) -> None:
        with self._transaction() as db:
            db.execute(
                "INSERT INTO memorybench_notes (scope, topic, said) VALUES (%s, %s, %s)"
                " ON CONFLICT (scope, topic) DO UPDATE SET said = excluded.said",
                (scope, topic, _storable(said)),
            )

    def noted(self, scope: str, topic: str) -> str | None:
        with self._transaction() as db:
            row = db.execute(
                "SELECT said FROM memorybench_notes WHERE scope = %s AND topic = %s", (scope, topic)
            ).fetchone()
            return row[0] if row else None

    def clear(self, scope: str) -> None:
        with self._transaction() as db:
            db.execute("DELETE FROM memorybench_chunks WHERE scope = %s", (scope,))
            db.execute("DELETE FROM memorybench_handles WHERE scope = %s", (scope,))
            db.execute("DELETE FROM memorybench_notes WHERE scope = %s", (scope,))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        try:
            if self._connection is None or self._connection.closed:
                self._connection = self._driver.connect(self._address, connect_timeout=_PATIENCE)
            with self._connection.transaction():
                yield self._connection
        except self._driver.OperationalError as error:
            self.close()
            raise Transient(f"Postgres: {_one_line(error)}") from error
        except self._driver.Error as error:
            raise ServiceError(f"Postgres: {_one_line(error)}") from error


def _driver(address: str) -> Any:
    """psycopg, if it is here and can read the address. Untyped: a type checker need not have it."""
    try:
        driver = import_module("psycopg")
    except ImportError as error:
        raise BadInput(
            _WHERE, f"psycopg is not installed ({error})", remedy='pip install "memorybench[postgres]"'
        ) from None
    try:
        driver.conninfo.conninfo_to_dict(address)
    except driver.ProgrammingError:
        # not quoted: what can not be read may be a password
        raise BadInput(
            f"{_WHERE}.connectionString", "is no address of Postgres", expected="postgresql://user@host/database"
        ) from None
    return driver


def _prepared(db: Any, schema: str) -> str:
    """Creates what is missing; the incarnation of what is there."""
    db.execute("CREATE EXTENSION IF NOT EXISTS vector")
    if schema:
        db.execute(schema.encode())
    db.execute(_TABLES)
    if db.execute("SELECT incarnation FROM memorybench_store").fetchone() is None:
        db.execute("INSERT INTO memorybench_store VALUES (%s)", (secrets.token_hex(16),))
    return str(db.execute("SELECT incarnation FROM memorybench_store").fetchone()[0])


def _as_text(vector: bytes) -> str:
    """As pgvector reads it."""
    import numpy as np

    return json.dumps(np.frombuffer(vector, np.float32).tolist())


def _storable(text: str) -> str:
    """Postgres holds any character but NUL."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
