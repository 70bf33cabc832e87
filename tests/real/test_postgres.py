"""The providers that keep chunks, with PostgreSQL and pgvector in the place of SQLite."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.contracts import Provider
from memorybench.core.errors import BadInput, Transient
from memorybench.providers.aqrag import Aqrag
from memorybench.providers.contextual_retrieval import ContextualRetrieval
from memorybench.providers.storage.postgres_store import PostgresChunkStore
from memorybench.testing import ProviderContract
from tests.doubles.scripted_embedder import ScriptedEmbedder
from tests.doubles.scripted_model import ScriptedModel
from tests.providers.chunked import chunk, config, questioner
from tests.providers.embedded import HOME, fill, session

pytest_plugins = ("tests.real.local_postgres",)
pytestmark = pytest.mark.real


@pytest.fixture
def database(postgres: str) -> str:
    """An empty one."""
    import psycopg

    with psycopg.connect(f"{postgres}postgres", autocommit=True) as db:
        db.execute("DROP DATABASE IF EXISTS trial WITH (FORCE)")
        db.execute("CREATE DATABASE trial")
    return f"{postgres}trial"


def in_postgres(address: str, **more: str) -> dict[str, Any]:
    return {"type": "postgres", "connectionString": address, **more}


class _OnPostgres(ProviderContract):
    @pytest.fixture(autouse=True)
    def _use(self, database: str) -> None:
        self.database = in_postgres(database)


class TestAqragOnPostgres(_OnPostgres):
    @asynccontextmanager
    async def open_provider(self, folder: Path) -> AsyncIterator[Provider]:
        settings = config("aqrag", database=self.database)
        async with Aqrag.open_file(settings, folder / "unused", ScriptedEmbedder(256), questioner()) as provider:
            yield provider


class TestContextualRetrievalOnPostgres(_OnPostgres):
    @asynccontextmanager
    async def open_provider(self, folder: Path) -> AsyncIterator[Provider]:
        settings = config("contextual-retrieval", database=self.database)
        model = ScriptedModel(lambda _: "Two people talk.")
        opening = ContextualRetrieval.open_file(settings, folder / "unused", ScriptedEmbedder(256), model)
        async with opening as provider:
            yield provider


def test_both_databases_rank_alike(database: str, tmp_path: Path) -> None:
    told = [session(f"s{n}", f"The garden has {n} beds.", "A zebrafinch sings. " * n) for n in range(1, 8)]

    async def ranked(**local: Any) -> list[tuple[str, float]]:
        settings = config("aqrag", **local)
        async with Aqrag.open_file(settings, tmp_path / "aqrag.db", ScriptedEmbedder(256), questioner()) as provider:
            await fill(provider, told)
            found = await provider.search(HOME, "Which zebrafinch sings in the garden?", 5)
            return [(memory.id, round(memory.score or 0.0, 5)) for memory in found]

    assert asyncio.run(ranked(database=in_postgres(database))) == asyncio.run(ranked())


def test_a_schema_of_ones_own_is_applied_first_and_every_time(database: str, tmp_path: Path) -> None:
    import psycopg

    schema = """
    CREATE TABLE IF NOT EXISTS openings (at TIMESTAMPTZ DEFAULT now());
    INSERT INTO openings DEFAULT VALUES;
    CREATE TABLE IF NOT EXISTS memorybench_notes (
        scope TEXT NOT NULL, topic TEXT NOT NULL, said TEXT NOT NULL, noted TIMESTAMPTZ DEFAULT now(),
        UNIQUE (scope, topic)
    );
    """
    (tmp_path / "tables.sql").write_text(schema)
    settings = config("aqrag", database=in_postgres(database, schema="./tables.sql"))

    async def live() -> None:
        config_file = tmp_path / "aqrag.yaml"
        opening = Aqrag.open_file(
            settings, tmp_path / "unused", ScriptedEmbedder(64), questioner(), config_file=config_file
        )
        async with opening as provider:
            await fill(provider, [session("s1", "I own a dog.")])

    asyncio.run(live())
    asyncio.run(live())
    with psycopg.connect(database) as db:
        assert db.execute("SELECT count(*) FROM openings").fetchone() == (2,)
        assert db.execute("SELECT count(noted) FROM memorybench_notes").fetchone() == (1,)


def test_a_lost_connection_is_transient_and_the_next_call_has_a_new_one(database: str) -> None:
    import psycopg

    store = PostgresChunkStore(database)
    store.replace("scope", "s1", [chunk("s1", 1, "dog")], [])
    with psycopg.connect(database) as db:
        db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    with pytest.raises(Transient):
        store.entries("scope")
    assert store.entries("scope") == [chunk("s1", 1, "dog")]
    store.close()


def test_a_nul_character_is_replaced_not_refused(database: str) -> None:
    store = PostgresChunkStore(database)
    store.replace("scope", "s1", [chunk("s1", 1, "a\0b")], [])
    assert store.entries("scope")[0].text == "a\N{REPLACEMENT CHARACTER}b"
    store.close()


def test_an_invalid_address_is_rejected_and_not_printed(postgres: str) -> None:
    with pytest.raises(BadInput) as caught:
        PostgresChunkStore("sesame-open")
    assert "sesame" not in str(caught.value)


def test_a_missing_database_is_reported_on_one_line(postgres: str) -> None:
    with pytest.raises(BadInput, match="check connectionString") as caught:
        PostgresChunkStore(f"{postgres}no-such")
    assert "\n" not in str(caught.value)
