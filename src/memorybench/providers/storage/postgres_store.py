"""Chunks in Postgres, searched by pgvector. The extra `postgres` installs the driver."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from memorybench.core.errors import BadInput, ServiceError, Transient

from .chunks import CREATE_TABLES, ChunkStore

_WHERE = "local.database"
_CONNECT_TIMEOUT = 10  # seconds
_CREATION_LOCK = 0x4D42636B  # "MBck": the advisory lock of processes that create tables


class PostgresChunkStore(ChunkStore):
    """Stores chunks in Postgres, over one connection, which is opened again after it was lost.

    A query is compared with every vector of a scope, without an approximate index, which would change the results.
    """

    prefix = "memorybench_"
    parameter = "%s"
    collation = 'COLLATE "C"'
    cosine = "-(vector <#> ?::vector)"  # <#> is the negative inner product: of vectors of length 1, the cosine

    def __init__(self, address: str, schema: str = "") -> None:
        """`schema` is SQL that runs at every opening, before memorybench creates the tables that do not exist yet."""
        self._driver = _load_driver(address)
        self._address = address
        self._connection: Any = None
        try:
            with self.transaction() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_CREATION_LOCK,))
                cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
                if schema:
                    cursor.execute(schema.encode())
                cursor.execute("CREATE TABLE IF NOT EXISTS memorybench_store (incarnation TEXT NOT NULL)")
                for statement in CREATE_TABLES:
                    cursor.execute(statement.replace("@VECTOR", "vector").replace("@", self.prefix))
                row = cursor.execute("SELECT incarnation FROM memorybench_store").fetchone()
                self.store_id = str(row[0]) if row else secrets.token_hex(16)
                if row is None:
                    cursor.execute("INSERT INTO memorybench_store VALUES (%s)", (self.store_id,))
        except ServiceError as error:
            raise BadInput(
                _WHERE,
                f"Postgres cannot be used: {error}",
                remedy="check connectionString, and that the server has the extension pgvector",
            ) from error

    def to_text(self, text: str) -> str:
        return text.replace("\0", "\N{REPLACEMENT CHARACTER}")  # Postgres stores any character but NUL

    def to_vector(self, vector: bytes) -> str:
        import numpy as np

        return json.dumps(np.frombuffer(vector, np.float32).tolist())

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        try:
            if self._connection is None or self._connection.closed:
                self._connection = self._driver.connect(self._address, connect_timeout=_CONNECT_TIMEOUT)
            with self._connection.transaction(), self._connection.cursor() as cursor:
                yield cursor
        except self._driver.OperationalError as error:
            self.close()
            raise Transient(f"Postgres: {_one_line(error)}") from error
        except self._driver.Error as error:
            raise ServiceError(f"Postgres: {_one_line(error)}") from error


def _load_driver(address: str) -> Any:
    """Import psycopg and return it. Raise BadInput if it is not installed or the address is invalid."""
    try:
        driver = import_module("psycopg")
    except ImportError as error:
        raise BadInput(
            _WHERE, f"psycopg is not installed ({error})", remedy='pip install "memorybench[postgres]"'
        ) from None
    try:
        driver.conninfo.conninfo_to_dict(address)
    except driver.ProgrammingError:
        # the address is not shown: it may contain a password
        where, expected = f"{_WHERE}.connectionString", "postgresql://user@host/database"
        raise BadInput(where, "invalid address of a Postgres database", expected=expected) from None
    return driver


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
