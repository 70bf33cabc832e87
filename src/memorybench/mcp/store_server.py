"""A memory store as MCP tools: one tool per operation that the store has.

The descriptions say only what the tools do. They do not say when to store something or what not to store, because that
is what is tested.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from msgspec import Struct
from pydantic import Field, ValidationError

from memorybench import __version__
from memorybench.core.agents import Operation, Serve, Served
from memorybench.core.errors import MemorybenchError, Refused
from memorybench.core.records import Record
from memorybench.core.stores import MemoryStore, NewFact, StoredFact

from .proxy import USER, Proxy, serve_http

DEFAULT_LIMIT = 5
"""The number of facts that a recall returns by default."""


class _Remember(Record):
    """Stores a fact in long-term memory. Returns its id."""

    content: str = Field(min_length=1, description="The fact, as a sentence.")
    category: str = Field(default="", description="What kind of fact it is, such as preference, project or schedule.")


class _Update(Record):
    """Replaces the text of a stored fact."""

    id: str = Field(description="The id of the fact.")
    content: str = Field(min_length=1, description="What the fact says from now on.")


class _Forget(Record):
    """Deletes a stored fact."""

    id: str = Field(description="The id of the fact.")


class _Recall(Record):
    """Searches long-term memory. Returns the facts that match best, with their ids."""

    query: str = Field(min_length=1, description="What to look for.")
    limit: int = Field(default=DEFAULT_LIMIT, ge=1, le=100, description="How many facts to return at most.")


class _List(Record):
    """Returns every fact in long-term memory, with its id."""


class _Curate(Record):
    """Finds facts that repeat or contradict each other; proposes removals, and applies them if `apply` is true."""

    apply: bool = Field(default=False, description="Whether to carry the proposals out.")


# agents read the docstrings of these classes as descriptions of the tools
_ARGUMENTS: Mapping[Operation, type[Record]] = {
    "remember": _Remember,
    "update": _Update,
    "forget": _Forget,
    "recall": _Recall,
    "list": _List,
    "curate": _Curate,
}


class _Answer(Struct, frozen=True):
    """The answer of a tool, and what the call did to the memory."""

    text: str
    structured: Any
    operation: Operation | None = None
    ids: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    refused: str | None = None
    error: str | None = None


class StoreProxy(Proxy):
    """A proxy that offers the operations of a store as tools. Opened by `open_store_proxy`."""

    def __init__(self, store: MemoryStore, session: int) -> None:
        super().__init__(session)
        self._store = store
        operations = {"remember", *store.capabilities}
        self._offered = {name: arguments for name, arguments in _ARGUMENTS.items() if name in operations}
        # one call at a time, so that calls are recorded in the order in which the store saw them
        self._lock = asyncio.Lock()

    async def list_tools(self, _context: Any, _params: Any) -> types.ListToolsResult:
        self.connected = True
        tools = [
            types.Tool(name=name, description=arguments.__doc__, input_schema=_input_schema(arguments))
            for name, arguments in self._offered.items()
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(self, _context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        async with self._lock:
            end = self.record(params.name, arguments)
            answer = await self._answer(params.name, arguments)
            end(
                operation=answer.operation,
                result=answer.text,
                ids=answer.ids,
                texts=answer.texts,
                refused=answer.refused,
                error=answer.error,
            )
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.text)],
            structured_content=answer.structured,
            is_error=answer.refused is not None or answer.error is not None,
        )

    async def _answer(self, name: str, arguments: Mapping[str, Any]) -> _Answer:
        operation = next((offered for offered in self._offered if offered == name), None)
        if operation is None:
            return _failure(None, f"unknown tool {name!r}; expected one of {', '.join(self._offered)}")
        try:
            return await self._perform(operation, self._offered[operation].model_validate(arguments))
        except ValidationError as error:
            problems = (f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in error.errors())
            return _failure(operation, f"invalid arguments: {'; '.join(problems)}")
        except Refused as error:
            return _Answer(f"refused: {error}", {"refused": str(error)}, operation, refused=str(error))
        except MemorybenchError as error:
            return _failure(operation, str(error))
        except Exception as error:  # a call that failed unexpectedly is recorded as well
            return _failure(None, f"{type(error).__name__}: {error}")

    async def _perform(self, operation: Operation, arguments: Record) -> _Answer:
        store, user = self._store, USER
        value: dict[str, Any]
        ids: tuple[str, ...]
        match arguments:
            case _Remember(content=content, category=category):
                stored_category = category if "category" in store.capabilities else ""
                id = await store.remember(user, NewFact(content=content, category=stored_category or None))
                value, ids = {"id": id}, (id,)
            case _Update(id=id, content=content):
                id = await store.update(user, id, content)
                value, ids = {"id": id}, (id,)
            case _Forget(id=id):
                await store.forget(user, id)
                value, ids = {"forgotten": id}, (id,)
            case _Curate(apply=apply):
                curation = await store.curate(user, apply=apply)
                value, ids = curation.plain(), tuple(id for one in curation.proposals for id in one.ids)
            case _Recall(query=query, limit=limit):
                return _facts_answer(operation, await store.recall(user, query, limit))
            case _:
                return _facts_answer(operation, await store.list(user))
        return _Answer(json.dumps(value, ensure_ascii=False), value, operation, ids)


@asynccontextmanager
async def open_store_proxy(store: MemoryStore, *, session: int = 1) -> AsyncIterator[Proxy]:
    """Serve a store to one session of an agent, and record its calls."""
    proxy = StoreProxy(store, session)
    server = Server(
        "memory",
        version=__version__,
        on_list_tools=proxy.list_tools,
        on_call_tool=proxy.call_tool,
        # our tools read no headers; without this, the SDK lists all tools on every call to check them
        get_tool_input_schema=lambda _name: None,
    )
    # our tools need no session, so that even a single request without a handshake is answered
    async with serve_http(server, stateless=True) as proxy.url:
        yield proxy


def serve_store(open_store: Callable[[Path], AbstractAsyncContextManager[MemoryStore]]) -> Serve:
    """Return a function that opens the store in a folder, serves it to one session of an agent and records calls."""

    @asynccontextmanager
    async def serve(folder: Path, session: int) -> AsyncIterator[Served]:
        async with open_store(folder) as store, open_store_proxy(store, session=session) as proxy:
            yield proxy

    return serve


def _facts_answer(operation: Operation, facts: Sequence[StoredFact]) -> _Answer:
    rows = [fact.model_dump(include={"id", "content", "category"}, exclude_none=True) for fact in facts]
    ids, texts = tuple(fact.id for fact in facts), tuple(fact.content for fact in facts)
    return _Answer(json.dumps({"facts": rows}, ensure_ascii=False), {"facts": rows}, operation, ids, texts)


def _input_schema(arguments: type[Record]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, without the titles that pydantic derives from field names."""
    schema = arguments.model_json_schema()
    properties = {
        name: {key: value for key, value in field.items() if key != "title"}
        for name, field in schema.get("properties", {}).items()
    }
    return {
        "type": "object",
        "properties": properties,
        "required": schema.get("required", []),
        "additionalProperties": False,
    }


def _failure(operation: Operation | None, problem: str) -> _Answer:
    return _Answer(problem, {"error": problem}, operation, error=problem)
