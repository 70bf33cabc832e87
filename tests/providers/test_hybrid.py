import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from memorybench.core.conversation import Memory, Session, Turn
from memorybench.core.trials import Subject
from memorybench.providers.hybrid import Hybrid, HybridSettings
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


def search(
    folder: Path,
    query: str,
    embedder: KindredEmbedder | DumbEmbedder,
    sessions: Sequence[Session] = SESSIONS,
    settings: HybridSettings | None = None,
) -> list[Memory]:
    async def ask() -> list[Memory]:
        async with Hybrid.open_file(folder / "hybrid.db", embedder, settings) as provider:
            await fill(provider, sessions)
            return list(await provider.search(HOME, query, 10))

    return asyncio.run(ask())


def speech(*turns: tuple[str, str]) -> Session:
    return Session(
        id="talk", turns=tuple(Turn(role="user", speaker=speaker, content=content) for speaker, content in turns)
    )


def test_hybrid_matches_words_without_a_vector(tmp_path: Path) -> None:
    assert sessions_of(search(tmp_path, "QX-4471", DumbEmbedder()))[0] == "word"


def test_hybrid_matches_related_words_by_vector(tmp_path: Path) -> None:
    assert sessions_of(search(tmp_path, "a dog", KindredEmbedder()))[0] == "meaning"


def test_constant_scores_have_no_effect(tmp_path: Path) -> None:
    memories = search(tmp_path, "giraffe", DumbEmbedder())
    assert [memory.score for memory in memories] == [0.0] * len(SESSIONS)


def test_turns_without_a_common_word_rank_last(tmp_path: Path) -> None:
    assert len(search(tmp_path, "invoice", KindredEmbedder())) == len(SESSIONS)


@pytest.mark.parametrize(
    ("query", "weight", "first"),
    [
        ("Which dog does Mary Ann's sister want?", 0.5, "talk#2"),
        ("Which dog does Mary Ann's sister want?", 0.0, "talk#1"),
        ("Which dog does she want?", 0.5, "talk#1"),
    ],
)
def test_a_turn_ranks_higher_if_the_question_names_its_speaker(
    tmp_path: Path, query: str, weight: float, first: str
) -> None:
    talk = speech(("Tom", "A dog, a poodle."), ("Ann Lee", "A dog, a poodle."))
    settings = HybridSettings(dense_weight=1, speaker_weight=weight)
    assert search(tmp_path, query, DumbEmbedder(), [talk], settings)[0].id == first


def test_a_role_is_not_the_name_of_a_speaker(tmp_path: Path) -> None:
    plain = [session("plain", "user: the invoice", "the receipt")]
    memories = search(tmp_path, "What did the user say?", DumbEmbedder(), plain, HybridSettings(dense_weight=1))
    assert [memory.score for memory in memories] == [0, 0]


@pytest.mark.parametrize(("weight", "order"), [(0.5, ["much", "some"]), (0.0, ["some", "much"])])
def test_a_turn_ranks_higher_if_its_session_has_other_matches(tmp_path: Path, weight: float, order: list[str]) -> None:
    sessions = [
        session("much", "My dog ran, and I ran, too.", "My dog ate, and I ate, too."),
        session("some", "My dog ran and I ran.", "Traffic was slow."),
        *(session(f"other-{n}", f"Nothing happened on day {n}.") for n in range(9)),
    ]
    settings = HybridSettings(around_words=0, before_weight=0, after_weight=0, session_weight=weight)
    assert sessions_of(search(tmp_path, "a dog", DumbEmbedder(), sessions, settings))[:2] == order
