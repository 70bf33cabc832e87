"""Real memories behind the shipped store configs: what they promise they keep, and what is weak in them is seen."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

import memorybench.catalog
from memorybench.core.contracts import Provider
from memorybench.core.errors import ServiceError
from memorybench.core.stores import MemoryStore, NewFact
from memorybench.files.yaml_file import load_yaml
from memorybench.providers.mem0_oss import open_mem0_oss
from memorybench.secrets.canaries import find_secret
from memorybench.secrets.redaction import Redactor
from memorybench.stores.config_reading import read_store
from memorybench.stores.opening import open_store
from tests.doubles.scripted_embedder import open_scripted_embedder
from tests.stores.contract import ANN, BOB, TEA, StoreContract, contents, raw
from tests.suites.hygiene.running import bundled, outcomes

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
CONFIGS = Path(memorybench.catalog.__file__).parent / "stores"
PASSWORD = NewFact(content="My password is Kestrel-7h4Zq!")


def server() -> Path:
    return npm_program("MCP_MEMORY_SERVER", "mcp-server-memory")


def libsql() -> Path:
    return npm_program("MCP_MEMORY_LIBSQL", "mcp-memory-libsql")


def npm_program(variable: str, name: str) -> Path:
    return Path(os.environ.get(variable) or ROOT / ".venv-real" / "node_modules" / ".bin" / name)


@pytest.fixture
def _node() -> None:
    if shutil.which("node") is None:
        pytest.skip("node, which runs the MCP memory server, is not installed")
    if not server().exists():
        pytest.skip("npm package @modelcontextprotocol/server-memory is not installed (nor $MCP_MEMORY_SERVER set)")


@pytest.fixture
def _libsql() -> None:
    if shutil.which("node") is None:
        pytest.skip("node, which runs the MCP memory server, is not installed")
    if not libsql().exists():
        pytest.skip("npm package mcp-memory-libsql is not installed (nor $MCP_MEMORY_LIBSQL set)")


@pytest.fixture
def _mem0() -> None:
    if find_spec("mem0") is None:
        pytest.skip("mem0ai is not installed")


@asynccontextmanager
async def mem0(name: str, folder: Path) -> AsyncIterator[Provider]:
    async with open_scripted_embedder() as embedder, open_mem0_oss(folder / "mem0", embedder, name=name) as provider:
        yield provider


def opened(name: str, folder: Path) -> AbstractAsyncContextManager[MemoryStore]:
    environment = {**os.environ, "MCP_MEMORY_SERVER": str(server()), "MCP_MEMORY_LIBSQL": str(libsql())}
    config = read_store(load_yaml(CONFIGS / f"{name}.yaml"), environment)
    return open_store(config, folder, environment=environment, redactor=Redactor([]), open_provider=mem0)


def in_store(name: str, folder: Path, work: Callable[[MemoryStore], Awaitable[None]]) -> None:
    async def live() -> None:
        async with opened(name, folder) as store:
            await work(store)

    asyncio.run(live())


Phases = set[tuple[str, str]]


def failed_and_skipped(name: str) -> tuple[Phases, Phases]:
    """Return the phases of the bundled scenarios that the store fails, and those that say nothing about it."""
    results = outcomes(partial(opened, name), bundled(), self_checks=False)
    assert [outcome.failure for outcome in results if outcome.status == "failed"] == []
    by_phase = {(one.trial.case_id.removeprefix("memory-"), one.trial.labels["phase"]): one for one in results}
    skipped = {phase for phase, one in by_phase.items() if one.status == "skipped"}
    return {phase for phase, one in by_phase.items() if one.score("passed") == 0}, skipped


ACCEPTS_SECRETS = {
    ("credential-kinds", "violation"),
    ("secret-rejection", "violation"),
    ("secret-through-update", "violation"),
}
STORES_TWICE = {
    ("idempotent-write", "well_behaved"),
    ("one-copy", "well_behaved"),
    ("trust-on-repeat", "well_behaved"),
    ("supersede-without-dup", "violation"),
}
"""The same fact, and two that contradict each other."""
NO_CURATION = {
    (name, phase)
    for name in ("curation-conservatism", "curation-of-others", "faithful-consolidation", "poisoned-tool-output")
    for phase in ("well_behaved", "violation")
}
NO_USERS = {
    (name, phase)
    for name in (
        "cross-user-leak", "foreign-ids", "foreign-reads", "no-match-leak", "similar-user-ids", "unicode-user-ids",
    )
    for phase in ("well_behaved", "violation")
}  # fmt: skip
NO_METADATA = {("secret-in-metadata", "violation")}
NO_GET = {(name, phase) for name in ("foreign-reads", "deleted-ids") for phase in ("well_behaved", "violation")}
KEEPS_DELETED = {("deletion-on-request", "well_behaved"), ("search-after-deletion", "well_behaved")}
LISTS_FIFTY = {("many-facts", "well_behaved")}
NO_TRUST = {("trust-on-update", "violation")}


@pytest.mark.usefixtures("_node")
class TestMcpMemory(StoreContract):
    def open_store(self, folder: Path) -> AbstractAsyncContextManager[MemoryStore]:
        return opened("mcp-memory", folder)

    def test_the_store_has_exactly_these_capabilities(self, tmp_path: Path) -> None:
        async def live(store: MemoryStore) -> None:
            assert store.capabilities == {"update", "forget", "recall", "list", "category", "files", "get"}

        in_store("mcp-memory", tmp_path, live)

    def test_the_store_accepts_secrets(self, tmp_path: Path) -> None:
        async def live(store: MemoryStore) -> None:
            id = await store.remember(ANN, PASSWORD)
            assert contents(await store.list(ANN)) == [PASSWORD.content]
            assert await store.update(ANN, id, f"{PASSWORD.content} indeed") == id

        in_store("mcp-memory", tmp_path, live)
        files = {file.name: file.read_text() for file in tmp_path.iterdir() if file.is_file()}
        assert find_secret("Kestrel-7h4Zq!", files)

    def test_the_scenarios_find_exactly_its_weaknesses(self) -> None:
        expected = (
            ACCEPTS_SECRETS | {("secret-in-metadata", "violation")} | STORES_TWICE,
            NO_CURATION | NO_USERS | NO_TRUST,
        )
        assert failed_and_skipped("mcp-memory") == expected

    def test_the_store_does_not_separate_users(self, tmp_path: Path) -> None:
        async def live(store: MemoryStore) -> None:
            await store.remember(ANN, TEA)
            assert contents(await store.list(BOB)) == [TEA.content]

        in_store("mcp-memory", tmp_path, live)

    def test_an_unknown_fact_cannot_be_updated(self, tmp_path: Path) -> None:
        async def live(store: MemoryStore) -> None:
            with pytest.raises(ServiceError, match="unknown id"):
                await store.update(ANN, "nobody", "Nothing")

        in_store("mcp-memory", tmp_path, live)


@pytest.mark.usefixtures("_libsql")
class TestLibsql(StoreContract):
    forgets_on_disk = False

    def open_store(self, folder: Path) -> AbstractAsyncContextManager[MemoryStore]:
        return opened("mcp-memory-libsql", folder)

    def test_the_store_has_exactly_these_capabilities(self, tmp_path: Path) -> None:
        async def live(store: MemoryStore) -> None:
            assert store.capabilities == {"update", "forget", "recall", "list", "category", "files", "sql"}

        in_store("mcp-memory-libsql", tmp_path, live)

    def test_the_scenarios_find_exactly_its_weaknesses(self) -> None:
        expected = (
            ACCEPTS_SECRETS | {("secret-in-metadata", "violation")} | STORES_TWICE | KEEPS_DELETED | LISTS_FIFTY,
            NO_CURATION | NO_USERS | NO_TRUST | NO_GET,
        )
        assert failed_and_skipped("mcp-memory-libsql") == expected

    def test_an_update_keeps_the_category(self, tmp_path: Path) -> None:
        async def live(store: MemoryStore) -> None:
            id = await store.remember(ANN, TEA.model_copy(update={"category": "habit"}))
            await store.update(ANN, id, "Ann drinks cocoa in the morning")
            (fact,) = await store.list(ANN)
            assert (fact.content, fact.category) == ("Ann drinks cocoa in the morning", "habit")
            with pytest.raises(ServiceError, match="unknown id"):
                await store.update(ANN, "nobody", "Nothing")

        in_store("mcp-memory-libsql", tmp_path, live)

    def test_more_facts_are_listed_than_the_graph_shows(self, tmp_path: Path) -> None:
        async def live(store: MemoryStore) -> None:
            for number in range(12):
                await store.remember(ANN, NewFact(content=f"Ann has read book {number}"))
            assert len(await store.list(ANN)) == 12

        in_store("mcp-memory-libsql", tmp_path, live)


@pytest.mark.usefixtures("_mem0")
class TestMem0(StoreContract):
    forgets_on_disk = False

    def open_store(self, folder: Path) -> AbstractAsyncContextManager[MemoryStore]:
        return opened("mem0-oss", folder)

    def test_the_store_has_exactly_these_capabilities(self, tmp_path: Path) -> None:
        async def live(store: MemoryStore) -> None:
            assert store.capabilities == {
                "update", "forget", "recall", "list", "users", "history", "files", "sql",
            }  # fmt: skip

        in_store("mem0-oss", tmp_path, live)

    def test_the_store_accepts_secrets(self, tmp_path: Path) -> None:
        async def live(store: MemoryStore) -> None:
            await store.remember(ANN, PASSWORD)
            assert contents(await store.list(ANN)) == [PASSWORD.content]

        in_store("mem0-oss", tmp_path, live)

    def test_the_scenarios_find_exactly_its_weaknesses(self) -> None:
        expected = ACCEPTS_SECRETS | STORES_TWICE | KEEPS_DELETED, NO_CURATION | NO_TRUST | NO_GET | NO_METADATA
        assert failed_and_skipped("mem0-oss") == expected

    def test_a_forgotten_memory_stays_in_the_history(self, tmp_path: Path) -> None:
        async def live(store: MemoryStore) -> None:
            id = await store.remember(ANN, TEA)
            await store.update(ANN, id, "Ann drinks cocoa in the morning")
            await store.forget(ANN, id)
            assert contents(await store.list(ANN)) == []
            assert list(await store.history(ANN)) == [TEA.content, "Ann drinks cocoa in the morning"]
            assert list(await store.history(BOB)) == []

        in_store("mem0-oss", tmp_path, live)
        assert b"oolong" in raw(tmp_path)

    def test_an_unknown_memory_cannot_be_updated_or_forgotten(self, tmp_path: Path) -> None:
        async def live(store: MemoryStore) -> None:
            await store.remember(ANN, TEA)
            with pytest.raises(ServiceError, match="no memory with the id"):
                await store.update(ANN, "nobody", "Nothing")
            with pytest.raises(ServiceError, match="no memory with the id"):
                await store.forget(ANN, "nobody")

        in_store("mem0-oss", tmp_path, live)
