"""mem0ai in this process, over embedded Qdrant: verbatim, or with a model that extracts what to remember."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from memorybench.core.contracts import Embedder, Model, Receipt, Scope
from memorybench.core.conversation import Memory, Session, Turn
from memorybench.core.errors import BadInput, MemorybenchError, ServiceError
from memorybench.core.records import digest
from memorybench.core.trials import Subject

from .loopback import Door, open_loopback
from .scope_folders import ScopeFolders
from .scope_pool import ScopePool
from .turn_store import KeptTurn, kept_turns, storable

T = TypeVar("T")

_OPEN = 8
_ALL = 1_000_000
"""mem0 lists the first 20 unless it is told a number."""
_ROLES = ("user", "assistant")
_DECIMALS = 6
"""Of a score. Further ones are noise: the same search of the same memories gives others the next time."""


class _Kept:
    """The memories of one scope: a mem0 of its own, on a thread of its own, with its own door to our models.

    Embedded Qdrant reads every point it holds for each search, and one mem0 can not be asked twice at once: so each
    scope has its own, which also makes clearing it certain.
    """

    def __init__(self, mem0: Any, thread: ThreadPoolExecutor, door: Door, user: str) -> None:
        self._mem0 = mem0
        self._thread = thread
        self._door = door
        self._one_at_a_time = asyncio.Lock()
        self._user = user

    async def run(self, work: Callable[[Any, str], T]) -> T:
        """`work` gets mem0 and the user whose memories are meant."""
        async with self._one_at_a_time:
            try:
                with self._door.serving():
                    return await _on(self._thread, work, self._mem0, self._user)
            except MemorybenchError:
                raise
            except Exception as error:  # mem0 raises what its parts raise, which is anything
                raise ServiceError(f"mem0: {type(error).__name__}: {error}") from error


class Mem0Provider:
    """Opened by `open_mem0_oss`."""

    def __init__(self, subject: Subject, store_id: str, pool: ScopePool[_Kept], folders: ScopeFolders) -> None:
        self.subject = subject
        self.store_id = store_id
        self._pool = pool
        self._folders = folders

    async def add(self, scope: Scope, session: Session) -> Receipt:
        turns = kept_turns(session)
        if not turns:
            return Receipt()
        store = _extracted if self.subject.settings["infer"] else _verbatim
        async with self._pool.using(scope.name) as kept:
            ids = await kept.run(lambda mem0, user: store(mem0, user, session, turns))
        return Receipt(ids=tuple(ids))

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        """Nothing to wait for: mem0 answers when it has stored."""

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        text = storable(query).strip()
        if not text:
            return []
        async with self._pool.using(scope.name) as kept:
            told = await kept.run(lambda mem0, user: mem0.search(text, filters={"user_id": user}, top_k=limit))
        found = [_memory(one) for one in told["results"]]
        # among equals mem0's order depends on ids that are new with every add
        return sorted(found, key=lambda memory: (-(memory.score or 0.0), memory.content, memory.id))

    async def list(self, scope: Scope) -> Sequence[Memory]:
        async with self._pool.using(scope.name) as kept:
            told = await kept.run(lambda mem0, user: mem0.get_all(filters={"user_id": user}, top_k=_ALL))
        return [_memory(one) for one in told["results"]]

    async def update(self, scope: Scope, id: str, content: str) -> None:
        async with self._pool.using(scope.name) as kept:
            await kept.run(lambda mem0, user: mem0.update(_own_id(mem0, user, id), text=storable(content)))

    async def forget(self, scope: Scope, id: str) -> None:
        async with self._pool.using(scope.name) as kept:
            await kept.run(lambda mem0, user: mem0.delete(_own_id(mem0, user, id)))

    async def history(self, scope: Scope) -> Sequence[str]:
        """Every text that mem0 still keeps of memories that were changed or forgotten."""
        async with self._pool.using(scope.name) as kept:
            return await kept.run(_former_texts)

    async def clear(self, scope: Scope) -> None:
        await self._pool.drop(scope.name)
        await asyncio.to_thread(self._folders.clear, scope.name)


def _verbatim(mem0: Any, user: str, session: Session, turns: Sequence[KeptTurn]) -> list[str]:
    """A memory for each turn, so that each knows the one it came from."""
    ids = [kept.memory_id for kept in turns]
    held = _held(mem0, user, session)
    if {_memory(one).id: one["memory"] for one in held} == {kept.memory_id: kept.said for kept in turns}:
        return ids
    _give_way(mem0, held)
    for kept in turns:
        turn = session.turns[kept.place - 1]
        at = turn.at or session.at
        mem0.add(
            [{"role": _role(turn), "content": kept.said}],
            user_id=user,
            metadata={
                "session": kept.session,
                "turn": kept.turn,
                "memory": kept.memory_id,
                "lead": kept.lead,
                **({"created_at": at.isoformat()} if at else {}),
            },
            infer=False,
        )
    return ids


def _extracted(mem0: Any, user: str, session: Session, turns: Sequence[KeptTurn]) -> list[str]:
    """What mem0's model makes of the session. When it was said, mem0 would take for today unless it is told."""
    _give_way(mem0, _held(mem0, user, session))
    date = session.at.date().isoformat() if session.at else None
    told = mem0.add(
        [{"role": _role(session.turns[kept.place - 1]), "content": f"{kept.lead}{kept.said}"} for kept in turns],
        user_id=user,
        metadata={
            "session": session.id,
            **({"lead": f"[{date}] ", "created_at": session.at.isoformat()} if session.at else {}),
        },
        infer=True,
        prompt=f"The Observation Date and the Current Date are both {date}." if date else None,
    )
    return [str(one["id"]) for one in told["results"]]


