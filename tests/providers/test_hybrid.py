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
    """Gives similar vectors to "dog" and "puppy", which share no word."""

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


def test_hybrid_matches_words_without_a_vector(tmp_path: Path) -> None:
    assert sessions_of(search(tmp_path, "QX-4471", DumbEmbedder()))[0] == "word"


def test_hybrid_matches_related_words_by_vector(tmp_path: Path) -> None:
    assert sessions_of(search(tmp_path, "a dog", KindredEmbedder()))[0] == "meaning"


def test_constant_scores_have_no_effect(tmp_path: Path) -> None:
    memories = search(tmp_path, "giraffe", DumbEmbedder())
    assert [memory.score for memory in memories] == [0.0] * len(SESSIONS)


def test_turns_without_a_common_word_rank_last(tmp_path: Path) -> None:
    assert len(search(tmp_path, "invoice", KindredEmbedder())) == len(SESSIONS)
