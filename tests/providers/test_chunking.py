import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybench.core.conversation import Session, Turn
from memorybench.core.trials import Subject
from memorybench.providers.config.sections import Chunking
from memorybench.providers.storage.chunking import Chunk, chunk_session, count_tokens
from tests.doubles.scripted_embedder import ScriptedEmbedder
from tests.providers.embedded import session

STRATEGIES = ("fixed", "paragraph", "semantic")


class TopicEmbedder:
    """Returns one vector per topic, and records the texts that it receives."""

    subject = Subject(role="embedder", name="topics")

    def __init__(self, *topics: str) -> None:
        self._topics = topics
        self.received: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.received += texts
        return [[float(topic in text) for topic in self._topics] for text in texts]


def chunks(talk: Session, size: int = 8, overlap: int = 0, strategy: str = "fixed", embedder=None) -> Sequence[Chunk]:
    chunking = Chunking.model_validate({"size": size, "overlap": overlap, "strategy": strategy})
    return asyncio.run(chunk_session(talk, chunking, embedder or ScriptedEmbedder(32)))


def texts(*arguments, **options) -> list[str]:
    return [chunk.text for chunk in chunks(*arguments, **options)]


def test_token_is_four_bytes() -> None:
    assert [count_tokens(text) for text in ("", "abcd", "abcde", "猫猫猫猫")] == [0, 1, 2, 3]


def test_chunk_contains_dates_speakers_and_turn_ids() -> None:
    turns = (
        Turn(role="user", speaker="Ann", content="I adopted a cat.", id="D1:1"),
        Turn(role="assistant", content="How lovely!"),
        Turn(role="user", speaker="Ann", content="She is gone.", at=datetime(2024, 3, 5, tzinfo=UTC), id="D1:3"),
    )
    talk = Session(id="s1", turns=turns, at=datetime(2024, 3, 2, 23, 5, tzinfo=UTC))
    [chunk] = chunks(talk, size=100)
    assert chunk.text == "[2024-03-02] Ann: I adopted a cat.\nassistant: How lovely!\n[2024-03-05] Ann: She is gone."
    assert chunk.turns == ("D1:1", "s1:2", "D1:3")


def test_without_a_date_a_chunk_has_none() -> None:
    talk = Session(id="s1", turns=(Turn(role="user", content="Hello."),))
    assert texts(talk) == ["user: Hello."]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_empty_session_has_no_chunks(strategy: str) -> None:
    assert texts(Session(id="s1", turns=()), strategy=strategy) == []
    assert texts(session("s1", "", "  \n "), strategy=strategy) == []


def test_fixed_chunks_end_between_words_and_share_the_overlap() -> None:
    talk = session("s1", "alpha beta gamma delta epsilon zeta eta theta")
    assert texts(talk, size=6, overlap=3) == [
        "[2024-03-02] user: alpha beta gamma delta",
        "[2024-03-02] user: … gamma delta epsilon",
        "[2024-03-02] user: … epsilon zeta eta theta",
    ]


def test_a_chunk_over_two_turns_has_both_as_sources_and_its_neighbours_one_each() -> None:
    talk = session("s1", "one two three four five", "six seven eight nine ten")
    assert [chunk.turns for chunk in chunks(talk, size=4)] == [("s1:1",), ("s1:1", "s1:2"), ("s1:2",), ("s1:2",)]


def test_paragraphs_stay_whole_and_share_a_chunk_where_they_fit() -> None:
    talk = session("s1", "First turn here.", "Second turn.\n\nIts other half.", "Third turn here.")
    assert texts(talk, size=9, strategy="paragraph") == [
        "[2024-03-02] user: First turn here.\nuser: Second turn.",
        "[2024-03-02] user: … Its other half.\nuser: Third turn here.",
    ]


def test_the_overlap_of_paragraphs_is_whole_paragraphs() -> None:
    talk = session("s1", "First turn here.", "Second.", "Third turn here.")
    assert texts(talk, size=7, overlap=2, strategy="paragraph") == [
        "[2024-03-02] user: First turn here.\nuser: Second.",
        "[2024-03-02] user: Second.\nuser: Third turn here.",
    ]


def test_semantic_chunks_end_where_the_topic_changes() -> None:
    cats = ("My cat is grey. The cat sleeps all day. A cat needs little.", "My cat purrs.")
    cars = ("The car is loud. My car is red.", "Every car rusts.")
    embedder = TopicEmbedder("cat", "car")
    assert texts(session("s1", *cats, *cars), size=1000, strategy="semantic", embedder=embedder) == [
        "[2024-03-02] user: My cat is grey. The cat sleeps all day. A cat needs little.\nuser: My cat purrs.",
        "[2024-03-02] user: The car is loud. My car is red.\nuser: Every car rusts.",
    ]
    assert [received.strip() for received in embedder.received[:2]] == ["My cat is grey.", "The cat sleeps all day."]


def test_topic_larger_than_a_chunk_is_split() -> None:
    talk = session("s1", "My cat sleeps. " * 20)
    parts = chunks(talk, size=10, strategy="semantic", embedder=TopicEmbedder("cat"))
    assert len(parts) > 5


@pytest.mark.parametrize("strategy", ["fixed", "paragraph"])
def test_only_semantic_chunking_calls_the_embedder(strategy: str) -> None:
    embedder = TopicEmbedder("cat")
    chunks(session("s1", "My cat sleeps. " * 20), strategy=strategy, embedder=embedder)
    assert embedder.received == []


def bare(part: Chunk) -> str:
    """Return the text of a chunk without speakers."""
    return "".join(line.removeprefix("u: ").removeprefix("… ") + "\n" for line in part.text.split("\n"))


@pytest.mark.slow
@given(
    contents=st.lists(st.text(alphabet="ab .!\n猫🪁", min_size=1, max_size=40), min_size=1, max_size=5),
    size=st.integers(1, 12),
    strategy=st.sampled_from(STRATEGIES),
)
def test_chunks_without_overlap_contain_all_text_once(contents: list[str], size: int, strategy: str) -> None:
    talk = Session(id="s", turns=tuple(Turn(role="u", content=text) for text in contents))
    parts = chunks(talk, size=size, strategy=strategy)
    assert "".join("".join(map(bare, parts)).split()) == "".join("".join(contents).split())
    covered = dict.fromkeys(turn for part in parts for turn in part.turns)
    assert list(covered) == [f"s:{place}" for place, text in enumerate(contents, start=1) if text.strip()]


@pytest.mark.slow
@given(
    counts=st.lists(st.integers(1, 30), min_size=1, max_size=5),
    size=st.integers(6, 20),
    overlap=st.integers(0, 19),
    strategy=st.sampled_from(STRATEGIES),
)
def test_chunks_with_overlap_fit_and_each_adds_text(counts: list[int], size: int, overlap: int, strategy: str) -> None:
    contents = [" ".join(f"w{turn}-{n}." for n in range(count)) for turn, count in enumerate(counts)]
    talk = Session(id="s", turns=tuple(Turn(role="u", content=text) for text in contents))
    parts = [bare(part) for part in chunks(talk, size=size, overlap=min(overlap, size - 1), strategy=strategy)]
    seen: dict[str, None] = {}
    for part in parts:
        assert count_tokens(part.strip()) <= size
        assert not seen.keys() >= set(part.split())
        seen |= dict.fromkeys(part.split())
    assert list(seen) == " ".join(contents).split()
