import asyncio
from collections.abc import Sequence
from pathlib import Path

from memorybench.core.conversation import Memory
from memorybench.core.trials import Subject
from memorybench.providers.hybrid import Hybrid
from tests.providers.embedded import HOME, fill, session, sessions_of

SESSIONS = [
    session("word", "The invoice number is QX-4471."),
    session("meaning", "Our puppy chewed the sofa."),
    session("neither", "The weather was mild."),
    session("nothing", "Traffic was slow."),
]


class KindredEmbedder:
    """Knows one kinship that no word tells: dogs and puppies."""

    subject = Subject(role="embedder", name="kindred")

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [(1.0, 0.1) if {"dog", "puppy"} & set(text.lower().split()) else (0.1, 1.0) for text in texts]


class DumbEmbedder:
    subject = Subject(role="embedder", name="dumb")

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [(1.0, 0.0)] * len(texts)


def search(folder: Path, query: str, embedder: KindredEmbedder | DumbEmbedder) -> list[Memory]:
    async def ask() -> list[Memory]:
        async with Hybrid.open_file(folder / "hybrid.db", embedder) as provider:
            await fill(provider, SESSIONS)
            return list(await provider.search(HOME, query, 10))

    return asyncio.run(ask())


def test_a_word_that_no_vector_knows_is_found(tmp_path: Path) -> None:
    assert sessions_of(search(tmp_path, "QX-4471", DumbEmbedder()))[0] == "word"


def test_a_kinship_that_no_word_tells_is_found(tmp_path: Path) -> None:
    assert sessions_of(search(tmp_path, "a dog", KindredEmbedder()))[0] == "meaning"


def test_a_side_that_can_not_tell_turns_apart_has_no_say(tmp_path: Path) -> None:
    found = search(tmp_path, "giraffe", DumbEmbedder())
    assert [memory.score for memory in found] == [0.0] * len(SESSIONS)


def test_turns_that_share_no_word_still_follow(tmp_path: Path) -> None:
    assert len(search(tmp_path, "invoice", KindredEmbedder())) == len(SESSIONS)
