"""The shipped Chroma config against the server that Chroma publishes on PyPI."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memorybench.core.contracts import Batching, Provider, Receipt, Scope
from memorybench.core.conversation import Session, Turn
from memorybench.embedding.local import open_local_embedder
from memorybench.testing import ProviderContract
from tests.doubles.scripted_embedder import open_scripted_embedder

if TYPE_CHECKING:  # a plug-in is imported by pytest
    from tests.real.local_chroma import Chroma

pytest_plugins = ("tests.real.local_chroma",)
pytestmark = pytest.mark.real

HOME = Scope(run="run-1", benchmark="test", provider="chroma", haystack="home")


class TestChroma(ProviderContract):
    @pytest.fixture(autouse=True)
    def _use(self, chroma: Chroma) -> None:
        self.chroma = chroma

    @asynccontextmanager
    async def open_provider(self, folder: Path) -> AsyncIterator[Provider]:
        async with open_scripted_embedder() as embedder, self.chroma.open(embedder) as provider:
            yield provider

    def test_the_order_of_adding_does_not_change_what_is_found(self, tmp_path: Path) -> None:
        """Not even by a rank, says the contract; Chroma ranks equal distances by age, so ranks are left out here."""

        async def found(provider: Provider, haystack: str, sessions: Sequence[Session]) -> set[tuple[str, ...] | None]:
            scope = HOME.model_copy(update={"haystack": haystack})
            await provider.wait_until_searchable(scope, [await provider.add(scope, session) for session in sessions])
            return {memory.sources for memory in await provider.search(scope, "a remark on gardens", 50)}

        async def both_ways() -> None:
            sessions = [talk(n) for n in range(6)]
            async with self.open_provider(tmp_path) as provider:
                forward = await found(provider, "forward", sessions)
                assert len(forward) == 30
                assert forward == await found(provider, "backward", sessions[::-1])

        asyncio.run(both_ways())


def talk(n: int) -> Session:
    return Session(id=f"s{n}", turns=tuple(Turn(role="user", content=f"Remark {n}.{m} on gardens.") for m in range(5)))


def test_sessions_go_in_by_the_batch_and_clear_leaves_no_collection(chroma: Chroma) -> None:
    async def live() -> None:
        async with open_scripted_embedder() as embedder, chroma.open(embedder) as provider:
            assert isinstance(provider, Batching)
            sessions = [talk(n) for n in range(50)]
            await provider.wait_until_searchable(HOME, [await provider.add_batch(HOME, sessions)])
            await provider.add(HOME, sessions[0])
            [name] = chroma.collections()
            assert chroma.count(name) == 250
            [best] = await provider.search(HOME, "Remark 7.3 on gardens", 1)
            assert best.sources is not None
            assert best.sources[0] == "s7"
            await provider.clear(HOME)
            assert chroma.collections() == []
            await provider.clear(HOME)

    asyncio.run(live())


def test_another_process_finds_the_memories_and_their_sources(chroma: Chroma) -> None:
    async def add() -> Receipt:
        async with open_scripted_embedder() as embedder, chroma.open(embedder) as provider:
            return await provider.add(HOME, talk(3))

    async def find(receipt: Receipt) -> None:
        async with open_scripted_embedder() as embedder, chroma.open(embedder) as provider:
            provider.restore(HOME, [receipt])
            [best] = await provider.search(HOME, "Remark 3.4", 1)
            assert best.sources == ("s3", "s3:5")

    asyncio.run(find(asyncio.run(add())))


def test_our_own_vectors_find_by_meaning(chroma: Chroma) -> None:
    pytest.importorskip("wordllama")

    async def live() -> None:
        async with open_local_embedder() as embedder, chroma.open(embedder) as provider:
            told = ["My cat is called Otto.", "We drove to Lisbon in May.", "I started a job at a bakery."]
            turns = tuple(Turn(role="user", content=text) for text in told)
            await provider.wait_until_searchable(HOME, [await provider.add(HOME, Session(id="told", turns=turns))])
            [best] = await provider.search(HOME, "What pet do I have?", 1)
            assert "Otto" in best.content

    asyncio.run(live())
