"""The provider mnemosyne: mnemosyne-memory in this process; stores turns verbatim in one SQLite file per scope."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from memorybench.core.contracts import Receipt, Scope
from memorybench.core.conversation import Memory, Session
from memorybench.core.errors import MemorybenchError, ServiceError
from memorybench.core.timing import call_on_thread
from memorybench.core.trials import Subject

from .plugin import LocalProvider, OpenContext, Package
from .process_environment import changed_environment
from .storage.scope_folders import ScopeFolders
from .storage.scope_pool import ScopePool
from .storage.turns import replace_surrogates, stored_turns

T = TypeVar("T")

_OPEN_SCOPES = 8


class _ScopeMemory(NamedTuple):
    mnemosyne: Any
    thread: ThreadPoolExecutor


class Mnemosyne(LocalProvider):
    """The provider mnemosyne: one instance of mnemosyne and one thread per scope. Opened by `open_mnemosyne`.

    Each scope needs its own thread, because mnemosyne caches one connection to SQLite per thread.
    """

    required_packages = (Package("mnemosyne", "mnemosyne-memory", "mnemosyne"),)

    @classmethod
    @asynccontextmanager
    async def open(cls, context: OpenContext) -> AsyncIterator[Mnemosyne]:
        async with open_mnemosyne(context.folder, name=context.config.name) as provider:
            yield provider

    def __init__(self, folders: ScopeFolders, pool: ScopePool[_ScopeMemory], name: str) -> None:
        settings = {
            "mnemosyne-memory": version("mnemosyne-memory"),
            # with this package installed, mnemosyne adds vectors
            "vectors": find_spec("fastembed") is not None,
        }
        self.subject = Subject(role="provider", name=name, settings=settings)
        self.store_id = folders.store_id
        self._folders = folders
        self._pool = pool

    async def add(self, scope: Scope, session: Session) -> Receipt:
        turns = stored_turns(session)

        def add(memory: Any) -> list[str]:
            ids = []
            for turn in turns:
                # mnemosyne returns the existing id for a text that it stores already, so a repeated add changes nothing
                id = str(memory.remember(f"{turn.lead}{turn.text}"))
                self._folders.save_sources(scope.name, {f"{id}/{turn.memory_id}": (turn.session, turn.turn)})
                ids.append(id)
            return ids

        return Receipt(ids=tuple(await self._call(scope, add))) if turns else Receipt()

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        """Return at once: a memory is searchable when `add` returns."""

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        text = replace_surrogates(query).strip()
        if not text:
            return []
        results = await self._call(scope, lambda memory: memory.recall(text, top_k=limit))
        memories = self._memories(scope, results)
        # equal scores are ordered by text, because mnemosyne's own order depends on the time of the add
        return sorted(memories, key=lambda one: (-(one.score or 0.0), one.content))[:limit]

    async def update(self, scope: Scope, id: str, content: str) -> None:
        if not await self._call(scope, lambda memory: memory.update(id, content=replace_surrogates(content))):
            raise ServiceError(f"mnemosyne has no memory with the id {id}")

    async def forget(self, scope: Scope, id: str) -> None:
        if not await self._call(scope, lambda memory: memory.forget(id)):
            raise ServiceError(f"mnemosyne has no memory with the id {id}")

    async def clear(self, scope: Scope) -> None:
        await self._pool.drop(scope.name)
        await asyncio.to_thread(self._folders.clear, scope.name)

    async def list(self, scope: Scope) -> Sequence[Memory]:
        return self._memories(scope, await self._call(scope, lambda memory: memory.get_all_memories()))

    def _memories(self, scope: Scope, results: Sequence[dict[str, Any]]) -> Sequence[Memory]:
        sources: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for document, ids in self._folders.sources_of(scope.name).items():
            sources[document.partition("/")[0]] |= dict.fromkeys(ids)
        return [
            Memory(
                id=str(result["id"]),
                content=str(result["content"]),
                score=result.get("score"),
                sources=tuple(sources[str(result["id"])]) or None,
            )
            for result in results
        ]

    async def _call(self, scope: Scope, work: Callable[[Any], T]) -> T:
        async with self._pool.using(scope.name) as memory:
            try:
                return await call_on_thread(memory.thread, work, memory.mnemosyne)
            except MemorybenchError:
                raise
            except Exception as error:  # mnemosyne raises whatever its parts raise
                raise ServiceError(f"mnemosyne: {type(error).__name__}: {error}") from error


@asynccontextmanager
async def open_mnemosyne(folder: Path, *, name: str = "mnemosyne") -> AsyncIterator[Mnemosyne]:
    """Open the memories in `folder`."""
    for package in Mnemosyne.required_packages:
        package.check_installed("provider mnemosyne")
    folders = ScopeFolders(folder)
    module = await asyncio.to_thread(_import, folders.shared)

    @asynccontextmanager
    async def open_scope(scope: str) -> AsyncIterator[_ScopeMemory]:
        file = folders.data(scope) / "mnemosyne.db"
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="memorybench-mnemosyne") as thread:
            memory = await call_on_thread(thread, lambda: module.Mnemosyne(session_id="memorybench", db_path=file))
            try:
                yield _ScopeMemory(memory, thread)
            finally:
                await call_on_thread(thread, memory.conn.close)

    pool = ScopePool(open_scope, _OPEN_SCOPES)
    try:
        yield Mnemosyne(folders, pool, name)
    finally:
        await pool.close()


def _import(home: Path) -> Any:
    """Import and return mnemosyne. Its home folder is `home`, because the import creates files in the home folder."""
    with changed_environment({"HERMES_HOME": str(home), "MNEMOSYNE_DATA_DIR": str(home / "data"), "HOME": str(home)}):
        return import_module("mnemosyne")
