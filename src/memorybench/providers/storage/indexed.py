"""Base class of the providers that keep turns or chunks in a store and search them with an index per scope."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from memorybench.core.contracts import Embedder, Receipt, Scope
from memorybench.core.conversation import Memory
from memorybench.core.timing import call_on_thread, excluded
from memorybench.core.trials import Subject
from memorybench.providers.plugin import LocalProvider

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

OPEN_INDEXES = 16
"""A scope is searched many times in a row, then never again; each index takes a few megabytes."""


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    vector: Sequence[float] = ()
    """Empty if the provider has no embedder."""


class Hit(NamedTuple):
    row: int
    """Position among the entries that the index was built from."""
    score: float


class Index(Protocol):
    """The entries of one scope, ready to be searched."""

    def search(self, query: Query, limit: int) -> Sequence[Hit]:
        """Return the best hits, best first; ties in the order of the entries."""
        ...

    def close(self) -> None: ...


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


class IndexedMemory(LocalProvider, Generic[E, S]):
    """Store and indexes are used on one thread: the event loop never waits for them, and they need no locks."""

    def __init__(
        self, subject: Subject, store_id: str, store: S, thread: ThreadPoolExecutor, embedder: Embedder | None
    ) -> None:
        self.subject = subject
        self.store_id = store_id
        self._store = store
        self._thread = thread
        self._embedder = embedder
        self._indexes: OrderedDict[str, tuple[Sequence[E], Index]] = OrderedDict()

    def build_index(self, scope: str, entries: Sequence[E]) -> Index:
        raise NotImplementedError

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        """Build the index, so that no search has to."""
        await self._run(self._find_index, scope.name)

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        text = query.encode("utf-8", "replace").decode()
        if not text.strip():
            return []
        vector = (await self._embedder.embed([text]))[0] if self._embedder is not None else ()
        return await self._run(self._search, scope.name, Query(text, vector), limit)

    async def list(self, scope: Scope) -> Sequence[Memory]:
        return [entry.as_memory() for entry in await self._run(self._store.entries, scope.name)]

    async def clear(self, scope: Scope) -> None:
        await self._change(scope.name, lambda store: store.clear(scope.name))

    def close(self) -> None:
        """Close store and indexes. Must be called on the provider's thread."""
        for _, index in self._indexes.values():
            index.close()
        self._store.close()

    async def _run(self, work: Callable[..., T], *arguments: Any) -> T:
        return await call_on_thread(self._thread, work, *arguments)

    async def _change(self, scope: str, work: Callable[[S], object]) -> None:
        """Change the store; the index of the scope is built again when it is needed."""

        def change() -> None:
            work(self._store)
            if scope in self._indexes:
                self._indexes.pop(scope)[1].close()

        await self._run(change)

    def _search(self, scope: str, query: Query, limit: int) -> Sequence[Memory]:
        with excluded():  # after a resume, or if many scopes are open, the index must be built again
            entries, index = self._find_index(scope)
        return [entries[hit.row].as_memory(hit.score) for hit in index.search(query, limit)]

    def _find_index(self, scope: str) -> tuple[Sequence[E], Index]:
        if scope not in self._indexes:
            entries = self._store.entries(scope)
            self._indexes[scope] = entries, self.build_index(scope, entries)
            if len(self._indexes) > OPEN_INDEXES:
                self._indexes.popitem(last=False)[1][1].close()
        self._indexes.move_to_end(scope)
        return self._indexes[scope]


M = TypeVar("M", bound=IndexedMemory[Any, Any])


@asynccontextmanager
async def open_on_thread(
    name: str, open_store: Callable[[], S], make: Callable[[S, ThreadPoolExecutor], M]
) -> AsyncIterator[M]:
    """Open a store on a thread of its own and yield the provider that `make` returns for it."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"memorybench-{name}") as thread:
        store = await asyncio.get_running_loop().run_in_executor(thread, open_store)
        memory = make(store, thread)
        try:
            yield memory
        finally:
            # runs after all pending work; leaving the executor's block waits for it
            thread.submit(memory.close)


def normalize(vectors: NDArray[float32]) -> NDArray[float32]:
    """Scale each row to length 1; a row of zeros stays as it is."""
    import numpy as np

    lengths: NDArray[float32] = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def best_rows(scores: NDArray[float32], limit: int) -> Sequence[Hit]:
    """Return the rows with the highest scores, best first; ties in their order."""
    import numpy as np

    order = np.argsort(-scores, kind="stable")[:limit]
    return [Hit(int(row), float(scores[row])) for row in order]
