"""The provider mem0-oss: mem0ai in this process over embedded Qdrant; a model may extract memories."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from memorybench.core.contracts import Embedder, Model, Receipt, Scope
from memorybench.core.conversation import Memory, Session, Turn
from memorybench.core.errors import MemorybenchError, ServiceError
from memorybench.core.records import digest
from memorybench.core.timing import call_on_thread, excluded
from memorybench.core.trials import Subject
from memorybench.files.located import Document

from .config.provider import ProviderConfig
from .plugin import SETTINGS_OF_CHUNKS, LocalProvider, OpenContext, Package, require_model
from .process_environment import changed_environment
from .storage.scope_folders import ScopeFolders
from .storage.scope_pool import ScopePool
from .storage.turns import StoredTurn, replace_surrogates, stored_turns

if TYPE_CHECKING:
    from .storage.loopback import LoopbackClient

T = TypeVar("T")

_OPEN_SCOPES = 8
_NO_LIMIT = 1_000_000
"""Passed to mem0 to list all memories: by default, it lists 20."""
_ROLES = ("user", "assistant")
_SCORE_DECIMALS = 6
"""Scores are rounded to this number of decimals, because further ones differ between two equal searches."""


class _ScopeMemory:
    """The memories of one scope: a mem0 instance with its own thread and its own connection to memorybench's models.

    Embedded Qdrant reads every point for each search, and one mem0 instance cannot run two calls at once. With one
    instance per scope, a search reads only the scope's points, and a scope is cleared by deleting its folder.
    """

    def __init__(self, mem0: Any, thread: ThreadPoolExecutor, client: LoopbackClient, user: str) -> None:
        self._mem0 = mem0
        self._thread = thread
        self._client = client
        self._lock = asyncio.Lock()
        self._user = user

    async def run(self, work: Callable[[Any, str], T]) -> T:
        """Return `work(mem0, user)`, called on the thread of the scope; `user` is mem0's user id for the scope."""
        with excluded():
            await self._lock.acquire()
        try:
            try:
                with self._client.serving():
                    return await call_on_thread(self._thread, work, self._mem0, self._user)
            except MemorybenchError:
                raise
            except Exception as error:  # mem0 raises whatever its parts raise
                raise ServiceError(f"mem0: {type(error).__name__}: {error}") from error
        finally:
            self._lock.release()


class Mem0Provider(LocalProvider):
    """The provider mem0-oss: one instance of mem0 per scope. Opened by `open_mem0_oss`."""

    needs_embedder = True
    uses_local_section = True
    unused_settings = SETTINGS_OF_CHUNKS
    required_packages = (Package("mem0", "mem0ai", "mem0"),)

    @classmethod
    def check_config(cls, config: ProviderConfig, document: Document) -> None:
        require_model(config, document, "the model that extracts memories")

    @classmethod
    @asynccontextmanager
    async def open(cls, context: OpenContext) -> AsyncIterator[Mem0Provider]:
        embedder, model = await context.open_embedder(), await context.open_model()
        async with open_mem0_oss(context.folder, embedder, model=model, name=context.config.name) as provider:
            yield provider

    def __init__(self, subject: Subject, store_id: str, pool: ScopePool[_ScopeMemory], folders: ScopeFolders) -> None:
        self.subject = subject
        self.store_id = store_id
        self._pool = pool
        self._folders = folders

    async def add(self, scope: Scope, session: Session) -> Receipt:
        turns = stored_turns(session)
        if not turns:
            return Receipt()
        store = _add_extracted if self.subject.settings["infer"] else _add_verbatim
        async with self._pool.using(scope.name) as memory:
            ids = await memory.run(lambda mem0, user: store(mem0, user, session, turns))
        return Receipt(ids=tuple(ids))

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        """Return at once: mem0 has stored a session when `add` returns."""

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        text = replace_surrogates(query).strip()
        if not text:
            return []
        async with self._pool.using(scope.name) as memory:
            reply = await memory.run(lambda mem0, user: mem0.search(text, filters={"user_id": user}, top_k=limit))
        results = [_to_memory(result) for result in reply["results"]]
        # mem0 orders equal scores by ids that are new with every add
        return sorted(results, key=lambda result: (-(result.score or 0.0), result.content, result.id))

    async def list(self, scope: Scope) -> Sequence[Memory]:
        async with self._pool.using(scope.name) as memory:
            return [_to_memory(result) for result in await memory.run(_list_all)]

    async def update(self, scope: Scope, id: str, content: str) -> None:
        async with self._pool.using(scope.name) as memory:
            await memory.run(lambda mem0, user: mem0.update(_own_id(mem0, user, id), text=replace_surrogates(content)))

    async def forget(self, scope: Scope, id: str) -> None:
        async with self._pool.using(scope.name) as memory:
            await memory.run(lambda mem0, user: mem0.delete(_own_id(mem0, user, id)))

    async def history(self, scope: Scope) -> Sequence[str]:
        """Return the texts of memories before they were changed or deleted, if mem0 still stores them."""
        async with self._pool.using(scope.name) as memory:
            return await memory.run(_former_texts)

    async def clear(self, scope: Scope) -> None:
        await self._pool.drop(scope.name)
        await asyncio.to_thread(self._folders.clear, scope.name)


