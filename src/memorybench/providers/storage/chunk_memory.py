"""Base class of the providers that store chunks of sessions: aqrag and contextual-retrieval.

These providers differ in what a model adds to each chunk and in how they rank chunks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from msgspec import Struct

from memorybench.core.contracts import Embedder, Model, Receipt, Scope
from memorybench.core.conversation import Session, Turn
from memorybench.core.errors import BadInput, Malformed
from memorybench.core.records import digest
from memorybench.core.trials import Subject
from memorybench.files.located import Document
from memorybench.files.reading import read_text
from memorybench.providers.config.provider import ProviderConfig
from memorybench.providers.config.sections import Database, Enhancement, Local, Retrieval
from memorybench.providers.plugin import OpenContext, require_model
from memorybench.text.sanitize import preview
from memorybench.text.spelling import join_names, unknown_name

from .chunking import Chunk, chunk_session
from .chunks import ChunkStore, Kind, SearchKey, Similarity, SqliteChunkStore, StoredChunk
from .indexed import Hit, Index, IndexedMemory, Query, normalize, open_on_threads
from .paths import find_file
from .turns import replace_surrogates

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    Cosines = Mapping[Kind, NDArray[float32]]


class Addition(Struct, frozen=True):
    """The texts that a model wrote for a chunk: a context, or questions that the chunk answers."""

    context: str = ""
    questions: Sequence[str] = ()


class ChunkIndex(Index):
    """Base class of the indexes that rank the chunks of one scope."""

    def __init__(
        self, chunks: Sequence[StoredChunk], find_similar: Callable[[bytes], Sequence[Similarity]], retrieval: Retrieval
    ) -> None:
        self.retrieval = retrieval
        self._rows = {(chunk.session, chunk.place): row for row, chunk in enumerate(chunks)}
        self._find_similar = find_similar

    def rank(self, query: Query, cosines: Cosines, limit: int) -> Sequence[Hit]:
        """Return the `limit` best chunks, best first.

        `cosines["chunk"]` and `cosines["question"]` have one number per chunk: the cosine between the query and the
        nearest search key of this kind, NaN if the chunk has none.
        """
        raise NotImplementedError

    def search(self, query: Query, limit: int) -> Sequence[Hit]:
        import numpy as np

        [vector] = _to_bytes([query.vector])
        kinds: tuple[Kind, ...] = ("chunk", "question")
        cosines = {kind: np.full(len(self._rows), np.nan, np.float32) for kind in kinds}
        for session, place, kind, cosine in self._find_similar(vector):
            cosines[kind][self._rows[session, place]] = cosine
        return self.rank(query, cosines, min(limit, self.retrieval.max_results or limit))


class Enrichment(Struct, frozen=True):
    """How a model writes a context or questions for each chunk: its prompts, and how its replies are read."""

    model: Model
    prompt: Callable[[Sequence[Chunk], int], str]
    """Returns the prompt for one chunk. The arguments are all chunks of a session, and the chunk's index in them."""
    parse: Callable[[str], Addition]
    """Returns the texts in a reply. Raises a ValueError that explains the problem if the reply is invalid."""
    settings: Mapping[str, Any]
    """Settings on which the stored data depends, so that they are part of the subject and of the store id."""
    schema: Mapping[str, Any] | None = None
    """The JSON Schema of replies; None if replies are text."""

    async def request(self, prompt: str) -> str:
        """Return the text of the model's reply to a prompt, which `parse` accepts. After two invalid replies, raise
        Malformed."""
        turns = [Turn(role="user", content=prompt)]
        for _ in range(2):
            reply = await self.model.complete(turns, schema=self.schema)
            try:
                if reply.finish == "filter":
                    raise ValueError("the model declined")
                self.parse(reply.text)
                return reply.text
            except ValueError as error:
                problem = str(error)
            turns = [
                turns[0],
                Turn(role="assistant", content=reply.text or "…"),
                Turn(role="user", content=f"That cannot be used: {problem}. Answer again, as asked above."),
            ]
        where = f'model "{self.model.subject.name}" (local.enhancement)'
        raise Malformed(f"{where}: the model gave two invalid replies; the second: {problem}: {preview(reply.text)}")


