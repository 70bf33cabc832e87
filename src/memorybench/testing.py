"""What every provider must hold, as a class to inherit: pytest collects its tests, and importing it needs no pytest.

class TestMine(ProviderContract):
    def open_provider(self, folder):
        return open_mine(folder / "mine.db")
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
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
    """What was added is still there when the provider is opened again on the same folder."""
    immediate = True
    """What `add` returned from is found without `wait_until_searchable`."""

    def open_provider(self, folder: Path) -> AbstractAsyncContextManager[Provider]:
        """A provider that keeps all it keeps inside `folder`."""
        raise NotImplementedError

    @_in_loop
    async def test_it_says_what_it_is(self, tmp_path: Path) -> None:
        async with self.open_provider(tmp_path) as provider:
            assert isinstance(provider, Provider), "it lacks a member of the Provider contract"
            assert provider.subject.role == "provider", "its subject has another role than provider"
            store_id = provider.store_id
            await _fill(provider, _scope(), _small_talk(1))
            assert store_id, "it has no incarnation"
            assert provider.store_id == store_id, "its incarnation changed while it was open"

    @_in_loop
    async def test_what_was_added_is_found_first(self, tmp_path: Path) -> None:
        async with self.open_provider(tmp_path) as provider:
            await _fill(provider, _scope(), [*_small_talk(5), _session("told", f"My pet is a {_CANARY} called Otto.")])
            found = await provider.search(_scope(), f"Which pet is a {_CANARY}?", 10)
            assert found, "nothing was found"
            assert _CANARY in found[0].content, f"found first: {found[0].content!r}"

    @_in_loop
    async def test_memories_tell_their_session_and_turn(self, tmp_path: Path) -> None:
        told = _session("told", "Good morning!", f"My pet is a {_CANARY}.")
        named = told.model_copy(update={"turns": tuple(_named(turn, n) for n, turn in enumerate(told.turns))})
        async with self.open_provider(tmp_path) as provider:
            await _fill(provider, _scope("unnamed"), [told])
            await _fill(provider, _scope("named"), [named])
            for haystack, turn in (("unnamed", "told:2"), ("named", "turn-1")):
                best = (await provider.search(_scope(haystack), _CANARY, 1))[0]
                assert best.sources is not None, "it does not tell where a memory came from"
                assert {"told", turn} <= set(best.sources), f"sources of turn {turn} of session told: {best.sources}"

    @_in_loop
    async def test_the_best_come_first(self, tmp_path: Path) -> None:
        async with self.open_provider(tmp_path) as provider:
            await _fill(provider, _scope(), [*_small_talk(8), _session("told", f"A {_CANARY} sang in the garden.")])
            found = await provider.search(_scope(), f"Which {_CANARY} sang near the garden gate?", 20)
            scores = [memory.score for memory in found if memory.score is not None]
            assert scores == sorted(scores, reverse=True), f"scores rise down the list: {scores}"

    @_in_loop
    async def test_no_more_than_the_limit_comes_back(self, tmp_path: Path) -> None:
        async with self.open_provider(tmp_path) as provider:
            await _fill(provider, _scope(), _small_talk(8))
            for limit in (1, 3):
                found = await provider.search(_scope(), "garden weather", limit)
                assert len(found) <= limit, f"{len(found)} memories for a limit of {limit}"

    @_in_loop
    async def test_scopes_never_mix(self, tmp_path: Path) -> None:
        """Each part of a scope's name counts: run, benchmark, provider and haystack."""
        home = _scope()
        others = [home.model_copy(update={part: "other"}) for part in ("run", "benchmark", "provider", "haystack")]
        async with self.open_provider(tmp_path) as provider:
            for other in others:
                await _fill(provider, other, _small_talk(3))
            await _fill(provider, home, [_session("told", f"My pet is a {_CANARY}.")])
            for other in others:
                found = await provider.search(other, f"Which pet is a {_CANARY}?", 50)
                assert not _with_canary(found), f"told in {home}, found in {other}"

    @_in_loop
    async def test_scopes_filled_at_once_keep_their_own(self, tmp_path: Path) -> None:
        async def live(provider: Provider, n: int) -> Sequence[Memory]:
            await _fill(provider, _scope(f"h{n}"), [*_small_talk(4), _session("told", f"My pet is the {_CANARY}{n}.")])
            return await provider.search(_scope(f"h{n}"), f"Which pet is the {_CANARY}{n}?", 50)

        async with self.open_provider(tmp_path) as provider:
            lives = await asyncio.gather(*(live(provider, n) for n in range(12)))
        for n, found in enumerate(lives):
            told = [memory.content for memory in _with_canary(found)]
            assert told, f"scope {n} lost what it was told"
            assert all(f"{_CANARY}{n}." in content for content in told), f"scope {n} holds {told}"

    @_in_loop
    async def test_nothing_is_found_before_it_settled(self, tmp_path: Path) -> None:
        async with self.open_provider(tmp_path) as provider:
            receipt = await provider.add(_scope(), _session("told", f"My pet is a {_CANARY}."))
            found = await provider.search(_scope(), _CANARY, 10)
            assert bool(found) == self.immediate, "found before it settled" if found else "not found at once"
            await provider.wait_until_searchable(_scope(), [receipt])
            assert await provider.search(_scope(), _CANARY, 10), "settled, but not found"

    @_in_loop
    async def test_adding_a_session_again_changes_nothing(self, tmp_path: Path) -> None:
        sessions = [*_small_talk(4), _session("told", f"My pet is a {_CANARY}.")]
        async with self.open_provider(tmp_path) as provider:
            await _fill(provider, _scope(), sessions)
            once = await provider.search(_scope(), f"the {_CANARY} in the garden", 50)
            await _fill(provider, _scope(), sessions[2:])
            twice = await provider.search(_scope(), f"the {_CANARY} in the garden", 50)
            assert list(twice) == list(once), "a repeated add changed what is found"

    @_in_loop
    async def test_the_order_of_adding_does_not_change_what_is_found(self, tmp_path: Path) -> None:
        sessions = [*_small_talk(6), _session("told", f"My pet is a {_CANARY}.")]
        async with self.open_provider(tmp_path) as provider:
            await _fill(provider, _scope("forward"), sessions)
            await _fill(provider, _scope("backward"), sessions[::-1])
            forward, backward = [
                [memory.sources for memory in await provider.search(_scope(order), f"{_CANARY} garden", 50)]
                for order in ("forward", "backward")
            ]
            assert forward == backward, "the same sessions, added in another order, are ranked otherwise"

    @_in_loop
    async def test_any_script_is_kept_and_found(self, tmp_path: Path) -> None:
        told = {
            "german": ("Die Straßenbahn fährt über Köln.", "straßenbahn köln"),
            "russian": ("Мою собаку зовут Шарик.", "собаку"),
            "greek": ("Η γάτα μου λέγεται Αθηνά.", "γάτα"),
            "arabic": ("اسم قطتي هو لؤلؤة", "قطتي"),
            "chinese": ("我的猫叫小白。", "我的猫叫小白"),
            "japanese": ("ペットの名前はタマです。", "ペットの名前はタマです"),
            "emoji": ("We bought a kite 🪁 yesterday 👩‍👧‍👦!", "kite 🪁"),
        }
        async with self.open_provider(tmp_path) as provider:
            await _fill(provider, _scope(), [_session(name, text) for name, (text, _) in told.items()])
            for name, (text, query) in told.items():
                found = await provider.search(_scope(), query, 3)
                assert any(text in memory.content for memory in found), f"{name}: {query!r} did not find {text!r}"

    @_in_loop
    async def test_empty_sessions_and_turns_do_no_harm(self, tmp_path: Path) -> None:
        async with self.open_provider(tmp_path) as provider:
            sessions = [Session(id="silent", turns=()), _session("told", "", f"My pet is a {_CANARY}.", "  ")]
            await _fill(provider, _scope(), sessions)
            assert _with_canary(await provider.search(_scope(), _CANARY, 10)), "lost beside empty turns"

    @_in_loop
    async def test_the_end_of_a_very_long_session_is_found(self, tmp_path: Path) -> None:
        chatter = [f"Remark {n} on the garden. " + "The weather was mild and nobody minded. " * 20 for n in range(300)]
        async with self.open_provider(tmp_path) as provider:
            await _fill(provider, _scope(), [_session("long", *chatter, f"My pet is a {_CANARY}.")])
            assert _with_canary(await provider.search(_scope(), f"pet {_CANARY}", 10)), "the last of 301 turns is lost"

    @_in_loop
    async def test_any_text_is_a_query(self, tmp_path: Path) -> None:
        async with self.open_provider(tmp_path) as provider:
            await _fill(provider, _scope(), [*_small_talk(3), _session("told", f"My pet is a {_CANARY}.")])
            for query in _HOSTILE_QUERIES:
                assert len(await provider.search(_scope(), query, 5)) <= 5, f"more than asked for: {query[:40]!r}"
            assert _with_canary(await provider.search(_scope(), _CANARY, 5)), "a hostile query did harm"

    @_in_loop
    async def test_a_scope_never_filled_holds_nothing(self, tmp_path: Path) -> None:
        async with self.open_provider(tmp_path) as provider:
            assert not await provider.search(_scope(), "garden", 5)

    @_in_loop
    async def test_clear_really_clears(self, tmp_path: Path) -> None:
        cleared, kept = _scope("cleared"), _scope("kept")
        async with self.open_provider(tmp_path) as provider:
            for scope in (cleared, kept):
                await _fill(provider, scope, [_session("told", f"My pet is a {_CANARY}.")])
                assert await provider.search(scope, _CANARY, 50), "nothing was found that could be cleared"
            await provider.clear(cleared)
            await provider.clear(cleared)
            assert not await provider.search(cleared, _CANARY, 50), "still found after clear"
            assert await provider.search(kept, _CANARY, 50), "clearing one scope cleared another"
            await _fill(provider, cleared, [_session("told", "My pet is a tortoise.")])
            assert await provider.search(cleared, "tortoise", 50), "a cleared scope can not be filled again"
            assert not _with_canary(await provider.search(cleared, _CANARY, 50)), "the past came back after clear"

    @_in_loop
    async def test_a_store_lives_as_long_as_its_incarnation(self, tmp_path: Path) -> None:
        async with self.open_provider(tmp_path) as provider:
            before = provider.store_id
            await _fill(provider, _scope(), [_session("told", f"My pet is a {_CANARY}.")])
        async with self.open_provider(tmp_path) as provider:
            found = await provider.search(_scope(), _CANARY, 10)
            if self.durable:
                assert provider.store_id == before, "kept, but with a new incarnation it would be filled again"
                assert _with_canary(found), "what was added is gone"
            else:
                assert provider.store_id != before, "emptied, but with the old incarnation it would be searched"

    @_in_loop
    async def test_a_list_tells_all_that_is_held(self, tmp_path: Path) -> None:
        async with self.open_provider(tmp_path) as provider:
            if not isinstance(provider, Listing):
                return  # listing is optional
            await _fill(provider, _scope(), [_session("told", f"My pet is a {_CANARY}.", "It sings.")])
            await _fill(provider, _scope("other"), _small_talk(2))
            held = await provider.list(_scope())
            assert len({memory.id for memory in held}) == len(held), "two memories share an id"
            assert all(any(text in memory.content for memory in held) for text in (_CANARY, "sings")), "not all listed"
            assert not any("garden" in memory.content for memory in held), "another scope's memories are listed"


