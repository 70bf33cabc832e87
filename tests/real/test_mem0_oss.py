"""mem0ai from PyPI with its embedded Qdrant, in process; the contract holds for it without exception."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from memorybench.core.contracts import Completion, Model, Provider
from memorybench.core.conversation import Memory, Turn
from memorybench.core.errors import Denied, MemorybenchError, Transient
from memorybench.core.spending import Spending, Tally
from memorybench.providers.mem0_oss import Mem0Provider, open_mem0_oss
from memorybench.testing import ProviderContract
from tests.doubles.scripted_embedder import open_scripted_embedder
from tests.doubles.scripted_model import ScriptedModel
from tests.providers.embedded import AWAY, HOME, fill, session

if find_spec("mem0") is None:
    pytest.skip("mem0ai is not installed", allow_module_level=True)

pytestmark = pytest.mark.real

COST = Spending(calls=1, input_tokens=100, output_tokens=10, cost=0.25)


@asynccontextmanager
async def opened(folder: Path, model: Model | None = None) -> AsyncIterator[Mem0Provider]:
    async with open_scripted_embedder() as embedder, open_mem0_oss(folder / "mem0", embedder, model=model) as provider:
        yield provider


def extracting(*facts: str) -> str:
    return json.dumps({"memory": [{"id": str(n), "text": fact} for n, fact in enumerate(facts)]})


class TestContract(ProviderContract):
    @asynccontextmanager
    async def open_provider(self, folder: Path) -> AsyncIterator[Provider]:
        async with opened(folder) as provider:
            yield provider


def test_a_memory_is_returned_with_its_event_time(tmp_path: Path) -> None:
    async def found() -> Memory:
        async with opened(tmp_path) as provider:
            await fill(provider, [session("s", "A kite flew.", speaker="Ann")])
            return (await provider.search(HOME, "kite", 1))[0]

    assert asyncio.run(found()).content == "[2024-03-02] Ann: A kite flew."


def test_the_cost_of_extraction_is_charged_to_its_add(tmp_path: Path) -> None:
    asked: list[str] = []

    def extract(turns: Sequence[Turn]) -> str:
        asked.append(turns[-1].content)
        return extracting("Ann owns a kite", "Ann lives in Köln")

    async def live() -> tuple[list[Spending], list[Memory]]:
        async with opened(tmp_path, ScriptedModel(extract, spent=COST)) as provider:
            spent = []
            for scope in (HOME, AWAY):
                with Tally() as tally:
                    await fill(provider, [session("s", "I flew my kite.", "In Köln.", speaker="Ann")], scope)
                spent.append(tally.spent)
            with Tally() as tally:
                found = await provider.search(HOME, "Ann kite", 5)
            return [*spent, tally.spent], list(found)

    spent, found = asyncio.run(live())
    assert spent == [COST, COST, Spending()]
    assert [(memory.content, memory.sources) for memory in found] == [
        ("[2024-03-02] Ann owns a kite", ("s",)),
        ("[2024-03-02] Ann lives in Köln", ("s",)),
    ]
    assert "I flew my kite." in asked[0]
    assert "The Observation Date and the Current Date are both 2024-03-02." in asked[0]


def test_concurrent_adds_are_charged_separately(tmp_path: Path) -> None:
    prices = {f"fact{n}": Spending(calls=1, cost=float(n)) for n in range(1, 5)}

    def extract(turns: Sequence[Turn]) -> Completion:
        name = next(name for name in prices if f"the {name}." in turns[-1].content)
        return Completion(text=extracting(name), finish="stop", model="m", spent=prices[name])

    async def live() -> list[float | None]:
        async with opened(tmp_path, ScriptedModel(extract)) as provider:

            async def add(name: str) -> float | None:
                scope = HOME.model_copy(update={"haystack": name})
                with Tally() as tally:
                    await fill(provider, [session("s", f"Here is the {name}.")], scope)
                return tally.spent.cost

            return list(await asyncio.gather(*(add(name) for name in prices)))

    assert asyncio.run(live()) == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("failure", [Denied("no such key"), Transient("busy", retry_after=3.0)])
def test_a_failing_model_fails_the_add_once_and_as_itself(tmp_path: Path, failure: MemorybenchError) -> None:
    ledger = tmp_path / "ledger"

    async def add() -> None:
        model = ScriptedModel([failure, extracting("Ann owns a kite")], ledger=ledger)
        async with opened(tmp_path, model) as provider:
            with pytest.raises(type(failure)) as raised:
                await fill(provider, [session("s", "I flew my kite.")])
            assert raised.value is failure
            assert len(ledger.read_text().splitlines()) == 1, "mem0 asked again by itself"
            await fill(provider, [session("s", "I flew my kite.")])
            assert len(await provider.list(HOME)) == 1

    asyncio.run(add())


def test_extracting_again_after_a_lost_reply_leaves_no_duplicates(tmp_path: Path) -> None:
    async def held() -> list[str]:
        replies = [extracting("Ann owns a kite"), extracting("Ann has a kite"), extracting("Bob owns a bus")]
        async with opened(tmp_path, ScriptedModel(replies)) as provider:
            for name in ("s", "s", "t"):
                await fill(provider, [session(name, "I flew my kite.")])
            return sorted(memory.content for memory in await provider.list(HOME))

    assert asyncio.run(held()) == ["[2024-03-02] Ann has a kite", "[2024-03-02] Bob owns a bus"]


def test_keys_of_other_services_and_the_home_folder_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("OPENROUTER_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "sentinel-key-4711")
    for name in ("OPENAI_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    before = dict(os.environ)

    async def found() -> int:
        async with opened(tmp_path, ScriptedModel([extracting("Ann owns a kite")])) as provider:
            await fill(provider, [session("s", "I flew my kite.")])
            return len(await provider.search(HOME, "kite", 5))

    assert asyncio.run(found()) == 1
    assert dict(os.environ) == before
    assert list(home.iterdir()) == []


def test_a_cleared_scope_leaves_nothing_on_disk(tmp_path: Path) -> None:
    async def cleared() -> None:
        async with opened(tmp_path) as provider:
            await fill(provider, [session("s", "My zebrafinch sings.")])
            await provider.clear(HOME)

    asyncio.run(cleared())
    left = [file for file in (tmp_path / "mem0").rglob("*") if file.is_file()]
    assert not [file for file in left if b"zebrafinch" in file.read_bytes()]
