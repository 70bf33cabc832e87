import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from memorybench.core.contracts import Scope
from memorybench.providers.bm25 import Bm25
from memorybench.providers.storage.indexed import INDEX_THREADS, OPEN_INDEXES, Hit, Index, Query
from memorybench.providers.storage.turns import StoredTurn, TurnMemory
from tests.providers.embedded import HOME, session, sessions_of


class RecordedIndex(Index):
    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.is_closed = False

    def search(self, query: Query, limit: int) -> Sequence[Hit]:
        return []

    def close(self) -> None:
        self.is_closed = True


class RecordingMemory(TurnMemory):
    name = "recording"
    settings: ClassVar = {}

    def build_index(self, scope: str, entries: Sequence[StoredTurn]) -> RecordedIndex:
        self.built = [*getattr(self, "built", []), RecordedIndex(scope)]
        return self.built[-1]


def scope(n: int) -> Scope:
    return HOME.model_copy(update={"haystack": str(n)})


def test_an_index_is_built_once_until_its_scope_changes(tmp_path: Path) -> None:
    async def count_built() -> list[int]:
        async with RecordingMemory.open_file(tmp_path / "turns.db") as memory:
            counts = []
            await memory.search(HOME, "dog", 1)
            await memory.search(HOME, "cat", 1)
            counts.append(len(memory.built))
            await memory.add(HOME, session("s1", "I own a dog."))
            await memory.search(HOME, "dog", 1)
            assert memory.built[0].is_closed
            return [*counts, len(memory.built)]

    assert asyncio.run(count_built()) == [1, 2]


def test_least_recently_searched_index_is_closed_first(tmp_path: Path) -> None:
    async def closed_scopes() -> tuple[list[str], list[RecordedIndex]]:
        async with RecordingMemory.open_file(tmp_path / "turns.db") as memory:
            for n in (*range(OPEN_INDEXES), 0, OPEN_INDEXES):
                await memory.search(scope(n), "dog", 1)
            return [index.scope for index in memory.built if index.is_closed], memory.built

    closed, built = asyncio.run(closed_scopes())
    assert closed == [scope(1).name]
    assert all(index.is_closed for index in built)


def test_scopes_in_memory_share_the_threads_and_never_their_turns() -> None:
    async def found_sessions() -> list[list[str]]:
        async with Bm25.open_file(None) as memory:
            scopes = [scope(n) for n in range(3 * INDEX_THREADS)]
            await asyncio.gather(
                *(memory.add_batch(one, [session(f"s{n}", f"I own dog number {n}.")]) for n, one in enumerate(scopes))
            )
            await asyncio.gather(*(memory.wait_until_searchable(one, []) for one in scopes))
            return [
                sessions_of(memories)
                for memories in await asyncio.gather(*(memory.search(one, "dog", 5) for one in scopes))
            ]

    assert asyncio.run(found_sessions()) == [[f"s{n}"] for n in range(3 * INDEX_THREADS)]


def test_turns_in_memory_are_listed_in_the_order_of_a_file(tmp_path: Path) -> None:
    sessions = [session(name, "One.", " ", "Three.") for name in ("s10", "s2", "é", "Z", "s2")]

    async def listed(file: Path | None) -> list[str]:
        async with Bm25.open_file(file) as memory:
            for one in sessions:
                await memory.add(HOME, one)
            return [memory.id for memory in await memory.list(HOME)]

    assert asyncio.run(listed(None)) == asyncio.run(listed(tmp_path / "turns.db"))
