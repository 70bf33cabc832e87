"""Memory systems on this machine: each adds, finds, updates, resumes and clears, in one table.

The table is printed at the end of the tests. Models and embedders are scripted, so that only the systems' own time
counts.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

from memorybench.core.contracts import Model, Provider, Scope
from memorybench.core.conversation import Session, Turn
from memorybench.core.errors import ServiceError
from memorybench.core.spending import Spending, Tally
from memorybench.providers.agent_files import MemoryMd, MemoryTool
from memorybench.providers.aqrag import Aqrag
from memorybench.providers.bm25 import Bm25
from memorybench.providers.hybrid import Hybrid
from memorybench.testing import ProviderContract
from tests.doubles.scripted_embedder import open_scripted_embedder
from tests.doubles.scripted_model import ScriptedModel
from tests.providers.chunked import config

# LangMem imports names that LangGraph has deprecated
if TYPE_CHECKING:  # a plug-in is imported by pytest
    from tests.real.local_chroma import Chroma

pytest_plugins = ("tests.real.local_chroma", "tests.real.local_postgres")
pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

HOME = Scope(run="r", benchmark="b", provider="p", haystack="home")
AWAY = HOME.model_copy(update={"haystack": "away"})
COST = Spending(calls=1, input_tokens=100, output_tokens=10, cost=0.001)
Opened = AbstractAsyncContextManager[Provider]


def sessions(count: int = 20) -> list[Session]:
    plain = [
        Session(id=f"s{n}", turns=(Turn(role="user", content=f"Day {n}: the weather was mild and nothing happened."),))
        for n in range(count)
    ]
    plain[3] = Session(id="old", turns=(Turn(role="user", content="My cat is called Tofu."),))
    plain[15] = Session(id="new", turns=(Turn(role="user", content="My cat is called Mochi now, not Tofu."),))
    return plain


def note_taker(turns: Sequence[Turn]) -> str:
    """A model that keeps the latest name of the cat, as commands of the memory tool."""
    conversation = turns[-1].content.partition("<conversation")[2]
    if "My cat" not in conversation:
        return json.dumps({"commands": []})
    name = "Mochi" if "Mochi" in conversation else "Tofu"
    written = {"command": "create", "path": "/memories/cat.md", "file_text": f"The cat is called {name}."}
    return json.dumps({"commands": [written]})


@asynccontextmanager
async def as_opened(provider: Any) -> AsyncIterator[Provider]:
    yield provider


@asynccontextmanager
async def open_hybrid(folder: Path) -> AsyncIterator[Provider]:
    async with open_scripted_embedder() as embedder, Hybrid.open_file(folder / "hybrid.db", embedder) as provider:
        yield provider


@asynccontextmanager
async def open_mnemosyne(folder: Path) -> AsyncIterator[Provider]:
    if find_spec("mnemosyne") is None:
        pytest.skip("mnemosyne-memory is not installed")
    from memorybench.providers import mnemosyne

    async with mnemosyne.open_mnemosyne(folder / "mnemosyne") as provider:
        yield provider


def manager_model(turns: Sequence[Turn]) -> str:
    """A model that calls LangMem's tools: it changes the name of a known cat, and inserts a new one."""
    existing = re.search(r"<instance id=(\w+)", turns[0].content)
    conversation = turns[1].content
    if "My cat" not in conversation:
        return json.dumps({"calls": []})
    text = f"The cat is called {'Mochi' if 'Mochi' in conversation else 'Tofu'}."
    if existing is None:
        return json.dumps({"calls": [{"name": "Memory", "arguments": {"content": text}}]})
    patches = [{"op": "replace", "path": "/content", "value": text}]
    arguments = {"json_doc_id": existing[1], "planned_edits": "the name", "patches": patches}
    return json.dumps({"calls": [{"name": "PatchDoc", "arguments": arguments}]})


@asynccontextmanager
async def open_langmem(folder: Path, model: Model | None = None) -> AsyncIterator[Provider]:
    if find_spec("langmem") is None:
        pytest.skip("langmem is not installed")
    from memorybench.providers import langmem

    model = model or ScriptedModel(manager_model, spent=COST)
    async with (
        open_scripted_embedder() as embedder,
        langmem.open_langmem(folder / "langmem", embedder, model) as provider,
    ):
        yield provider


@asynccontextmanager
async def open_mem0(folder: Path) -> AsyncIterator[Provider]:
    if find_spec("mem0") is None:
        pytest.skip("mem0ai is not installed")
    from memorybench.providers import mem0_oss

    async with (
        open_scripted_embedder() as embedder,
        mem0_oss.open_mem0_oss(folder / "mem0", embedder) as provider,
    ):
        yield provider


@asynccontextmanager
async def open_chroma(chroma: Chroma) -> AsyncIterator[Provider]:
    async with open_scripted_embedder() as embedder, chroma.open(embedder) as provider:
        yield provider


@asynccontextmanager
async def open_pgvector(address: str, folder: Path) -> AsyncIterator[Provider]:
    """Open the provider that keeps chunks in Postgres, without the model that may write questions about them."""
    settings = config(
        "aqrag", database={"type": "postgres", "connectionString": address}, enhancement={"enabled": False}
    )
    async with open_scripted_embedder() as embedder, Aqrag.open_file(settings, folder, embedder, None) as provider:
        yield provider