def _add_verbatim(mem0: Any, user: str, session: Session, turns: Sequence[StoredTurn]) -> list[str]:
    """Add each turn unchanged as a memory, so that a search result names its turn; return the ids of the memories."""
    ids = [turn.memory_id for turn in turns]
    existing = _list_session(mem0, user, session)
    if {_to_memory(one).id: one["memory"] for one in existing} == {turn.memory_id: turn.text for turn in turns}:
        return ids
    _delete_all(mem0, existing)
    for stored in turns:
        turn = session.turns[stored.place - 1]
        at = turn.at or session.at
        mem0.add(
            [{"role": _role(turn), "content": stored.text}],
            user_id=user,
            metadata={
                "session": stored.session,
                "turn": stored.turn,
                "memory": stored.memory_id,
                "lead": stored.lead,
                **({"created_at": at.isoformat()} if at else {}),
            },
            infer=False,
        )
    return ids


def _add_extracted(mem0: Any, user: str, session: Session, turns: Sequence[StoredTurn]) -> list[str]:
    """Let mem0's model extract memories from the session; return their ids.

    The prompt contains the date of the session, because mem0 would otherwise assume today's date.
    """
    _delete_all(mem0, _list_session(mem0, user, session))
    date = session.at.date().isoformat() if session.at else None
    reply = mem0.add(
        [{"role": _role(session.turns[turn.place - 1]), "content": f"{turn.lead}{turn.text}"} for turn in turns],
        user_id=user,
        metadata={
            "session": session.id,
            **({"lead": f"[{date}] ", "created_at": session.at.isoformat()} if session.at else {}),
        },
        infer=True,
        prompt=f"The Observation Date and the Current Date are both {date}." if date else None,
    )
    return [str(result["id"]) for result in reply["results"]]


def _list_all(mem0: Any, user: str, **filters: str) -> list[Mapping[str, Any]]:
    results: list[Mapping[str, Any]] = mem0.get_all(filters={"user_id": user, **filters}, top_k=_NO_LIMIT)["results"]
    return results


def _list_session(mem0: Any, user: str, session: Session) -> list[Mapping[str, Any]]:
    """Return the memories of the session that mem0 stores already: an earlier add of the session was interrupted."""
    return _list_all(mem0, user, session=session.id)


def _delete_all(mem0: Any, results: Sequence[Mapping[str, Any]]) -> None:
    for result in results:
        mem0.delete(result["id"])


def _own_id(mem0: Any, user: str, id: str) -> str:
    """Return the id that mem0 uses for a memory. `id` is its id in the results of `search` and `list`.

    Raise ServiceError if there is no such memory.
    """
    for result in _list_all(mem0, user):
        if _to_memory(result).id == id:
            return str(result["id"])
    raise ServiceError(f"mem0 has no memory with the id {id}")


def _former_texts(mem0: Any, user: str) -> list[str]:
    # the table is read because mem0's API needs an id, and the id of a deleted memory is no longer known
    rows = mem0.db.connection.execute("SELECT old_memory, new_memory FROM history ORDER BY rowid").fetchall()
    current = {result["memory"] for result in _list_all(mem0, user)}
    return [text for text in dict.fromkeys(text for row in rows for text in row if text) if text not in current]


def _role(turn: Turn) -> str:
    """Return the role of a turn for mem0: "user" or "assistant". Others become "user": mem0 ignores system messages."""
    return turn.role if turn.role in _ROLES else "user"


