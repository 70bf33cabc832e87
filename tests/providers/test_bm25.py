import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from memorybench.core.conversation import Memory, Session
from memorybench.providers.bm25 import Bm25, LexicalIndex, LexicalSettings
from memorybench.providers.storage.indexed import Hit, Query
from memorybench.providers.storage.turns import stored_turns
from tests.providers.embedded import AWAY, HOME, fill, session, sessions_of

TALK = [session(f"talk-{n}", f"Nothing much happened on day {n}.") for n in range(5)]


def search(folder: Path, sessions: list[Session], query: str) -> list[Memory]:
    async def ask() -> list[Memory]:
        async with Bm25.open_file(folder / "bm25.db") as provider:
            await fill(provider, sessions)
            return list(await provider.search(HOME, query, 10))

    return asyncio.run(ask())


def test_words_are_stemmed(tmp_path: Path) -> None:
    memories = search(tmp_path, [*TALK, session("topic", "We adopted two puppies.")], "Who is adopting a puppy?")
    assert sessions_of(memories)[0] == "topic"


def test_a_turn_is_found_by_the_question_it_answers(tmp_path: Path) -> None:
    other = session("topic", "Where did you go camping?", "The lake in Vermont.")
    memories = search(tmp_path, [*TALK, other], "camping")
    assert [memory.sources for memory in memories] == [("topic", "topic:1"), ("topic", "topic:2")]


def test_neighbours_in_another_session_are_ignored(tmp_path: Path) -> None:
    memories = search(tmp_path, [*TALK, session("a", "We went camping."), session("b", "It rained.")], "camping")
    assert sessions_of(memories) == ["a"]


def test_only_near_words_of_a_long_neighbour_are_indexed(tmp_path: Path) -> None:
    far = session("far", "We went camping. " + "Much else was said. " * 100, "It rained.")
    assert [memory.sources for memory in search(tmp_path, [*TALK, far], "camping")] == [("far", "far:1")]


@pytest.mark.parametrize(
    "query",
    ['"quotes" AND (NEAR', "camping NOT said", "said : camping", "camping*", "^camping", "NEAR(camping lake)"],
)
def test_search_operators_are_treated_as_words(tmp_path: Path, query: str) -> None:
    other = session("topic", "Quotes from the camping site, not the hotel, near the lake.")
    assert sessions_of(search(tmp_path, [*TALK, other], query)) == ["topic"]


def test_query_of_stop_words_is_searched_unchanged(tmp_path: Path) -> None:
    other = session("topic", "They saw The Who.")
    assert sessions_of(search(tmp_path, [*TALK, other], "The Who"))[0] == "topic"


def test_stop_words_are_ignored_in_a_query(tmp_path: Path) -> None:
    other = session("topic", "What was it that they did?")
    assert search(tmp_path, [*TALK, other], "What did the giraffe do?") == []


def test_words_in_scripts_without_spaces_match(tmp_path: Path) -> None:
    other = [
        session("cat", "我的猫叫小白。"),
        session("dog", "我的狗叫大黄。"),
        session("tama", "ペットの名前はタマです。"),
    ]
    assert sessions_of(search(tmp_path, [*TALK, *other], "小白"))[0] == "cat"
    assert sessions_of(search(tmp_path, [*TALK, *other], "タマ")) == ["tama"]


def test_a_word_is_as_rare_as_it_is_in_its_own_scope(tmp_path: Path) -> None:
    """A word that is common in another scope and rare in this one scores as rare."""
    here = [*TALK, session("topic", "My tortoise sleeps.")]

    async def score(name: str, elsewhere: list[Session]) -> list[Memory]:
        async with Bm25.open_file(tmp_path / name) as provider:
            await fill(provider, here)
            await fill(provider, elsewhere, AWAY)
            return list(await provider.search(HOME, "tortoise on day 3", 10))

    crowd = [session(f"crowd-{n}", f"Tortoise number {n} on a day.") for n in range(50)]
    assert asyncio.run(score("alone.db", [])) == asyncio.run(score("crowded.db", crowd))