SYSTEMS: dict[str, Callable[[Path], Opened]] = {
    "bm25": lambda folder: Bm25.open_file(folder / "bm25.db"),
    "hybrid": open_hybrid,
    "memory-md": lambda folder: as_opened(MemoryMd(folder / "md", None, "memory-md")),
    "memory-tool": lambda folder: as_opened(
        MemoryTool(folder / "tool", ScriptedModel(note_taker, spent=COST), "memory-tool")
    ),
    "mem0-oss": open_mem0,
    "mnemosyne": open_mnemosyne,
    "langmem": open_langmem,
}


async def measure(open_system: Callable[[Path], Opened], folder: Path) -> dict[str, Any]:
    """Perform every operation, and return a row of the table."""
    all_sessions = sessions()
    question = "What is my cat called?"
    adds = []
    with Tally() as tally:
        async with open_system(folder) as provider:
            store_id = provider.store_id
            for scope in (HOME, AWAY):
                for one in all_sessions[:10]:
                    adds.append(await elapsed(_add(provider, scope, one)))
        # another process resumes, and the cat gets a new name
        start = time.perf_counter()
        async with open_system(folder) as provider:
            assert provider.store_id == store_id, "the data is still there"
            before = await provider.search(HOME, question, 10)
            resume = (time.perf_counter() - start) * 1000
            assert any("Tofu" in memory.content for memory in before)
            for one in all_sessions[10:]:
                adds.append(await elapsed(_add(provider, HOME, one)))
            searches = [await elapsed(provider.search(HOME, question, 10)) for _ in range(10)]
            found = await provider.search(HOME, question, 10)
            clear = await elapsed(provider.clear(HOME))
            assert not await provider.search(HOME, question, 10), "the scope is cleared"
            assert await provider.search(AWAY, question, 10), "the other scope is not"
    return {
        "add ms": median(adds),
        "search ms": median(searches),
        "resume ms": resume,
        "clear ms": clear,
        "new found": any("Mochi" in memory.content for memory in found),
        "old gone": not any("called Tofu" in memory.content for memory in found),
        "chars": sum(len(memory.content) for memory in found),
        "calls/add": tally.spent.calls / len(adds),
        "$/add": None if tally.spent.cost is None else tally.spent.cost / len(adds),
    }


async def _add(provider: Provider, scope: Scope, one: Session) -> None:
    await provider.wait_until_searchable(scope, [await provider.add(scope, one)])


async def elapsed(work: Awaitable[Any]) -> float:
    """Return the milliseconds that it takes."""
    start = time.perf_counter()
    await work
    return (time.perf_counter() - start) * 1000


def opener(name: str, request: pytest.FixtureRequest) -> Callable[[Path], Opened]:
    """Return the function that opens a system; its server is started if it has one."""
    if name == "chroma":
        chroma = request.getfixturevalue("chroma")
        return lambda _: open_chroma(chroma)
    if name == "pgvector":
        address = request.getfixturevalue("database")
        return lambda folder: open_pgvector(address, folder)
    return SYSTEMS[name]


@pytest.mark.usefixtures("leftovers_collected")
@pytest.mark.parametrize("name", [*SYSTEMS, "chroma", "pgvector"])
def test_a_system_adds_finds_updates_resumes_and_clears(
    name: str, tmp_path: Path, add_row: Callable[[str, dict[str, Any]], None], request: pytest.FixtureRequest
) -> None:
    row = asyncio.run(measure(opener(name, request), tmp_path))
    add_row(name, row)
    assert row["new found"], "the new name is found"
    assert (row["calls/add"] > 0) == (name in ("memory-tool", "langmem"))
    assert row["old gone"] == (name in ("memory-tool", "langmem")), "only a model knows that a name has changed"


def test_langmem_names_the_sessions_of_a_memory_and_adds_each_once(tmp_path: Path) -> None:
    old, new = (next(one for one in sessions() if one.id == id) for id in ("old", "new"))
    asked: list[str] = []

    def counted(turns: Sequence[Turn]) -> str:
        asked.append(turns[1].content)
        return manager_model(turns)

    async def live() -> None:
        for added in ([old], [old, new]):  # opened twice: what was added is not added again
            async with open_langmem(tmp_path, ScriptedModel(counted)) as provider:
                for one in added:
                    await provider.add(HOME, one)
                [memory] = await provider.search(HOME, "What is my cat called?", 10)
        assert memory.content == "The cat is called Mochi."
        assert memory.sources == ("old", "new")

    asyncio.run(live())
    assert len(asked) == 2


@pytest.mark.parametrize("reply", ["", "no", '{"calls": 3}', '{"calls": [{"name": "Memory"}]}'])
def test_an_unreadable_reply_to_langmem_fails_the_add(tmp_path: Path, reply: str) -> None:
    async def live() -> None:
        async with open_langmem(tmp_path, ScriptedModel([reply])) as provider:
            with pytest.raises(ServiceError, match="expected a JSON object"):
                await provider.add(HOME, sessions()[3])
            assert await provider.search(HOME, "cat", 10) == []

    asyncio.run(live())


class TestMnemosyne(ProviderContract):
    def open_provider(self, folder: Path) -> Opened:
        return open_mnemosyne(folder)