def _to_memory(result: Mapping[str, Any]) -> Memory:
    metadata = result.get("metadata") or {}
    sources = tuple(metadata[name] for name in ("session", "turn") if name in metadata)
    return Memory(
        id=metadata.get("memory") or str(result["id"]),
        content=f"{metadata.get('lead', '')}{result['memory']}",
        score=round(result["score"], _SCORE_DECIMALS) if result.get("score") is not None else None,
        sources=sources or None,
    )


@asynccontextmanager
async def open_mem0_oss(
    folder: Path, embedder: Embedder, *, model: Model | None = None, name: str = "mem0-oss"
) -> AsyncIterator[Mem0Provider]:
    """Open the memories in `folder`. With a model, mem0 extracts memories (`infer`); without, it stores each turn.

    The cost of `model` and `embedder` is charged to the add or search that uses them.
    """
    from .storage.loopback import open_loopback

    for package in Mem0Provider.required_packages:
        package.check_installed("provider mem0-oss")
    folders = ScopeFolders(folder)
    home = folders.shared
    await asyncio.to_thread(_import_mem0, home)
    dimensions = len((await embedder.embed(["How long is a vector?"]))[0])
    subject = Subject(
        role="provider",
        name=name,
        settings={
            "mem0ai": version("mem0ai"),
            "infer": model is not None,
            "model": model.subject.plain() if model else None,
            "embedder": embedder.subject.plain(),
            # with this package installed, mem0 adds a lexical search
            "keyword_search": find_spec("fastembed") is not None,
        },
    )
    async with open_loopback(model, embedder) as loopback:

        @asynccontextmanager
        async def open_scope(scope: str) -> AsyncIterator[_ScopeMemory]:
            # one folder per embedder: vectors of different embedders cannot be compared
            data = folders.data(scope) / digest(embedder.subject.key)[:16]
            data.mkdir(exist_ok=True, mode=0o700)
            with loopback.client() as client:
                async with _open_mem0(data, home, client, dimensions) as (mem0, thread):
                    yield _ScopeMemory(mem0, thread, client, scope)

        pool = ScopePool(open_scope, _OPEN_SCOPES)
        try:
            yield Mem0Provider(subject, digest([folders.store_id, embedder.subject.key]), pool, folders)
        finally:
            await pool.close()


@asynccontextmanager
async def _open_mem0(
    folder: Path, home: Path, client: LoopbackClient, dimensions: int
) -> AsyncIterator[tuple[Any, ThreadPoolExecutor]]:
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="memorybench-mem0")
    try:
        mem0 = await call_on_thread(thread, _make_mem0, folder, home, client, dimensions)
        try:
            yield mem0, thread
        finally:
            await call_on_thread(thread, _close_mem0, mem0)
    finally:
        # not in this event loop, because work on the thread may be waiting for a reply from the loop
        await asyncio.to_thread(thread.shutdown)


def _make_mem0(folder: Path, home: Path, client: LoopbackClient, dimensions: int) -> Any:
    config = {
        "vector_store": {
            "provider": "qdrant",
            "config": {
                "path": str(folder / "qdrant"),
                "collection_name": "memories",
                "embedding_model_dims": dimensions,
                "on_disk": True,
            },
        },
        "embedder": {
            "provider": "openai",
            "config": {
                "model": "memorybench",
                "api_key": client.key,
                "openai_base_url": client.base_url,
                "embedding_dims": dimensions,
            },
        },
        # not `openai`, which would use OpenRouter if its key is in the environment
        "llm": {
            "provider": "vllm",
            "config": {"model": "memorybench", "api_key": client.key, "vllm_base_url": client.base_url},
        },
        "history_db_path": str(folder / "history.db"),
    }
    with _mem0_environment(home):
        return import_module("mem0").Memory.from_config(config)


def _close_mem0(mem0: Any) -> None:
    mem0.close()
    mem0.vector_store.client.close()  # otherwise, the folder stays locked
    mem0.embedding_model.client.close()
    mem0.llm.client.close()


def _import_mem0(home: Path) -> None:
    with _mem0_environment(home):
        import_module("mem0")
    logging.getLogger("mem0").addHandler(logging.NullHandler())  # otherwise, its warnings go to the terminal


def _mem0_environment(home: Path) -> AbstractContextManager[None]:
    """Set environment variables while the context is open; mem0 reads them at import and when it creates its clients.

    With them, mem0 sends no telemetry, writes its files to `home`, and uses no proxy for requests to this machine.
    """
    no_proxy = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1")
    return changed_environment({"MEM0_TELEMETRY": "False", "MEM0_DIR": str(home), **no_proxy})
