"""Base class of the providers that store turns or chunks and search them with one index per scope."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from itertools import cycle
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from msgspec import Struct, field

from memorybench.core.contracts import Embedder, Receipt, Scope
from memorybench.core.conversation import Memory
from memorybench.core.timing import call_on_thread, excluded
from memorybench.core.trials import Subject
from memorybench.providers.plugin import LocalProvider

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

OPEN_INDEXES = 16
"""Maximum number of indexes in memory, on all threads together. An index takes megabytes, and is no longer needed after
the questions of its scope, which are asked one after the other."""
INDEX_THREADS = min(4, os.cpu_count() or 1)
"""Number of threads that build indexes; more threads would mostly wait for Python's interpreter lock."""


class Query(Struct, frozen=True):
    """The text of a search and its vector."""

    text: str
    vector: Sequence[float] = ()
    """Empty if the provider has no embedder."""


class Hit(NamedTuple):
    row: int
    """The position, from 0, of the found entry among the entries that the index was built from."""
    score: float


class Index:
    """Base class of indexes, with which the entries of one scope (turns or chunks) are searched."""

    def search(self, query: Query, limit: int) -> Sequence[Hit]:
        """Return at most `limit` hits, best first; hits with equal scores have the order of the entries."""
        raise NotImplementedError

    def close(self) -> None:
        """Close what the index has opened, such as a database; by default, nothing."""


class Entry(Protocol):
    def as_memory(self, score: float | None = None) -> Memory: ...


E = TypeVar("E", bound=Entry)
E_co = TypeVar("E_co", bound=Entry, covariant=True)


class Store(Protocol[E_co]):
    @property
    def store_id(self) -> str: ...

    def entries(self, scope: str) -> Sequence[E_co]: ...

    def clear(self, scope: str) -> None: ...

    def close(self) -> None: ...


S = TypeVar("S", bound=Store[Any])
T = TypeVar("T")


class _Lane(Struct, Generic[E], frozen=True):
    """A thread, and the indexes that only this thread builds and uses, so that they need no locks."""

    thread: ThreadPoolExecutor
    indexes: OrderedDict[str, tuple[Sequence[E], Index]] = field(default_factory=OrderedDict)


class IndexedMemory(LocalProvider, Generic[E, S]):
    """Base class of providers that search an index per scope.

    All work on a scope runs on one thread, so that it does not block the event loop. Several scopes share a thread.
    If the store must be used on the thread that opened it, all scopes use that thread.
    """

    def __init__(
        self,
        subject: Subject,
        store_id: str,
        store: S,
        threads: Sequence[ThreadPoolExecutor],
        embedder: Embedder | None,
    ) -> None:
        self.subject = subject
        self.store_id = store_id
        self._store = store
        self._embedder = embedder
        self._all_lanes: Sequence[_Lane[E]] = [_Lane(thread) for thread in threads]
        self._next_lane = cycle(self._all_lanes)
        self._lanes: dict[str, _Lane[E]] = {}
        """Maps the name of a scope to the thread, with its indexes, that all work on the scope uses."""

    def build_index(self, scope: str, entries: Sequence[E]) -> Index:
        raise NotImplementedError

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        """Build the index of the scope, so that the first search need not build it."""
        await self._run(scope.name, self._find_index, scope.name)

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        text = query.encode("utf-8", "replace").decode()
        if not text.strip():
            return []
        vector = (await self._embedder.embed([text]))[0] if self._embedder is not None else ()
        return await self._run(scope.name, self._search, scope.name, Query(text, vector), limit)

    async def list(self, scope: Scope) -> Sequence[Memory]:
        return [entry.as_memory() for entry in await self._run(scope.name, self._store.entries, scope.name)]

    async def clear(self, scope: Scope) -> None:
        await self._change(scope.name, lambda store: store.clear(scope.name))

    def close(self) -> None:
        """Make each thread close its indexes, and the first one the store, after its pending work. Does not wait."""
        for lane in self._all_lanes:
            lane.thread.submit(_close_indexes, lane)
        self._all_lanes[0].thread.submit(self._store.close)

    async def _run(self, scope: str, work: Callable[..., T], *arguments: Any) -> T:
        return await call_on_thread(self._lane(scope).thread, work, *arguments)

    def _lane(self, scope: str) -> _Lane[E]:
        if scope not in self._lanes:
            self._lanes[scope] = next(self._next_lane)
        return self._lanes[scope]

    async def _change(self, scope: str, work: Callable[[S], object]) -> None:
        """Call `work` with the store, and discard the index of the scope: the next search builds it again."""
        indexes = self._lane(scope).indexes

        def change() -> None:
            work(self._store)
            if scope in indexes:
                indexes.pop(scope)[1].close()

        await self._run(scope, change)

    def _search(self, scope: str, query: Query, limit: int) -> Sequence[Memory]:
        with excluded():  # the index must be built again after a resume, or if many other scopes were used meanwhile
            entries, index = self._find_index(scope)
        return [entries[hit.row].as_memory(hit.score) for hit in index.search(query, limit)]

    def _find_index(self, scope: str) -> tuple[Sequence[E], Index]:
        indexes = self._lanes[scope].indexes
        if scope not in indexes:
            entries = self._store.entries(scope)
            indexes[scope] = entries, self.build_index(scope, entries)
            if len(indexes) > max(1, OPEN_INDEXES // len(self._all_lanes)):
                indexes.popitem(last=False)[1][1].close()
        indexes.move_to_end(scope)
        return indexes[scope]


def _close_indexes(lane: _Lane[Any]) -> None:
    for _, index in lane.indexes.values():
        index.close()


M = TypeVar("M", bound=IndexedMemory[Any, Any])


@asynccontextmanager
async def open_on_threads(
    name: str, open_store: Callable[[], S], make: Callable[[S, Sequence[ThreadPoolExecutor]], M], threads: int = 1
) -> AsyncIterator[M]:
    """Start executors of one thread each, open a store on the first, and yield what `make` returns for both."""
    with ExitStack() as stack:
        executors = [
            stack.enter_context(ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"memorybench-{name}"))
            for _ in range(threads)
        ]
        store = await asyncio.get_running_loop().run_in_executor(executors[0], open_store)
        memory = make(store, executors)
        try:
            yield memory
        finally:
            memory.close()  # at the end of the context, each executor waits for its pending work


def normalize(vectors: NDArray[float32]) -> NDArray[float32]:
    """Scale each row to length 1; a row of zeros stays as it is."""
    import numpy as np

    lengths: NDArray[float32] = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def best_rows(scores: NDArray[float32], limit: int) -> Sequence[Hit]:
    """Return the `limit` rows with the highest scores as hits, best first; rows with equal scores keep their order."""
    import numpy as np

    order = np.argsort(-scores, kind="stable")[:limit]
    return list(map(Hit, order.tolist(), scores[order].tolist()))