def test_ties_rank_the_same_after_a_resumed_ingest(tmp_path: Path) -> None:
    twins = [session(name, "My tortoise sleeps.") for name in ("a", "b", "c")]

    async def ask(name: str, added: list[Session]) -> list[str]:
        async with Bm25.open_file(tmp_path / name) as provider:
            await fill(provider, added)
            return sessions_of(await provider.search(HOME, "tortoise", 10))

    unbroken = asyncio.run(ask("unbroken.db", twins))
    assert asyncio.run(ask("resumed.db", [twins[1], twins[2], twins[0], twins[1]])) == unbroken


def test_documents_added_after_a_search_are_in_the_next_one(tmp_path: Path) -> None:
    async def ask() -> list[str]:
        async with Bm25.open_file(tmp_path / "bm25.db") as provider:
            await fill(provider, TALK)
            await provider.search(HOME, "tortoise", 10)
            await fill(provider, [session("topic", "My tortoise sleeps.")])
            return sessions_of(await provider.search(HOME, "tortoise", 10))

    assert asyncio.run(ask()) == ["topic"]


def test_more_scopes_than_open_indexes_can_be_searched(tmp_path: Path) -> None:
    scopes = [HOME.model_copy(update={"haystack": f"h{n}"}) for n in range(40)]

    async def ask() -> list[list[str]]:
        async with Bm25.open_file(tmp_path / "bm25.db") as provider:
            for n, scope in enumerate(scopes):
                await fill(provider, [session(f"s{n}", "My tortoise sleeps.")], scope)
            rounds = [await provider.search(scope, "tortoise", 10) for scope in [*scopes, *scopes]]
            return [sessions_of(memories) for memories in rounds]

    assert asyncio.run(ask()) == [[f"s{n}"] for n in range(40)] * 2


def test_without_neighbours_a_turn_has_only_its_own_words() -> None:
    index = LexicalIndex(
        stored_turns(session("topic", "We went camping.", "It rained.")), LexicalSettings(around_words=0)
    )
    assert [hit.row for hit in index.search(Query("camping"), 5)] == [0]
    index.close()


@pytest.mark.parametrize(("around_turns", "found"), [(1, [2, 1, 3]), (2, [2, 1, 3, 0, 4])])
def test_near_words_can_come_from_several_turns(around_turns: int, found: list[int]) -> None:
    talk = session("talk", "It rained.", "It was cold.", "We went camping.", "We slept well.", "We ate.")
    index = LexicalIndex(stored_turns(talk), LexicalSettings(around_turns=around_turns, around_words=7))
    assert sorted(hit.row for hit in index.search(Query("camping"), 5)) == sorted(found)
    index.close()


def own_ranking(monkeypatch: pytest.MonkeyPatch, sessions: Sequence[Session], query: str) -> list[Sequence[Hit]]:
    """The hits of FTS5, and those of our own formula with the same constants."""
    turns = [turn for one in sessions for turn in stored_turns(one)]
    by_fts5 = LexicalIndex(turns, LexicalSettings()).matches(query)
    monkeypatch.setattr("memorybench.providers.bm25._FTS5_K1", None)
    return [by_fts5, LexicalIndex(turns, LexicalSettings()).matches(query)]


def test_with_the_constants_of_fts5_our_formula_gives_its_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = [
        session("a", "The dogs were camping; the dog barked at camping dogs.", "It rained, and the dog ran."),
        session("b", "No dog here.", "Camping in the rain: 猫が好き, naïve café.", "Rain again."),
    ]
    for query in ("dogs camping in rain", "café 猫", "dog", "nothing of this"):
        by_fts5, by_us = own_ranking(monkeypatch, sessions, query)
        assert [hit.row for hit in by_us] == [hit.row for hit in by_fts5]
        assert [hit.score for hit in by_us] == pytest.approx([hit.score for hit in by_fts5])
        monkeypatch.undo()


def test_k1_and_b_change_the_ranking() -> None:
    turns = stored_turns(session("s", "dog dog dog", f"dog {'filler ' * 30}", "cat"))

    def scores(**settings: float) -> dict[int, float]:
        index = LexicalIndex(turns, LexicalSettings(around_words=0, **settings))
        return {hit.row: hit.score for hit in index.matches("dog")}

    usual, binary, unpenalized = scores(), scores(k1=0), scores(b=0)
    assert binary[0] == binary[1]
    assert usual[0] / usual[1] > unpenalized[0] / unpenalized[1] > 1
