"""The provider langmem: LangMem's memory manager in this process, with LangGraph's store of vectors.

After each session, the model of `local.enhancement` reads it and the memories that LangMem finds related, and inserts,
changes or deletes memories by tool calls. Models of memorybench have no tool calls, so the model writes them as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from memorybench.core.contracts import Embedder, Model, Receipt, Scope
from memorybench.core.conversation import Memory, Session, Turn
from memorybench.core.errors import BadInput, Malformed, MemorybenchError, ServiceError
from memorybench.core.records import digest
from memorybench.core.trials import Subject
from memorybench.files.located import Document
from memorybench.text.sanitize import preview

from .config.provider import ProviderConfig
from .plugin import SETTINGS_OF_CHUNKS, LocalProvider, OpenContext, Package, require_model
from .storage.scope_folders import ScopeFolders
from .storage.turns import replace_surrogates

_NAMESPACE = ("memories",)
_NO_LIMIT = 1_000_000
_FILE = "langmem.json"
_CALLS = """

Reply with one JSON object {"calls": [{"name": "…", "arguments": {…}}]}: the tools to call, in order. An empty list
calls none. The tools, with the JSON Schema of their arguments:
"""
CALLS_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "calls": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
                "required": ["name", "arguments"],
            },
        }
    },
    "required": ["calls"],
}


class _ScopeMemory(Struct):
    """LangMem's manager and store of one scope. The store is in memory; each add saves its content to `file`."""

    manager: Any
    store: Any
    file: Path
    sessions: list[str] = field(default_factory=list)
    sources: dict[str, list[str]] = field(default_factory=dict)
    """Maps the key of a memory to the ids of the sessions that created or changed it."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def items(self) -> dict[str, Any]:
        return {item.key: item.value for item in await self.store.asearch(_NAMESPACE, limit=_NO_LIMIT)}

    async def save(self) -> None:
        content = {"sessions": self.sessions, "sources": self.sources, "items": await self.items()}
        temporary = self.file.with_suffix(".new")
        temporary.write_text(json.dumps(content), encoding="utf-8")
        os.replace(temporary, self.file)

    async def load(self) -> None:
        if self.file.exists():
            content = json.loads(self.file.read_text(encoding="utf-8"))
            self.sessions, self.sources = content["sessions"], content["sources"]
            for key, value in content["items"].items():
                await self.store.aput(_NAMESPACE, key, value)


class LangMem(LocalProvider):
    """The provider langmem: one memory manager and store of LangMem per scope. Opened by `open_langmem`."""

    needs_embedder = True
    uses_local_section = True
    unused_settings = SETTINGS_OF_CHUNKS
    required_packages = (Package("langmem", "langmem", "langmem"),)

    @classmethod
    def check_config(cls, config: ProviderConfig, document: Document) -> None:
        require_model(config, document, "the model that writes memories")

    @classmethod
    @asynccontextmanager
    async def open(cls, context: OpenContext) -> AsyncIterator[LangMem]:
        embedder, model = await context.open_embedder(), await context.open_model()
        if model is None:
            where = f'provider "{context.config.name}"'
            raise BadInput(
                where, "no model is set that writes the memories", remedy="add local.enhancement.model to the config"
            )
        async with open_langmem(context.folder, embedder, model, name=context.config.name) as provider:
            yield provider

    def __init__(self, folder: Path, embedder: Embedder, dimensions: int, model: Model, name: str) -> None:
        self._folders = ScopeFolders(folder)
        self._embedder = embedder
        self._dimensions = dimensions
        self._model = model
        self._opened: dict[str, _ScopeMemory] = {}
        self._opening = asyncio.Lock()
        self.subject = Subject(
            role="provider",
            name=name,
            settings={
                "langmem": version("langmem"),
                "model": model.subject.plain(),
                "embedder": embedder.subject.plain(),
            },
        )
        # independent of the embedder: vectors are not saved, but computed again when the store is opened
        self.store_id = self._folders.store_id

    async def add(self, scope: Scope, session: Session) -> Receipt:
        messages = [
            {"role": turn.role if turn.role in ("user", "assistant") else "user", "content": _line(session, turn)}
            for turn in session.turns
            if turn.content.strip()
        ]
        if not messages:
            return Receipt()
        key = digest([session.id, messages])[:20]
        memory = await self._open(scope)
        async with memory.lock:
            if key not in memory.sessions:
                before = await memory.items()
                await self._call(memory.manager.ainvoke({"messages": messages}))
                after = await memory.items()
                for changed in [id for id, value in after.items() if before.get(id) != value]:
                    memory.sources.setdefault(changed, []).append(session.id)
                memory.sources = {id: sources for id, sources in memory.sources.items() if id in after}
                memory.sessions.append(key)
                await memory.save()
        return Receipt(ids=(key,))

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        """Return at once: memories are stored when `add` returns."""

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        text = replace_surrogates(query).strip()
        if not text:
            return []
        memory = await self._open(scope)
        items = await self._call(memory.store.asearch(_NAMESPACE, query=text, limit=limit))
        found = [_to_memory(memory, item.key, item.value, item.score) for item in items]
        return sorted(found, key=lambda one: (-(one.score or 0.0), one.content))

    async def list(self, scope: Scope) -> Sequence[Memory]:
        memory = await self._open(scope)
        return [_to_memory(memory, key, value) for key, value in (await memory.items()).items()]

    async def clear(self, scope: Scope) -> None:
        self._opened.pop(scope.name, None)
        await asyncio.to_thread(self._folders.clear, scope.name)

    async def _open(self, scope: Scope) -> _ScopeMemory:
        async with self._opening:
            if scope.name not in self._opened:
                index = {"dims": self._dimensions, "embed": self._embed}
                store = import_module("langgraph.store.memory").InMemoryStore(index=index)
                manager = import_module("langmem").create_memory_store_manager(
                    _chat_model(self._model), namespace=_NAMESPACE, store=store, enable_deletes=True
                )
                memory = _ScopeMemory(manager, store, self._folders.data(scope.name) / _FILE)
                await self._call(memory.load())
                self._opened[scope.name] = memory
            return self._opened[scope.name]

    async def _embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [[float(number) for number in vector] for vector in await self._embedder.embed(texts)]

    @staticmethod
    async def _call(work: Any) -> Any:
        # the user may have turned on LangSmith's tracing for other programs; a benchmark must not be sent there
        with import_module("langsmith.run_helpers").tracing_context(enabled=False):
            try:
                return await work
            except MemorybenchError:
                raise
            except Exception as error:  # LangMem raises whatever its parts raise
                raise ServiceError(f"langmem: {type(error).__name__}: {error}") from error


@asynccontextmanager
async def open_langmem(
    folder: Path, embedder: Embedder, model: Model, *, name: str = "langmem"
) -> AsyncIterator[LangMem]:
    """Open the memories in `folder`.

    The cost of `model` and `embedder` is charged to the add or search that uses them.
    """
    for package in LangMem.required_packages:
        package.check_installed("provider langmem")
    await asyncio.to_thread(import_module, "langmem")
    dimensions = len((await embedder.embed(["How long is a vector?"]))[0])
    yield LangMem(folder, embedder, dimensions, model, name)


def _line(session: Session, turn: Turn) -> str:
    at = turn.at or session.at
    date = f"[{at.date().isoformat()}] " if at else ""
    speaker = f"{turn.speaker}: " if turn.speaker else ""
    return replace_surrogates(f"{date}{speaker}{turn.content}")


def _to_memory(memory: _ScopeMemory, key: str, value: Mapping[str, Any], score: float | None = None) -> Memory:
    content = value.get("content", value)
    text = content.get("content") if isinstance(content, Mapping) else content
    shown = text if isinstance(text, str) else json.dumps(content, ensure_ascii=False)
    return Memory(id=key, content=shown, score=score, sources=tuple(memory.sources.get(key, ())) or None)


def _chat_model(model: Model) -> Any:
    """Return a chat model of LangChain that calls `model`.

    The prompt describes the tools, and the reply of `model` is JSON with the tool calls.
    """
    chat_models = import_module("langchain_core.language_models.chat_models")
    messages = import_module("langchain_core.messages")
    outputs = import_module("langchain_core.outputs")
    to_tool = import_module("langchain_core.utils.function_calling").convert_to_openai_tool

    class ChatModel(chat_models.BaseChatModel):  # type: ignore[misc, name-defined]
        @property
        def _llm_type(self) -> str:
            return "memorybench"

        def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
            return self.bind(tools=[to_tool(tool)["function"] for tool in tools])

        def _generate(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError("only asynchronous calls are supported")

        async def _agenerate(
            self, listed: Sequence[Any], stop: Any = None, run_manager: Any = None, **kwargs: Any
        ) -> Any:
            tools = kwargs.get("tools") or []
            turns = [_turn(message) for message in listed]
            if tools:
                described = [{key: tool.get(key) for key in ("name", "description", "parameters")} for tool in tools]
                turns.append(Turn(role="user", content=_CALLS + json.dumps(described)))
            completion = await model.complete(turns, schema=CALLS_SCHEMA if tools else None)
            calls = _read_calls(completion.text) if tools else []
            message = messages.AIMessage(content="" if tools else completion.text, tool_calls=calls)
            return outputs.ChatResult(generations=[outputs.ChatGeneration(message=message)])

    return ChatModel()


def _turn(message: Any) -> Turn:
    role = {"system": "system", "ai": "assistant"}.get(message.type, "user")
    parts = message.content if isinstance(message.content, list) else [message.content]
    text = "\n".join(part if isinstance(part, str) else str(part.get("text", "")) for part in parts)
    calls = [{"name": call["name"], "arguments": call["args"]} for call in getattr(message, "tool_calls", ())]
    return Turn(role=role, content=text + (json.dumps({"calls": calls}) if calls else ""))


def _read_calls(text: str) -> list[dict[str, Any]]:
    start, end = text.find("{"), text.rfind("}")
    try:
        calls = json.loads(text[start : end + 1])["calls"]
        return [
            {"name": str(call["name"]), "args": dict(call["arguments"]), "id": f"call-{n}", "type": "tool_call"}
            for n, call in enumerate(calls)
        ]
    except (ValueError, KeyError, TypeError):
        problem = f"invalid reply of the model: {preview(text)}"
        raise Malformed(f"langmem: {problem}; expected a JSON object with the key calls") from None
