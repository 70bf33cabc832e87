import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memorybench.core.conversation import Memory
from memorybench.core.trials import Subject
from memorybench.providers.dense import Dense, DenseSettings
from memorybench.providers.storage.turns import TurnMemory
from tests.doubles.scripted_embedder import ScriptedEmbedder, open_scripted_embedder
from tests.providers.embedded import HOME, fill, session, sessions_of


class CompassEmbedder:
    """Vectors in two directions, of any length."""

    subject = Subject(role="embedder", name="compass")

    def __init__(self, **directions: tuple[float, float]) -> None:
        self._directions = directions
        self.batches: list[int] = []

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.batches.append(len(texts))
        return [self._directions[text] for text in texts]


@asynccontextmanager
async def opened(
    folder: Path, embedder: CompassEmbedder | ScriptedEmbedder, settings: DenseSettings | None = None
) -> AsyncIterator[TurnMemory]:
    async with Dense.open_file(folder / "dense.db", embedder, settings) as provider:
        yield provider


def test_scores_are_cosines_whatever_the_length_of_the_vectors(tmp_path: Path) -> None:
    embedder = CompassEmbedder(north=(0.0, 5.0), east=(0.1, 0.0), where=(0.0, 2.0))

    async def ask() -> Sequence[Memory]:
        async with opened(tmp_path, embedder) as provider:
            await fill(provider, [session("n", "north"), session("e", "east")])
            return await provider.search(HOME, "where", 5)

    memories = asyncio.run(ask())
    assert sessions_of(memories) == ["n", "e"]
    assert [memory.score for memory in memories] == pytest.approx([1.0, 0.0])


def test_vector_includes_half_of_the_previous_turn(tmp_path: Path) -> None:
    embedder = CompassEmbedder(north=(0.0, 1.0), east=(1.0, 0.0), where=(0.0, 1.0))

    async def ask() -> Sequence[Memory]:
        async with opened(tmp_path, embedder) as provider:
            await fill(provider, [session("a", "north", "east"), session("b", "east")])
            return await provider.search(HOME, "where", 5)

    memories = {memory.id: memory.score for memory in asyncio.run(ask())}
    assert memories == pytest.approx({"a#1": 1.0, "a#2": 0.5 / 1.25**0.5, "b#1": 0.0})


def test_vector_can_include_the_next_turn(tmp_path: Path) -> None:
    embedder = CompassEmbedder(north=(0.0, 1.0), east=(1.0, 0.0), where=(0.0, 1.0))

    async def ask() -> Sequence[Memory]:
        async with opened(tmp_path, embedder, DenseSettings(before_weight=0, after_weight=0.5)) as provider:
            await fill(provider, [session("a", "east", "north"), session("b", "north")])
            return await provider.search(HOME, "where", 5)

    memories = {memory.id: memory.score for memory in asyncio.run(ask())}
    assert memories == pytest.approx({"a#1": 0.5 / 1.25**0.5, "a#2": 1.0, "b#1": 1.0})


def test_a_session_is_embedded_in_one_call_and_never_again(tmp_path: Path) -> None:
    embedder = CompassEmbedder(north=(0.0, 1.0), east=(1.0, 0.0))

    async def live() -> list[int]:
        async with opened(tmp_path, embedder) as provider:
            await fill(provider, [session("a", "north", "east", "north")])
        async with opened(tmp_path, embedder) as provider:
            await provider.search(HOME, "north", 5)
            await provider.search(HOME, "east", 5)
        return embedder.batches

    assert asyncio.run(live()) == [3, 1, 1]


def test_zero_vector_matches_nothing(tmp_path: Path) -> None:
    embedder = CompassEmbedder(north=(0.0, 1.0), void=(0.0, 0.0))

    async def ask() -> list[float | None]:
        async with opened(tmp_path, embedder) as provider:
            await fill(provider, [session("a", "void"), session("b", "north")])
            return [memory.score for memory in await provider.search(HOME, "north", 5)]

    assert asyncio.run(ask()) == [1.0, 0.0]


def test_store_id_depends_on_the_embedder(tmp_path: Path) -> None:
    async def store_id(dimensions: int) -> str:
        async with open_scripted_embedder(dimensions) as embedder, opened(tmp_path, embedder) as provider:
            return provider.store_id

    assert asyncio.run(store_id(64)) == asyncio.run(store_id(64))
    assert asyncio.run(store_id(64)) != asyncio.run(store_id(128))


def test_subject_contains_the_embedder(tmp_path: Path) -> None:
    async def subject() -> Subject:
        async with open_scripted_embedder() as embedder, opened(tmp_path, embedder) as provider:
            return provider.subject

    settings = asyncio.run(subject()).settings
    assert settings["embedder"] == {"role": "embedder", "name": "scripted", "settings": {"dimensions": 256}}