class ChunkMemory(IndexedMemory[StoredChunk, ChunkStore]):
    """Base class of providers whose results are chunks of sessions.

    The chunks of a session are stored in one transaction, after the model and the embedder have processed all of them.
    """

    needs_embedder = True
    uses_local_section = True
    index_class: ClassVar[type[ChunkIndex]]
    strategies: ClassVar[Sequence[str]]
    """Allowed values of `local.retrieval.strategy`."""
    weights: ClassVar[Mapping[str, float]]
    """The keys that `local.retrieval.weights` may have, with their default values."""

    def __init__(
        self,
        config: ProviderConfig,
        store: ChunkStore,
        threads: Sequence[ThreadPoolExecutor],
        embedder: Embedder,
        enrichment: Enrichment | None,
    ) -> None:
        local = config.local or Local()
        enriched = enrichment.settings if enrichment else {}
        settings = {
            "adapter": config.adapter,
            "chunking": local.chunking.plain(),
            "embedder": embedder.subject.plain(),
            "database": local.database.type,  # not its address, which may contain a password
            "retrieval": local.retrieval.plain(),
            **enriched,
        }
        subject = Subject(role="provider", name=config.name, settings=settings)
        # another embedder, chunking or enrichment makes other data, so the store id differs
        store_id = digest([store.store_id, [embedder.subject.key, local.chunking, enriched]])
        super().__init__(subject, store_id, store, threads, embedder)
        self._embed = embedder.embed
        self._chunk = partial(chunk_session, chunking=local.chunking, embedder=embedder)
        self._enrichment = enrichment
        self._retrieval = local.retrieval

    @classmethod
    def make_enrichment(cls, enhancement: Enhancement, model: Model) -> Enrichment:
        raise NotImplementedError

    @classmethod
    def is_enriched(cls, enhancement: Enhancement) -> bool:
        return enhancement.enabled

    @classmethod
    @asynccontextmanager
    async def open(cls, context: OpenContext) -> AsyncIterator[Self]:
        embedder, model = await context.open_embedder(), await context.open_model()
        async with cls.open_file(
            context.config, context.store_file, embedder, model, config_file=context.config_file
        ) as memory:
            yield memory

    @classmethod
    def open_file(
        cls,
        config: ProviderConfig,
        file: Path,
        embedder: Embedder,
        model: Model | None,
        *,
        config_file: Path | None = None,
    ) -> AbstractAsyncContextManager[Self]:
        """Open the memories in the SQLite file `file`, or in the Postgres database that the config names."""
        local = config.local or Local()
        enrichment: Enrichment | None = None
        if local.enhancement is not None and cls.is_enriched(local.enhancement):
            if model is None:
                raise BadInput(
                    f'provider "{config.name}"',
                    "no model is set that enriches the chunks",
                    remedy="add local.enhancement.model to the config",
                )
            enrichment = cls.make_enrichment(local.enhancement, model)
        return open_on_threads(
            config.name,
            lambda: _open_store(local.database, file, config_file),
            lambda store, threads: cls(config, store, threads, embedder, enrichment),
        )

    @classmethod
    def check_config(cls, config: ProviderConfig, document: Document) -> None:
        if config.local is not None:
            part = document.at("local")
            require_model(config, document, "the model that works on each chunk")
            cls._check_retrieval(config.local, part)
            if config.local.database.type == "sqlite" and config.local.database.schema_file:
                where = part.where("database", "schema")
                raise BadInput(where, "schema has no effect with SQLite", remedy="remove it, or set type: postgres")

    async def add(self, scope: Scope, session: Session) -> Receipt:
        chunks = await self._chunk(session)
        additions = [await self._enrich(scope.name, chunks, row) for row in range(len(chunks))]
        stored = [
            StoredChunk(session.id, place, chunk.turns, replace_surrogates(addition.context), chunk.text)
            for place, (chunk, addition) in enumerate(zip(chunks, additions, strict=True), start=1)
        ]
        texts: list[tuple[int, Kind, str]] = [(chunk.place, "chunk", chunk.content) for chunk in stored]
        for chunk, addition in zip(stored, additions, strict=True):
            texts += [(chunk.place, "question", replace_surrogates(question)) for question in addition.questions]
        vectors = _to_bytes(await self._embed([text for _, _, text in texts])) if texts else []
        keys = [SearchKey(*text, vector) for text, vector in zip(texts, vectors, strict=True)]
        await self._change(scope.name, lambda store: store.replace(scope.name, session.id, stored, keys))
        return Receipt(ids=tuple(chunk.memory_id for chunk in stored))

    def build_index(self, scope: str, entries: Sequence[StoredChunk]) -> ChunkIndex:
        return self.index_class(entries, partial(self._store.similarities, scope), self._retrieval)

    async def _enrich(self, scope: str, chunks: Sequence[Chunk], row: int) -> Addition:
        """Return the texts that the model writes for `chunks[row]`; no texts if the provider has no enrichment.

        Each reply is saved at once. So if the add is repeated, after a rate limit or a killed process, the model is
        asked only about chunks without a saved reply.
        """
        enrichment = self._enrichment
        if enrichment is None:
            return Addition()
        prompt = enrichment.prompt(chunks, row)
        topic = digest([enrichment.model.subject.key, prompt])
        text = await self._run(scope, self._store.load_reply, scope, topic)
        if text is None:
            text = replace_surrogates(await enrichment.request(prompt))
            await self._run(scope, self._store.save_reply, scope, topic, text)
        return enrichment.parse(text)

    @classmethod
    def _check_retrieval(cls, local: Local, part: Document) -> None:
        retrieval, weights_at = local.retrieval, part.where("retrieval", "weights")
        if retrieval.strategy not in cls.strategies:
            where, expected = part.where("retrieval", "strategy"), f"one of {join_names(cls.strategies)}"
            raise BadInput(
                where,
                f"the strategy {preview(retrieval.strategy)} is not supported by this provider",
                expected=expected,
            )
        if retrieval.weights and retrieval.strategy != "weighted":
            raise BadInput(
                weights_at,
                "weights have no effect without strategy: weighted",
                remedy="set strategy: weighted, or remove weights",
            )
        for name, weight in retrieval.weights.items():
            where = part.where("retrieval", "weights", name)
            if name not in cls.weights:
                raise unknown_name(where, f"unknown weight {preview(name)}", name, cls.weights)
            if weight < 0:
                raise BadInput(where, f"invalid weight {weight}", expected="0 or more")
        if retrieval.weights and not sum(retrieval.weights.values()):
            raise BadInput(weights_at, "all weights are 0", expected="at least one weight above 0")


def _to_bytes(vectors: Sequence[Sequence[float]]) -> Sequence[bytes]:
    import numpy as np

    return [row.tobytes() for row in normalize(np.asarray(vectors, np.float32))]


def _open_store(database: Database, file: Path, config_file: Path | None) -> ChunkStore:
    if database.type == "sqlite":
        return SqliteChunkStore(file)
    from .postgres_store import PostgresChunkStore

    schema = ""
    if database.schema_file:
        schema = read_text(find_file(database.schema_file, config_file, "local.database.schema"))
    return PostgresChunkStore(database.connection_string or "", schema)
