"""What bm25, dense and hybrid have in common: they keep turns, and differ in how they find them again."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from memorybench.core.contracts import Embedder, Receipt, Scope
from memorybench.core.conversation import Memory, Session
from memorybench.core.errors import ServiceError
from memorybench.core.records import digest
from memorybench.core.trials import Subject

from .shelves import Shelves
from .turn_store import KeptTurn, TurnStore, kept_turns, storable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked:
    text: str
    vector: Sequence[float] = ()
    """Empty where no embedder is at work."""


class Hit(NamedTuple):
    row: int
    """Where the turn stands among those the index was built from."""
    score: float


class Index(Protocol):
    """The turns of one scope, made searchable."""

    def best(self, asked: Asked, limit: int) -> Sequence[Hit]:
        """Best first; ties in the order of the turns."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Shelf:
    turns: Sequence[KeptTurn]
    index: Index

    def close(self) -> None:
        self.index.close()


class TurnMemory:
    """A provider that gives back single turns. A session ranks where its best turn does.

    SQLite and the indexes are touched on one thread of their own: the loop never waits for them, and they need no
    locks. Whatever asks for a session's turns is queued behind what wrote them.
    """

    def __init__(
        self,
        subject: Subject,
        file: Path,
        store: TurnStore,
        thread: ThreadPoolExecutor,
        build: Callable[[Sequence[KeptTurn]], Index],
        embedder: Embedder | None,
    ) -> None:
        self._subject = subject
        self._file = file
        self._store = store
        self._thread = thread
        self._build = build
        self._embedder = embedder
        self._shelves = Shelves(self._shelf)

    @property
    def subject(self) -> Subject:
        return self._subject

    @property
    def store_id(self) -> str:
        if self._embedder is None:
            return self._store.store_id
        # vectors of another embedder can not be compared: to this one, the store is another store
        return digest([self._store.store_id, self._embedder.subject.key])

    async def add(self, scope: Scope, session: Session) -> Receipt:
        turns = kept_turns(session)
        if self._embedder is not None and turns:
            vectors = await self._embedder.embed([kept.said for kept in turns])
            turns = [replace(kept, vector=_packed(vector)) for kept, vector in zip(turns, vectors, strict=True)]
        await self._on_thread(self._keep, scope.name, session.id, turns)
        return Receipt(ids=tuple(kept.memory_id for kept in turns))

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        """Nothing to wait for: what `add` returned from is searchable."""

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        text = storable(query)
        if not text.strip():
            return []
        vector = (await self._embedder.embed([text]))[0] if self._embedder is not None else ()
        return await self._on_thread(self._find, scope.name, Asked(text, vector), limit)

    async def list(self, scope: Scope) -> Sequence[Memory]:
        return await self._on_thread(self._all, scope.name)

    async def clear(self, scope: Scope) -> None:
        await self._on_thread(self._forget, scope.name)

    def close(self) -> None:
        """To be called on the store's thread."""
        self._shelves.close()
        self._store.close()

    async def _on_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        except sqlite3.Error as error:
            raise ServiceError(f"{self._file}: {error}") from error

    def _keep(self, scope: str, session: str, turns: Sequence[KeptTurn]) -> None:
        self._store.replace(scope, session, turns)
        self._shelves.drop(scope)

    def _find(self, scope: str, asked: Asked, limit: int) -> Sequence[Memory]:
        run_reader = self._shelves.run_reader(scope)
        return [run_reader.turns[hit.row].as_memory(hit.score) for hit in run_reader.index.best(asked, limit)]

    def _all(self, scope: str) -> Sequence[Memory]:
        return [kept.as_memory() for kept in self._store.turns(scope)]

    def _forget(self, scope: str) -> None:
        self._store.clear(scope)
        self._shelves.drop(scope)

    def _shelf(self, scope: str) -> _Shelf:
        turns = self._store.turns(scope)
        return _Shelf(turns, self._build(turns))


def _packed(vector: Sequence[float]) -> bytes:
    import numpy as np

    return np.asarray(vector, dtype=np.float32).tobytes()


@asynccontextmanager
async def open_turn_memory(
    name: str,
    file: Path,
    build: Callable[[Sequence[KeptTurn]], Index],
    settings: Mapping[str, Any],
    embedder: Embedder | None = None,
) -> AsyncIterator[TurnMemory]:
    if embedder is not None:
        settings = {**settings, "embedder": embedder.subject.model_dump(mode="json")}
    subject = Subject(role="provider", name=name, settings=settings)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"memorybench-{name}") as thread:
        store = await asyncio.get_running_loop().run_in_executor(thread, TurnStore, file)
        memory = TurnMemory(subject, file, store, thread, build, embedder)
        try:
            yield memory
        finally:
            # queued behind what is still at work, and awaited by leaving the executor's block
            thread.submit(memory.close)