def _scope(haystack: str = "home") -> Scope:
    return Scope(run="run-1", benchmark="contract", provider="provider", haystack=haystack)


def _session(name: str, *said: str) -> Session:
    turns = (Turn(role="user" if n % 2 == 0 else "assistant", content=text) for n, text in enumerate(said))
    return Session(id=name, turns=tuple(turns), at=datetime(2024, 3, 2, 9, 30, tzinfo=UTC))


def _named(turn: Turn, n: int) -> Turn:
    return turn.model_copy(update={"id": f"turn-{n}"})


def _small_talk(sessions: int) -> list[Session]:
    """No two alike, so that no ranking needs a tie broken."""
    talk = [
        _session(f"talk-{n}", "How is the garden? " + "Lovely weather. " * n, f"Bed number {n} of the garden blooms.")
        for n in range(1, sessions + 1)
    ]
    return [
        session.model_copy(update={"at": session.at + timedelta(days=n)})
        for n, session in enumerate(talk)
        if session.at is not None
    ]


async def _fill(provider: Provider, scope: Scope, sessions: Sequence[Session]) -> None:
    await provider.wait_until_searchable(scope, [await provider.add(scope, session) for session in sessions])


def _with_canary(found: Sequence[Memory]) -> list[Memory]:
    return [memory for memory in found if _CANARY in memory.content]
