"""Providers that a user wrote as a Python class: `adapter: ./file.py:Class`; see docs/python-adapters.md."""

from __future__ import annotations

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
from memorybench.core.timing import call_on_thread
from memorybench.core.trials import Subject
from memorybench.files.reading import read_text
from memorybench.text.sanitize import preview
from memorybench.text.spelling import join_names, suggestion

from .config.provider import ProviderConfig
from .plugin import FORMER_NAMES, read_settings
from .storage.paths import find_file

_REQUIRED_METHODS = ("add", "search")
_METHODS = (*_REQUIRED_METHODS, "wait_until_searchable", "settle", "clear", "close")


class AdaptedProvider:
    """A provider that calls the user's adapter, an object with `add`, `search` and maybe further methods of a provider.

    Exceptions of the adapter are passed on: a MemorybenchError is handled as usual; any other exception fails the trial
    and is shown with its traceback.
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
        wait = _member(self._adapter, "wait_until_searchable")
        if wait is not None:
            await self._call(wait, scope, receipts)

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        results = await self._call(self._adapter.search, scope, query, limit)
        if not isinstance(results, Iterable) or isinstance(results, str | Mapping):
            raise self._malformed("search", "a list of Memory or str", results)
        return [self._memory(place, result) for place, result in enumerate(islice(results, limit), start=1)]

    async def clear(self, scope: Scope) -> None:
        if not hasattr(self._adapter, "clear"):
            raise Lacking(f'adapter "{self.subject.name}" cannot clear a scope: its class has no method clear')
        await self._call(self._adapter.clear, scope)

    def _memory(self, place: int, result: Any) -> Memory:
        if isinstance(result, str):
            return Memory(id=str(place), content=result)
        if not isinstance(result, Memory):
            raise self._malformed("search", "a list of Memory or str", result)
        return result

    def _malformed(self, method: str, expected: str, value: Any) -> Malformed:
        where = f'adapter "{self.subject.name}"'
        return Malformed(f"{where}: {method} returned {type(value).__name__}; expected {expected}")


@asynccontextmanager
async def open_adapter(
    config: ProviderConfig,
    config_file: Path | None,
    folder: Path,
    *,
    embedder: Embedder | None = None,
    model: Model | None = None,
) -> AsyncIterator[AdaptedProvider]:
    """Import the class that `config.adapter` names, create an object of it, and yield it as a provider.

    This runs the user's code, so the caller must have checked that the user allows it. `folder` is for the provider's
    data; `embedder` and `model` are those of the config's `local` section.
    """
    where = f'provider "{config.name}": adapter'
    path, _, name = (config.adapter or "").rpartition(":")
    file = find_file(path, config_file, where)
    local = config.local.model_dump(mode="json", exclude={"database": {"connection_string"}}) if config.local else None
    # with a digest of the code, so that a resumed run notices that the user has edited it
    settings = {"adapter": config.adapter, "code": digest(read_text(file)), "local": local}
    if config.settings:
        settings["settings"] = dict(config.settings)
    subject = Subject(role="provider", name=config.name, settings=settings)
    adapter_class = _find_class(import_file(file, where), name, file, where)
    settings_model = getattr(adapter_class, "settings_model", None)
    takes_any = settings_model is None and inspect.signature(adapter_class).parameters.keys() & {"config", "settings"}
    chosen = config.settings if takes_any else read_settings(settings_model, config)
    arguments = {"config": config, "folder": folder, "embedder": embedder, "model": model, "settings": chosen}
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"memorybench-{config.name}") as thread:
        methods = (getattr(adapter_class, name, None) for name in _METHODS)
        is_async = any(inspect.iscoroutinefunction(method) for method in methods)
        # a class without async methods gets its own thread: it may block, needs no locks, and may keep objects that
        # only one thread may use
        call = _call_in_loop if is_async else partial(call_on_thread, thread)
        adapter = await call(_make, adapter_class, arguments, where)
        try:
            # an adapter without a store id counts as one that keeps its memories only until it is closed
            store_id = await call(_member, adapter, "store_id") or secrets.token_hex(16)
            yield AdaptedProvider(subject, str(store_id), adapter, call)
        finally:
            if hasattr(adapter, "close"):
                await call(adapter.close)


def _member(adapter: Any, name: str) -> Any:
    """Return the adapter's attribute `name`, else the one with its former name; None if it has neither."""
    return getattr(adapter, name, None) or getattr(adapter, FORMER_NAMES[name], None)


def import_file(file: Path, where: str) -> ModuleType:
    """Import a Python file of the user. If that fails, raise BadInput with a message that begins with `where`."""
    name = f"memorybench_adapter_{digest(str(file))[:8]}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None, "the path ends with .py"
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look up their module there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise BadInput(
            where,
            f"{file} cannot be imported: {_describe(error)}",
            remedy="run the file with python to see the whole error",
        ) from error
    return module


def _find_class(module: ModuleType, name: str, file: Path, where: str) -> type:
    adapter_class = getattr(module, name, None)
    if not isinstance(adapter_class, type):
        classes = [known for known, value in vars(module).items() if isinstance(value, type)]
        raise BadInput(where, f"{file} has no class {preview(name)}", remedy=suggestion(name, classes))
    missing = [method for method in _REQUIRED_METHODS if not callable(getattr(adapter_class, method, None))]
    if missing:
        raise BadInput(
            where,
            f"the class {name} has no method {' and '.join(missing)}",
            expected="at least the methods add and search",
        )
    return adapter_class


def _make(adapter_class: type, arguments: Mapping[str, Any], where: str) -> Any:
    """Create an object of the user's class with those of `arguments` that its constructor accepts.

    The data folder is created only if the constructor accepts `folder`.
    """
    names = [name for name in inspect.signature(adapter_class).parameters if name in arguments]
    missing = [name for name in names if arguments[name] is None]
    if missing:
        section = {"embedder": "local.embedding", "model": "local.enhancement.model"}[missing[0]]
        raise BadInput(
            where,
            f"the constructor of {adapter_class.__name__} needs {missing[0]}, but the config has none",
            remedy=f"add {section} to the config",
        )
    if "folder" in names:
        arguments["folder"].mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        return adapter_class(**{name: arguments[name] for name in names})
    except MemorybenchError:
        raise
    except Exception as error:
        names_allowed = f"a constructor that needs no other arguments than {join_names(arguments)}"
        expected = names_allowed if isinstance(error, TypeError) else ""
        raise BadInput(
            where, f"{adapter_class.__name__} cannot be created: {_describe(error)}", expected=expected
        ) from error


async def _call_in_loop(work: Callable[..., Any], *arguments: Any) -> Any:
    result = work(*arguments)
    return await result if inspect.isawaitable(result) else result


def _describe(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
