"""The tests that every provider must pass, as a base class. To run them, define a subclass in a test file of pytest:

class TestMine(ProviderContract):
    def open_provider(self, folder):
        return open_mine(folder / "mine.db")
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import TypeVar

from memorybench.core.contracts import Listing, Provider, Scope
from memorybench.core.conversation import Memory, Session, Turn

C = TypeVar("C", bound="ProviderContract")

_CANARY = "zebrafinch"
_HOSTILE_QUERIES = (
    "",
    "   ",
    '"',
    '"quotes" AND (NEAR',
    "said : * OR NOT ^",
    "'; DROP TABLE turns; --",
    "${query} {{query}} %s",
    "the of and",
    "\x00\x1b[31m",
    "🦓",
    "word " * 2_000,
)


def _in_loop(check: Callable[[C, Path], Awaitable[None]]) -> Callable[[C, Path], None]:
    @wraps(check)
    def run(self: C, tmp_path: Path) -> None:
        async def checked() -> None:
            await check(self, tmp_path)

        asyncio.run(checked())

    return run


class ProviderContract:
    durable = True
    """Whether memories are still there after the provider is opened again on the same folder. If not, its `store_id`
    must have changed."""
    immediate = True
    """Whether a session is searchable as soon as `add` returns."""

    def open_provider(self, folder: Path) -> AbstractAsyncContextManager[Provider]:
        """Open a provider that stores all its data in `folder`."""
        raise NotImplementedError

    @_in_loop
    async def test_it_has_a_subject_and_a_store_id(self, tmp_path: Path) -> None:
        async with self.open_provider(tmp_path) as provider:
            assert isinstance(provider, Provider), "it lacks a member of the Provider contract"
            assert provider.subject.role == "provider", "the role of its subject is not provider"
            store_id = provider.store_id
            await _fill(provider, _scope(), _small_talk(1))
            assert store_id, "store_id is empty"
            assert provider.store_id == store_id, "store_id changed while the provider was open"

    @_in_loop
    async def test_the_matching_memory_comes_first(self, tmp_path: Path) -> None:
        async with self.open_provider(tmp_path) as provider:
            await _fill(provider, _scope(), [*_small_talk(5), _session("fact", f"My pet is a {_CANARY} called Otto.")])
            memories = await provider.search(_scope(), f"Which pet is a {_CANARY}?", 10)
            assert memories, "no memories"
            assert _CANARY in memories[0].content, f"the first memory is {memories[0].content!r}"

    @_in_loop
    async def test_memories_tell_their_session_and_turn(self, tmp_path: Path) -> None:
        unnamed = _session("fact", "Good morning!", f"My pet is a {_CANARY}.")
        turns = (replace(turn, id=f"turn-{n}") for n, turn in enumerate(unnamed.turns))
        named = replace(unnamed, turns=tuple(turns))
        async with self.open_provider(tmp_path) as provider:
            await _fill(provider, _scope("unnamed"), [unnamed])
            await _fill(provider, _scope("named"), [named])
            for haystack, turn in (("unnamed", "fact:2"), ("named", "turn-1")):
                best = (await provider.search(_scope(haystack), _CANARY, 1))[0]
                assert best.sources is not None, "a memory has no sources"
                assert {"fact", turn} <= set(best.sources), f"sources of turn {turn} of session fact: {best.sources}"

    @_in_loop
    async def test_scores_are_in_descending_order(self, tmp_path: Path) -> None:
        async with self.open_provider(tmp_path) as provider:
            await _fill(provider, _scope(), [*_small_talk(8), _session("fact", f"A {_CANARY} sang in the garden.")])
            memories = await provider.search(_scope(), f"Which {_CANARY} sang near the garden gate?", 20)
            scores = [memory.score for memory in memories if memory.score is not None]
            assert scores == sorted(scores, reverse=True), f"the scores are not in descending order: {scores}"

    @_in_loop
    async def test_search_returns_at_most_limit_memories(self, tmp_path: Path) -> None:
        async with self.open_provider(tmp_path) as provider:
            await _fill(provider, _scope(), _small_talk(8))
            for limit in (1, 3):
                memories = await provider.search(_scope(), "garden weather", limit)
                assert len(memories) <= limit, f"{len(memories)} memories for a limit of {limit}"

    @_in_loop
    async def test_scopes_are_isolated(self, tmp_path: Path) -> None:
        """Scopes that differ only in run, benchmark, provider or haystack are different scopes."""
        home = _scope()
        others = [home.model_copy(update={part: "other"}) for part in ("run", "benchmark", "provider", "haystack")]
        async with self.open_provider(tmp_path) as provider:
            for other in others:
                await _fill(provider, other, _small_talk(3))
            await _fill(provider, home, [_session("fact", f"My pet is a {_CANARY}.")])
            for other in others:
                memories = await provider.search(other, f"Which pet is a {_CANARY}?", 50)
                assert not _with_canary(memories), f"a memory of {home} is returned for {other}"

    @_in_loop
    async def test_scopes_filled_concurrently_are_isolated(self, tmp_path: Path) -> None:
        async def fill_and_search(provider: Provider, n: int) -> Sequence[Memory]:
            await _fill(provider, _scope(f"h{n}"), [*_small_talk(4), _session("fact", f"My pet is the {_CANARY}{n}.")])
            return await provider.search(_scope(f"h{n}"), f"Which pet is the {_CANARY}{n}?", 50)

        async with self.open_provider(tmp_path) as provider:
            results = await asyncio.gather(*(fill_and_search(provider, n) for n in range(12)))
        for n, memories in enumerate(results):
            contents = [memory.content for memory in _with_canary(memories)]
            assert contents, f"scope {n} lost its memory"
            assert all(f"{_CANARY}{n}." in content for content in contents), f"scope {n} contains {contents}"

    @_in_loop
    async def test_memories_are_searchable_after_waiting(self, tmp_path: Path) -> None:
        async with self.open_provider(tmp_path) as provider:
            receipt = await provider.add(_scope(), _session("fact", f"My pet is a {_CANARY}."))
            memories = await provider.search(_scope(), _CANARY, 10)
            assert bool(memories) == self.immediate, "found before waiting" if memories else "not found at once"
            await provider.wait_until_searchable(_scope(), [receipt])
            assert await provider.search(_scope(), _CANARY, 10), "not found after waiting"

    @_in_loop
    async def test_adding_a_session_again_changes_nothing(self, tmp_path: Path) -> None:
        sessions = [*_small_talk(4), _session("fact", f"My pet is a {_CANARY}.")]
        async with self.open_provider(tmp_path) as provider:
            await _fill(provider, _scope(), sessions)
            once = await provider.search(_scope(), f"the {_CANARY} in the garden", 50)
            await _fill(provider, _scope(), sessions[2:])
            twice = await provider.search(_scope(), f"the {_CANARY} in the garden", 50)
            assert list(twice) == list(once), "a repeated add changed the results"

    @_in_loop
    async def test_the_order_of_adding_does_not_change_what_is_found(self, tmp_path: Path) -> None:
        sessions = [*_small_talk(6), _session("fact", f"My pet is a {_CANARY}.")]
        async with self.open_provider(tmp_path) as provider:
            await _fill(provider, _scope("forward"), sessions)
            await _fill(provider, _scope("backward"), sessions[::-1])
            forward, backward = [
                [memory.sources for memory in await provider.search(_scope(order), f"{_CANARY} garden", 50)]
                for order in ("forward", "backward")
            ]
            assert forward == backward, "the order of adding changed the ranking"

    @_in_loop
    async def test_text_in_any_script_is_found(self, tmp_path: Path) -> None:
        texts = {
            "german": ("Die Straßenbahn fährt über Köln.", "straßenbahn köln"),
            "russian": ("Мою собаку зовут Шарик.", "собаку"),
            "greek": ("Η γάτα μου λέγεται Αθηνά.", "γάτα"),
            "arabic": ("اسم قطتي هو لؤلؤة", "قطتي"),
            "chinese": ("我的猫叫小白。", "我的猫叫小白"),
            "japanese": ("ペットの名前はタマです。", "ペットの名前はタマです"),
            "emoji": ("We bought a kite 🪁 yesterday 👩‍👧‍👦!", "kite 🪁"),
        }
        async with self.open_provider(tmp_path) as provider:
            await _fill(provider, _scope(), [_session(name, text) for name, (text, _) in texts.items()])
            for name, (text, query) in texts.items():
                memories = await provider.search(_scope(), query, 3)
                assert any(text in memory.content for memory in memories), f"{name}: {query!r} did not find {text!r}"

    @_in_loop
    async def test_empty_sessions_and_turns_are_accepted(self, tmp_path: Path) -> None:
        async with self.open_provider(tmp_path) as provider:
            sessions = [Session(id="silent", turns=()), _session("fact", "", f"My pet is a {_CANARY}.", "  ")]
            await _fill(provider, _scope(), sessions)
            assert _with_canary(await provider.search(_scope(), _CANARY, 10)), "a turn between empty turns is lost"

    @_in_loop
    async def test_the_end_of_a_very_long_session_is_found(self, tmp_path: Path) -> None:
        chatter = [f"Remark {n} on the garden. " + "The weather was mild and nobody minded. " * 20 for n in range(300)]
        async with self.open_provider(tmp_path) as provider:
            await _fill(provider, _scope(), [_session("long", *chatter, f"My pet is a {_CANARY}.")])
            assert _with_canary(await provider.search(_scope(), f"pet {_CANARY}", 10)), "the last of 301 turns is lost"

    @_in_loop
    async def test_any_text_is_accepted_as_a_query(self, tmp_path: Path) -> None:
        async with self.open_provider(tmp_path) as provider:
            await _fill(provider, _scope(), [*_small_talk(3), _session("fact", f"My pet is a {_CANARY}.")])
            for query in _HOSTILE_QUERIES:
                assert len(await provider.search(_scope(), query, 5)) <= 5, f"more than 5 memories for {query[:40]!r}"
            assert _with_canary(await provider.search(_scope(), _CANARY, 5)), "a query changed the data"

    @_in_loop
    async def test_an_unused_scope_is_empty(self, tmp_path: Path) -> None:
        async with self.open_provider(tmp_path) as provider:
            assert not await provider.search(_scope(), "garden", 5)

    @_in_loop
    async def test_clear_deletes_the_memories_of_one_scope(self, tmp_path: Path) -> None:
        cleared, other = _scope("cleared"), _scope("other")
        async with self.open_provider(tmp_path) as provider:
            for scope in (cleared, other):
                await _fill(provider, scope, [_session("fact", f"My pet is a {_CANARY}.")])
                assert await provider.search(scope, _CANARY, 50), "no memories to clear"
            await provider.clear(cleared)
            await provider.clear(cleared)
            assert not await provider.search(cleared, _CANARY, 50), "still found after clear"
            assert await provider.search(other, _CANARY, 50), "clearing one scope cleared another"
            await _fill(provider, cleared, [_session("fact", "My pet is a tortoise.")])
            assert await provider.search(cleared, "tortoise", 50), "a cleared scope cannot be filled again"
            assert not _with_canary(await provider.search(cleared, _CANARY, 50)), "cleared memories came back"

    @_in_loop
    async def test_store_id_changes_if_and_only_if_data_is_lost(self, tmp_path: Path) -> None:
        async with self.open_provider(tmp_path) as provider:
            before = provider.store_id
            await _fill(provider, _scope(), [_session("fact", f"My pet is a {_CANARY}.")])
        async with self.open_provider(tmp_path) as provider:
            memories = await provider.search(_scope(), _CANARY, 10)
            if self.durable:
                assert provider.store_id == before, "store_id changed although the data is still there"
                assert _with_canary(memories), "the memory is gone"
            else:
                assert provider.store_id != before, "store_id is the same although the data is gone"

    @_in_loop
    async def test_list_returns_all_memories_of_the_scope(self, tmp_path: Path) -> None:
        async with self.open_provider(tmp_path) as provider:
            if not isinstance(provider, Listing):
                return  # listing is optional
            await _fill(provider, _scope(), [_session("fact", f"My pet is a {_CANARY}.", "It sings.")])
            await _fill(provider, _scope("other"), _small_talk(2))
            memories = await provider.list(_scope())
            assert len({memory.id for memory in memories}) == len(memories), "two memories share an id"
            assert all(any(text in memory.content for memory in memories) for text in (_CANARY, "sings")), (
                "not all listed"
            )
            assert not any("garden" in memory.content for memory in memories), "another scope's memories are listed"


def _scope(haystack: str = "home") -> Scope:
    return Scope(run="run-1", benchmark="contract", provider="provider", haystack=haystack)


def _session(name: str, *texts: str) -> Session:
    turns = (Turn(role="user" if n % 2 == 0 else "assistant", content=text) for n, text in enumerate(texts))
    return Session(id=name, turns=tuple(turns), at=datetime(2024, 3, 2, 9, 30, tzinfo=UTC))


def _small_talk(sessions: int) -> list[Session]:
    """Return this many sessions, all with different texts, so that no two get the same score."""
    talk = [
        _session(f"talk-{n}", "How is the garden? " + "Lovely weather. " * n, f"Bed number {n} of the garden blooms.")
        for n in range(1, sessions + 1)
    ]
    return [
        replace(session, at=session.at + timedelta(days=n)) for n, session in enumerate(talk) if session.at is not None
    ]


async def _fill(provider: Provider, scope: Scope, sessions: Sequence[Session]) -> None:
    await provider.wait_until_searchable(scope, [await provider.add(scope, session) for session in sessions])


def _with_canary(memories: Sequence[Memory]) -> list[Memory]:
    return [memory for memory in memories if _CANARY in memory.content]
