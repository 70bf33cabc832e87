"""What aqrag and contextual-retrieval have in common: they keep chunks, and differ in what a model adds to them and in
how they rank them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from memorybench.core.contracts import Embedder, Receipt, Scope
from memorybench.core.conversation import Memory, Session
from memorybench.core.records import digest
from memorybench.core.trials import Subject
from memorybench.files.reading import read_text

from .chunk_store import ChunkStore, Handle, KeptChunk, Kind, SqliteChunkStore
from .chunking import Chunk, chunked
from .config import Chunking, Database, Local, ProviderConfig
from .dense import normalised
from .enrichment import Notebook
from .paths import named_file
from .shelves import Shelves
from .turn_memory import Asked, Hit
from .turn_store import storable

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Enriched:
    """What a model added to a chunk."""

    context: str = ""
    questions: Sequence[str] = ()


class Ranking(Protocol):
    """The chunks of one scope, made searchable."""

    def best(self, asked: Asked, cosines: Mapping[Kind, NDArray[float32]], limit: int) -> Sequence[Hit]:
        """Best first. `cosines` has a row for each chunk, not a number where the chunk has no handle of that kind."""
        ...

    def close(self) -> None: ...


class Method(Protocol):
    @property
    def settings(self) -> Mapping[str, Any]:
        """What decides about what is stored; goes into the subject and into the incarnation."""
        ...

    async def enrich(self, session: Sequence[Chunk], row: int, notebook: Notebook) -> Enriched:
        """What a model adds to one of the chunks of a session."""
        ...

    def ranking(self, chunks: Sequence[KeptChunk]) -> Ranking: ...


@dataclass(frozen=True, slots=True)
class _Shelf:
    chunks: Sequence[KeptChunk]
    rows: Mapping[tuple[str, int], int]
    ranking: Ranking

    def close(self) -> None:
        self.ranking.close()


class ChunkMemory:
    """A provider that gives back chunks of sessions.

    The store is touched on one thread of its own, as in TurnMemory. A session is stored whole or not at all: its
    chunks are written when the last of them has been enriched and embedded.
    """

    def __init__(
        self,
        subject: Subject,
        store: ChunkStore,
        thread: ThreadPoolExecutor,
        method: Method,
        embedder: Embedder,
        chunking: Chunking,
    ) -> None:
        self._subject = subject
        self._store = store
        self._thread = thread
        self._method = method
        self._embedder = embedder
        self._chunking = chunking
        self._shelves = Shelves(self._shelf)

    @property
    def subject(self) -> Subject:
        return self._subject

    @property
    def store_id(self) -> str:
        # to other vectors, chunks or questions than it holds, the store is another store
        stored = [self._embedder.subject.key, self._chunking, self._method.settings]
        return digest([self._store.store_id, stored])

    async def add(self, scope: Scope, session: Session) -> Receipt:
        chunks = await chunked(session, self._chunking, self._embedder)
        notebook = Notebook(
            partial(self._on_thread, self._store.noted, scope.name),
            partial(self._on_thread, self._store.note, scope.name),
        )
        enriched = [await self._method.enrich(chunks, row, notebook) for row in range(len(chunks))]
        kept = [
            KeptChunk(session.id, place, chunk.turns, storable(added.context), chunk.text)
            for place, (chunk, added) in enumerate(zip(chunks, enriched, strict=True), start=1)
        ]
        handles = await self._handles(kept, enriched)
        await self._on_thread(self._keep, scope.name, session.id, kept, handles)
        return Receipt(ids=tuple(chunk.memory_id for chunk in kept))

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        """Nothing to wait for: what `add` returned from is searchable."""

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        text = storable(query)
        if not text.strip():
            return []
        asked = Asked(text, (await self._embedder.embed([text]))[0])
        return await self._on_thread(self._find, scope.name, asked, limit)

    async def list(self, scope: Scope) -> Sequence[Memory]:
        return [kept.as_memory() for kept in await self._on_thread(self._store.chunks, scope.name)]

    async def clear(self, scope: Scope) -> None:
        await self._on_thread(self._forget, scope.name)

    def close(self) -> None:
        """To be called on the store's thread."""
        self._shelves.close()
        self._store.close()

    async def _on_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    async def _handles(self, chunks: Sequence[KeptChunk], enriched: Sequence[Enriched]) -> Sequence[Handle]:
        named: list[tuple[int, Kind, str]] = [(chunk.place, "chunk", chunk.content) for chunk in chunks]
        for chunk, added in zip(chunks, enriched, strict=True):
            named += [(chunk.place, "question", storable(question)) for question in added.questions]
        if not named:
            return []
        vectors = _packed(await self._embedder.embed([said for _, _, said in named]))
        return [Handle(*name, vector) for name, vector in zip(named, vectors, strict=True)]

    def _keep(self, scope: str, session: str, chunks: Sequence[KeptChunk], handles: Sequence[Handle]) -> None:
        self._store.replace(scope, session, chunks, handles)
        self._shelves.drop(scope)

    def _find(self, scope: str, asked: Asked, limit: int) -> Sequence[Memory]:
        run_reader = self._shelves.run_reader(scope)
        found = run_reader.ranking.best(asked, self._cosines(scope, run_reader, asked), limit)
        return [run_reader.chunks[hit.row].as_memory(hit.score) for hit in found]

    def _cosines(self, scope: str, run_reader: _Shelf, asked: Asked) -> Mapping[Kind, NDArray[float32]]:
        import numpy as np

        [vector] = _packed([asked.vector])
        cosines: dict[Kind, NDArray[float32]] = {
            kind: np.full(len(run_reader.chunks), np.nan, np.float32) for kind in ("chunk", "question")
        }
        for session, place, kind, cosine in self._store.likenesses(scope, vector):
            cosines[kind][run_reader.rows[session, place]] = cosine
        return cosines

    def _forget(self, scope: str) -> None:
        self._store.clear(scope)
        self._shelves.drop(scope)

    def _shelf(self, scope: str) -> _Shelf:
        chunks = self._store.chunks(scope)
        rows = {(chunk.session, chunk.place): row for row, chunk in enumerate(chunks)}
        return _Shelf(chunks, rows, self._method.ranking(chunks))


