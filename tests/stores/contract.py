"""The tests that every memory store must pass, as a base class. An unsupported operation must raise `Lacking`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import wraps
from pathlib import Path
from typing import TypeVar

import pytest

from memorybench.core.errors import Lacking
from memorybench.core.stores import Capability, MemoryStore, NewFact, StoredFact

C = TypeVar("C", bound="StoreContract")

ANN, BOB = "ann", "bob"
TEA = NewFact(content="Ann drinks oolong tea in the morning")
KAYAK = NewFact(content="Ann keeps a yellow kayak in the garage")
UNUSUAL_QUERIES = (
    "",
    "   ",
    '"',
    '"tea" AND (NEAR',
    "content : * OR NOT ^",
    "'; DROP TABLE facts; --",
    "\x00",
    "🦓",
    "of the",
)


def in_loop(check: Callable[[C, Path], Awaitable[None]]) -> Callable[[C, Path], None]:
    @wraps(check)
    def run(self: C, tmp_path: Path) -> None:
        async def checked() -> None:
            await check(self, tmp_path)

        asyncio.run(checked())

    return run


def contents(facts: Sequence[StoredFact]) -> list[str]:
    return sorted(fact.content for fact in facts)


def raw(folder: Path) -> bytes:
    return b"\n".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


async def needs(store: MemoryStore, capability: Capability, call: Callable[[], Awaitable[object]]) -> None:
    """Skip the test if the store does not support the operation, which must then raise Lacking."""
    if capability not in store.capabilities:
        with pytest.raises(Lacking):
            await call()
        pytest.skip(f"{store.subject.name} lacks {capability}")


class StoreContract:
    forgets_on_disk = True
    """Whether the files contain no text of forgotten facts."""

    def open_store(self, folder: Path) -> AbstractAsyncContextManager[MemoryStore]:
        """Open a session on the store in `folder`."""
        raise NotImplementedError

    @in_loop
    async def test_the_store_has_a_subject_and_capabilities(self, tmp_path: Path) -> None:
        async with self.open_store(tmp_path) as store:
            assert store.subject.role == "store"
            assert store.subject.name
            assert isinstance(store.capabilities, frozenset)

    @in_loop
    async def test_stored_facts_are_listed_by_id(self, tmp_path: Path) -> None:
        async with self.open_store(tmp_path) as store:
            await needs(store, "list", lambda: store.list(ANN))
            tea, kayak = [await store.remember(ANN, fact) for fact in (TEA, KAYAK)]
            contents_by_id = {fact.id: fact.content for fact in await store.list(ANN)}
            assert tea != kayak
            assert contents_by_id == {tea: TEA.content, kayak: KAYAK.content}

    @in_loop
    async def test_the_matching_fact_is_recalled_first(self, tmp_path: Path) -> None:
        async with self.open_store(tmp_path) as store:
            await needs(store, "recall", lambda: store.recall(ANN, "kayak", 5))
            for fact in (TEA, KAYAK):
                await store.remember(ANN, fact)
            recalled = await store.recall(ANN, "Where is the yellow kayak?", 5)
            assert recalled[0].content == KAYAK.content
            assert len(await store.recall(ANN, "Ann", 1)) <= 1

    @in_loop
    async def test_unusual_queries_do_not_fail(self, tmp_path: Path) -> None:
        async with self.open_store(tmp_path) as store:
            await needs(store, "recall", lambda: store.recall(ANN, "kayak", 5))
            await store.remember(ANN, TEA)
            for query in UNUSUAL_QUERIES:
                assert len(await store.recall(ANN, query, 3)) <= 1, query

    @in_loop
    async def test_an_update_replaces_the_text(self, tmp_path: Path) -> None:
        async with self.open_store(tmp_path) as store:
            await needs(store, "update", lambda: store.update(ANN, "1", "new"))
            id = await store.remember(ANN, TEA)
            now = await store.update(ANN, id, "Ann drinks cocoa in the morning")
            assert {fact.id: fact.content for fact in await store.list(ANN)} == {now: "Ann drinks cocoa in the morning"}
            again = await store.update(ANN, now, "Ann drinks water in the morning")
            assert {fact.id: fact.content for fact in await store.list(ANN)} == {
                again: "Ann drinks water in the morning"
            }

    @in_loop
    async def test_forget_deletes_one_fact_only(self, tmp_path: Path) -> None:
        async with self.open_store(tmp_path) as store:
            await needs(store, "forget", lambda: store.forget(ANN, "1"))
            id = await store.remember(ANN, TEA)
            await store.remember(ANN, KAYAK)
            await store.forget(ANN, id)
            assert contents(await store.list(ANN)) == [KAYAK.content]
            if "recall" in store.capabilities:
                assert TEA.content not in contents(await store.recall(ANN, "oolong tea", 5))

    @in_loop
    async def test_a_new_session_on_the_same_folder_lists_the_same_facts(self, tmp_path: Path) -> None:
        async with self.open_store(tmp_path) as store:
            await needs(store, "list", lambda: store.list(ANN))
            id = await store.remember(ANN, TEA)
        async with self.open_store(tmp_path) as store:
            assert [(fact.id, fact.content) for fact in await store.list(ANN)] == [(id, TEA.content)]

    @in_loop
    async def test_users_see_only_their_own_facts(self, tmp_path: Path) -> None:
        async with self.open_store(tmp_path) as store:
            if "users" not in store.capabilities:
                pytest.skip(f"{store.subject.name} lacks users")
            id = await store.remember(ANN, TEA)
            assert contents(await store.list(BOB)) == []
            assert contents(await store.recall(BOB, "oolong tea", 5)) == []
            await store.remember(BOB, KAYAK)
            assert contents(await store.list(ANN)) == [TEA.content]
            assert [fact.id for fact in await store.list(ANN)] == [id]

    @in_loop
    async def test_values_set_by_a_fixture_are_listed(self, tmp_path: Path) -> None:
        fact_with_fields = TEA.model_copy(update={"category": "habit", "trust": 0.9, "retrieval_count": 7})
        async with self.open_store(tmp_path) as store:
            supported = [name for name in ("category", "trust", "retrieval_count") if name in store.capabilities]
            await store.remember(ANN, fact_with_fields)
            if not supported or "list" not in store.capabilities:
                pytest.skip(f"{store.subject.name} stores only the text")
            [fact] = await store.list(ANN)
            for name in supported:
                assert getattr(fact, name) == getattr(fact_with_fields, name)

    @in_loop
    async def test_recall_counts_as_a_retrieval_and_list_does_not(self, tmp_path: Path) -> None:
        async with self.open_store(tmp_path) as store:
            if not {"retrieval_count", "list", "recall"} <= store.capabilities:
                pytest.skip(f"{store.subject.name} does not count retrievals")
            await store.remember(ANN, TEA)
            counts = [(await store.list(ANN))[0].retrieval_count for _ in range(3)]
            assert counts == [0, 0, 0]
            await store.recall(ANN, "oolong tea", 5)
            assert (await store.list(ANN))[0].retrieval_count == 1

    @in_loop
    async def test_a_dry_run_proposes_the_same_changes(self, tmp_path: Path) -> None:
        async with self.open_store(tmp_path) as store:
            await needs(store, "curate", lambda: store.curate(ANN, apply=False))
            for content in ("Ann prefers dark mode in her editor", "Ann now prefers light mode in her editor"):
                await store.remember(ANN, NewFact(content=content))
            dry = await store.curate(ANN, apply=False)
            assert not dry.applied
            assert len(await store.list(ANN)) == 2
            done = await store.curate(ANN, apply=True)
            assert done.applied
            assert done.proposals == dry.proposals
            removed = {id for proposal in done.proposals for id in proposal.ids}
            assert removed.isdisjoint(fact.id for fact in await store.list(ANN))

    @in_loop
    async def test_history_returns_earlier_texts(self, tmp_path: Path) -> None:
        async with self.open_store(tmp_path) as store:
            await needs(store, "history", lambda: store.history(ANN))
            id = await store.remember(ANN, TEA)
            assert list(await store.history(ANN)) == []
            await store.update(ANN, id, "Ann drinks cocoa in the morning")
            assert TEA.content in await store.history(ANN)

    @in_loop
    async def test_forgotten_text_is_not_in_the_files(self, tmp_path: Path) -> None:
        async with self.open_store(tmp_path) as store:
            if not {"files", "forget"} <= store.capabilities:
                pytest.skip(f"{store.subject.name} lacks files or forget")
            id = await store.remember(ANN, TEA)
            await store.remember(ANN, KAYAK)
        async with self.open_store(tmp_path) as store:
            assert b"kayak" in raw(tmp_path)
            await store.forget(ANN, id)
        assert (b"oolong" in raw(tmp_path)) != self.forgets_on_disk