def _held(mem0: Any, user: str, session: Session) -> list[Mapping[str, Any]]:
    """What an add of this session whose reply was lost has left."""
    found: list[Mapping[str, Any]] = mem0.get_all(filters={"user_id": user, "session": session.id}, top_k=_ALL)[
        "results"
    ]
    return found


def _give_way(mem0: Any, held: Sequence[Mapping[str, Any]]) -> None:
    for one in held:
        mem0.delete(one["id"])


def _own_id(mem0: Any, user: str, id: str) -> str:
    """What mem0 calls the memory that we know by the turn it came from."""
    for one in mem0.get_all(filters={"user_id": user}, top_k=_ALL)["results"]:
        if _memory(one).id == id:
            return str(one["id"])
    raise ServiceError(f"mem0: no memory has the id {id}")


def _former_texts(mem0: Any, user: str) -> list[str]:
    # mem0 tells the history of an id, and of a deleted memory nobody knows the id any more: so its table is read
    rows = mem0.db.connection.execute("SELECT old_memory, new_memory FROM history ORDER BY rowid").fetchall()
    held = {one["memory"] for one in mem0.get_all(filters={"user_id": user}, top_k=_ALL)["results"]}
    return [text for text in dict.fromkeys(text for row in rows for text in row if text) if text not in held]


def _role(turn: Turn) -> str:
    """mem0 passes over what a system says."""
    return turn.role if turn.role in _ROLES else "user"


def _memory(one: Mapping[str, Any]) -> Memory:
    kept = one.get("metadata") or {}
    sources = tuple(kept[name] for name in ("session", "turn") if name in kept)
    return Memory(
        id=kept.get("memory") or str(one["id"]),
        content=f"{kept.get('lead', '')}{one['memory']}",
        score=round(one["score"], _DECIMALS) if one.get("score") is not None else None,
        sources=sources or None,
    )


@asynccontextmanager
async def open_mem0_oss(
    folder: Path, embedder: Embedder, *, model: Model | None = None, name: str = "mem0-oss"
) -> AsyncIterator[Mem0Provider]:
    """Memories on disk in `folder`. With a model, mem0 extracts memories by it (`infer`); without, it keeps each turn.

    What model and embedder cost is charged to the add or the search that asked for it.
    """
    installed = _installed()
    folders = ScopeFolders(folder)
    home = folders.shared
    await asyncio.to_thread(_imported, home)
    dimensions = len((await embedder.embed(["How long is a vector?"]))[0])
    subject = Subject(
        role="provider",
        name=name,
        settings={
            "mem0ai": installed,
            "infer": model is not None,
            "model": model.subject.plain() if model else None,
            "embedder": embedder.subject.plain(),
            # mem0 adds a lexical search of its own where this package is installed
            "keyword_search": find_spec("fastembed") is not None,
        },
    )
    async with open_loopback(model, embedder) as loopback:

        @asynccontextmanager
        async def opened(scope: str) -> AsyncIterator[_Kept]:
            # vectors of another embedder can not be compared, nor have they the same length
            data = folders.data(scope) / digest(embedder.subject.key)[:16]
            data.mkdir(exist_ok=True, mode=0o700)
            with loopback.door() as door:
                async with _mem0(data, home, door, dimensions) as (mem0, thread):
                    yield _Kept(mem0, thread, door, scope)

        pool = ScopePool(opened, _OPEN)
        try:
            yield Mem0Provider(subject, digest([folders.store_id, embedder.subject.key]), pool, folders)
        finally:
            await pool.close()


@asynccontextmanager
async def _mem0(folder: Path, home: Path, door: Door, dimensions: int) -> AsyncIterator[tuple[Any, ThreadPoolExecutor]]:
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="memorybench-mem0")
    try:
        mem0 = await _on(thread, _made, folder, home, door, dimensions)
        try:
            yield mem0, thread
        finally:
            await _on(thread, _closed, mem0)
    finally:
        # elsewhere: what still runs on the thread may wait for an answer of this loop
        await asyncio.to_thread(thread.shutdown)


async def _on(thread: ThreadPoolExecutor, work: Callable[..., T], *arguments: Any) -> T:
    return await asyncio.get_running_loop().run_in_executor(thread, work, *arguments)


def _made(folder: Path, home: Path, door: Door, dimensions: int) -> Any:
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
                "api_key": door.key,
                "openai_base_url": door.base_url,
                "embedding_dims": dimensions,
            },
        },
        # not `openai`: that one turns to OpenRouter by itself when its key is in the environment
        "llm": {
            "provider": "vllm",
            "config": {"model": "memorybench", "api_key": door.key, "vllm_base_url": door.base_url},
        },
        "history_db_path": str(folder / "history.db"),
    }
    with _surroundings(home):
        return import_module("mem0").Memory.from_config(config)


def _closed(mem0: Any) -> None:
    mem0.close()
    mem0.vector_store.client.close()  # else the folder stays locked
    mem0.embedding_model.client.close()
    mem0.llm.client.close()


def _installed() -> str:
    try:
        return version("mem0ai")
    except PackageNotFoundError:
        raise BadInput(
            "provider mem0-oss", "mem0ai is not installed", remedy='pip install "memorybench[mem0]"'
        ) from None


def _imported(home: Path) -> None:
    with _surroundings(home):
        import_module("mem0")
    logging.getLogger("mem0").addHandler(logging.NullHandler())  # else its warnings go to the terminal


@contextmanager
def _surroundings(home: Path) -> Iterator[None]:
    """mem0 is set up by environment variables, which it reads when it is imported, and its clients when made.

    No telemetry, nothing written to the user's home folder, and no proxy on the way to our own machine.
    """
    wanted = {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(home), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
