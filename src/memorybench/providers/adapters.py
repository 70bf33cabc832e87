"""A provider that somebody wrote as a Python class: `adapter: ./file.py:Class`. docs/python-adapters.md tells how."""

from __future__ import annotations

import asyncio
import contextvars
import importlib.util
import inspect
import secrets
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from memorybench.core.contracts import Embedder, Model, Receipt, Scope
from memorybench.core.conversation import Memory, Session
from memorybench.core.errors import BadInput, Lacking, Malformed, MemorybenchError
from memorybench.core.records import digest
from memorybench.core.trials import Subject
from memorybench.files.reading import read_text
from memorybench.text.sanitize import preview
from memorybench.text.spelling import join_names, suggestion

from .config import ProviderConfig
from .paths import named_file

_NEEDED = ("add", "search")
_OPTIONAL = ("wait_until_searchable", "settle", "clear", "close")


class AdaptedProvider:
    """Makes a provider of an object that need not know the whole contract.

    What its methods raise is left as it is: an error of ours keeps its meaning, any other fails the trial and shows
    its traceback.
    """

    def __init__(self, subject: Subject, store_id: str, adapter: Any, call: Callable[..., Any]) -> None:
        self.subject = subject
        self.store_id = store_id
        self._adapter = adapter
        self._call = call

    async def add(self, scope: Scope, session: Session) -> Receipt:
        receipt = await self._call(self._adapter.add, scope, session)
        if receipt is None:
            return Receipt(ids=(session.id,))
        if not isinstance(receipt, Receipt):
            raise self._malformed("add", "a Receipt or None", receipt)
        return receipt

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        # `settle` is the name of this method before 0.2
        wait = getattr(self._adapter, "wait_until_searchable", None) or getattr(self._adapter, "settle", None)
        if wait is not None:
            await self._call(wait, scope, receipts)

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        found = await self._call(self._adapter.search, scope, query, limit)
        if not isinstance(found, Iterable) or isinstance(found, str | Mapping):
            raise self._malformed("search", "a list of Memory or str", found)
        return [self._memory(place, one) for place, one in enumerate(islice(found, limit), start=1)]

    async def clear(self, scope: Scope) -> None:
        if not hasattr(self._adapter, "clear"):
            raise Lacking(f'adapter "{self.subject.name}" has no method clear')
        await self._call(self._adapter.clear, scope)

    def _memory(self, place: int, found: Any) -> Memory:
        if isinstance(found, str):
            return Memory(id=str(place), content=found)
        if not isinstance(found, Memory):
            raise self._malformed("search", "a list of Memory or str", found)
        return found

    def _malformed(self, method: str, wanted: str, got: Any) -> Malformed:
        return Malformed(f'adapter "{self.subject.name}": {method} returned {type(got).__name__}, expected {wanted}')


@asynccontextmanager
async def open_adapter(
    config: ProviderConfig,
    config_file: Path | None,
    stores: Path,
    *,
    allow_code: bool,
    embedder: Embedder | None = None,
    model: Model | None = None,
) -> AsyncIterator[AdaptedProvider]:
    """The class that `config.adapter` names, made and used as docs/python-adapters.md promises.

    `stores` is where providers keep their data; this one gets a folder there. `embedder` and `model` are those of
    its `local` section.
    """
    where = f'provider "{config.name}": adapter'
    path, _, name = (config.adapter or "").rpartition(":")
    if not allow_code:
        raise BadInput(
            where,
            f"{preview(config.adapter)} is code, which is not run unasked",
            remedy="add --allow-code if you trust it",
        )
    file = named_file(path, config_file, where)
    subject = Subject(role="provider", name=config.name, settings=_settings(config, read_text(file)))
    made = _class(_module(file, where), name, file, where)
    offered = {"config": config, "folder": stores / config.name, "embedder": embedder, "model": model}
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"memorybench-{config.name}") as thread:
        call = partial(_on_thread, thread) if _is_plain(made) else _in_loop
        adapter = await call(_make, made, offered, where)
        try:
            # `incarnation` is the name of `store_id` before 0.2; without either, the memories end with the adapter
            store_id = await call(getattr, adapter, "store_id", None) or await call(
                getattr, adapter, "incarnation", None
            )
            yield AdaptedProvider(subject, str(store_id or secrets.token_hex(16)), adapter, call)
        finally:
            if hasattr(adapter, "close"):
                await call(adapter.close)


def _settings(config: ProviderConfig, source: str) -> Mapping[str, Any]:
    """With the code itself, so that a resumed run notices a change; without the database's address and its password."""
    local = config.local.model_dump(mode="json", exclude={"database": {"connection_string"}}) if config.local else None
    return {"adapter": config.adapter, "code": digest(source), "local": local}


def _module(file: Path, where: str) -> ModuleType:
    name = f"memorybench_adapter_{digest(str(file))[:8]}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None, "the name of every adapter ends with .py"
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look their module up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise BadInput(where, f"{file} can not be imported: {_said(error)}", remedy="run it by itself") from error
    return module


def _class(module: ModuleType, name: str, file: Path, where: str) -> type:
    found = getattr(module, name, None)
    if not isinstance(found, type):
        own = [known for known, value in vars(module).items() if isinstance(value, type)]
        raise BadInput(where, f"{file} has no class {preview(name)}", remedy=suggestion(name, own))
    missing = [method for method in _NEEDED if not callable(getattr(found, method, None))]
    if missing:
        raise BadInput(where, f"{name} has no method {' and '.join(missing)}", expected="add and search, at least")
    return found


def _make(made: type, offered: Mapping[str, Any], where: str) -> Any:
    """Passes what the constructor names. The folder exists only where it is asked for."""
    wanted = [name for name in inspect.signature(made).parameters if name in offered]
    lacking = [name for name in wanted if offered[name] is None]
    if lacking:
        section = {"embedder": "local.embedding", "model": "local.enhancement.model"}[lacking[0]]
        raise BadInput(where, f"{made.__name__} asks for {lacking[0]}", remedy=f"add {section} to its config")
    if "folder" in wanted:
        offered["folder"].mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        return made(**{name: offered[name] for name in wanted})
    except MemorybenchError:
        raise
    except Exception as error:
        accepted = f"arguments among {join_names(offered)}" if isinstance(error, TypeError) else ""
        raise BadInput(where, f"{made.__name__} can not be made: {_said(error)}", expected=accepted) from error


def _is_plain(made: type) -> bool:
    """Whether it has no async method."""
    methods = (getattr(made, name, None) for name in (*_NEEDED, *_OPTIONAL))
    return not any(inspect.iscoroutinefunction(method) for method in methods)


async def _on_thread(thread: ThreadPoolExecutor, work: Callable[..., Any], *arguments: Any) -> Any:
    """On the adapter's own thread: it may block, needs no locks, and may keep what belongs to a thread."""
    context = contextvars.copy_context()  # so that what it spends is charged to the open step
    return await asyncio.get_running_loop().run_in_executor(thread, context.run, work, *arguments)


async def _in_loop(work: Callable[..., Any], *arguments: Any) -> Any:
    result = work(*arguments)
    return await result if inspect.isawaitable(result) else result


def _said(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
