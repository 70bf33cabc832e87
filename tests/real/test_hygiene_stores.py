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
from memorybench.embedding.scripted import open_scripted_embedder
from memorybench.files.yaml_file import load_yaml
from memorybench.providers.mem0_oss import open_mem0_oss
from memorybench.secrets.canaries import find_secret
from memorybench.secrets.redaction import Redactor
from memorybench.stores.config_reading import read_store
from memorybench.stores.opening import open_store
from tests.stores.contract import ANN, BOB, TEA, StoreContract, contents, raw
from tests.suites.hygiene.running import bundled, outcomes

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
CONFIGS = Path(memorybench.catalog.__file__).parent / "stores"
PASSWORD = NewFact(content="My password is Kestrel-7h4Zq!")


def server() -> Path:
    installed = ROOT / ".venv-real" / "node_modules" / ".bin" / "mcp-server-memory"
    return Path(os.environ.get("MCP_MEMORY_SERVER") or installed)


@pytest.fixture
def _node() -> None:
    if shutil.which("node") is None:
        pytest.skip("node, which runs the MCP memory server, is not installed")
    if not server().exists():
        pytest.skip("npm package @modelcontextprotocol/server-memory is not installed (nor $MCP_MEMORY_SERVER set)")


@pytest.fixture
def _mem0() -> None:
    if find_spec("mem0") is None:
        pytest.skip("mem0ai is not installed")


@asynccontextmanager
async def mem0(name: str, folder: Path) -> AsyncIterator[Provider]:
    async with open_scripted_embedder() as embedder, open_mem0_oss(folder / "mem0", embedder, name=name) as provider:
        yield provider


def opened(name: str, folder: Path) -> AbstractAsyncContextManager[MemoryStore]:
    environment = {**os.environ, "MCP_MEMORY_SERVER": str(server())}
    config = read_store(load_yaml(CONFIGS / f"{name}.yaml"), environment)
    return open_store(config, folder, environment=environment, redactor=Redactor([]), open_provider=mem0)


def in_store(name: str, folder: Path, work: Callable[[MemoryStore], Awaitable[None]]) -> None:
    async def live() -> None:
        async with opened(name, folder) as store:
            await work(store)

    asyncio.run(live())


def played(name: str) -> dict[tuple[str, str], str]:
    """What each phase of each scenario that ships came to, or that it was skipped."""
    settled = outcomes(partial(opened, name), bundled(), self_checks=False)
    assert [outcome.failure for outcome in settled if outcome.status == "failed"] == []
    return {
        (outcome.trial.case_id, outcome.trial.labels["phase"]): outcome.shown.got or outcome.status
        for outcome in settled
    }


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

    def test_every_scenario_has_an_honest_result(self) -> None:
        results = played("mcp-memory")
        assert results["memory-secret-rejection", "violation"] == "detected", "it stores what it should refuse"
        assert results["memory-deletion-on-request", "well_behaved"] == "compliant"
        assert results["memory-cross-user-leak", "well_behaved"] == "skipped"
        assert results["memory-curation-conservatism", "well_behaved"] == "skipped"
        assert {got for (_, phase), got in results.items() if phase == "violation"} <= {"detected", "skipped"}

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

    def test_every_scenario_has_an_honest_result(self) -> None:
        results = played("mem0-oss")
        assert results["memory-secret-rejection", "violation"] == "detected", "it stores what it should refuse"
        assert results["memory-deletion-on-request", "well_behaved"] == "violated", "its history keeps what was deleted"
        assert results["memory-cross-user-leak", "well_behaved"] == "compliant"
        assert results["memory-curation-conservatism", "well_behaved"] == "skipped"
        violations = {got for (_, phase), got in results.items() if phase == "violation"}
        assert violations == {"detected", "defended", "skipped"}, "it lacks curate, and separates users"

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
            with pytest.raises(ServiceError, match="memory not found"):
                await store.update(ANN, "nobody", "Nothing")
            with pytest.raises(ServiceError, match="memory not found"):
                await store.forget(ANN, "nobody")

        in_store("mem0-oss", tmp_path, live)