def _packed(vectors: Sequence[Sequence[float]]) -> Sequence[bytes]:
    import numpy as np

    return [row.tobytes() for row in normalised(np.asarray(vectors, np.float32))]


def wanted_model(config: ProviderConfig) -> str | None:
    """The model that works on each chunk; None: none is wanted."""
    enhancement = config.local.enhancement if config.local else None
    return enhancement.model if enhancement and enhancement.enabled else None


@asynccontextmanager
async def open_chunk_memory(
    config: ProviderConfig, file: Path, embedder: Embedder, method: Method, config_file: Path | None
) -> AsyncIterator[ChunkMemory]:
    local = config.local or Local()
    settings = {
        "adapter": config.adapter,
        "chunking": local.chunking.plain(),
        "embedder": embedder.subject.plain(),
        "database": local.database.type,  # and not where it is, which may hold a password
        "retrieval": local.retrieval.plain(),
        **method.settings,
    }
    subject = Subject(role="provider", name=config.name, settings=settings)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"memorybench-{config.name}") as thread:
        opening = partial(_open_store, local.database, file, config_file)
        store = await asyncio.get_running_loop().run_in_executor(thread, opening)
        memory = ChunkMemory(subject, store, thread, method, embedder, local.chunking)
        try:
            yield memory
        finally:
            # queued behind what is still at work, and awaited by leaving the executor's block
            thread.submit(memory.close)


def _open_store(database: Database, file: Path, config_file: Path | None) -> ChunkStore:
    if database.type == "sqlite":
        return SqliteChunkStore(file)
    from .postgres_store import PostgresChunkStore

    schema = ""
    if database.schema_file:
        schema = read_text(named_file(database.schema_file, config_file, "local.database.schema"))
    return PostgresChunkStore(database.connection_string or "", schema)
