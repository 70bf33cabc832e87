"""A memory store as MCP tools: one tool per operation that the store has.

The descriptions say only what the tools do. They do not say when to store something or what not to store, because that
is what is tested.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
from pydantic import Field, ValidationError

from memorybench.core.agents import Operation, Serve, Served
from memorybench.core.errors import MemorybenchError, Refused
from memorybench.core.records import Record
from memorybench.core.stores import MemoryStore, NewFact, StoredFact

from .proxy import ToolAnswer, open_proxy

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


class StoreTools:
    """The tools of one store. All calls are made for `user`."""

    def __init__(self, store: MemoryStore, user: str = "user") -> None:
        self._store = store
        self._user = user
        operations = {"remember", *store.capabilities}
        self._offered = {name: arguments for name, arguments in _ARGUMENTS.items() if name in operations}

    async def list_tools(self) -> Sequence[types.Tool]:
        return [
            types.Tool(name=name, description=arguments.__doc__, input_schema=_input_schema(arguments))
            for name, arguments in self._offered.items()
        ]

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        operation = next((offered for offered in self._offered if offered == name), None)
        if operation is None:
            return _failure(None, f"unknown tool {name!r}; expected one of {', '.join(self._offered)}")
        try:
            return await self._perform(operation, self._offered[operation].model_validate(arguments))
        except ValidationError as error:
            problems = (f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in error.errors())
            return _failure(operation, f"invalid arguments: {'; '.join(problems)}")
        except Refused as error:
            return ToolAnswer(f"refused: {error}", {"refused": str(error)}, operation, refused=str(error))
        except MemorybenchError as error:
            return _failure(operation, str(error))

    async def _perform(self, operation: Operation, arguments: Record) -> ToolAnswer:
        store, user = self._store, self._user
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
        return ToolAnswer(json.dumps(value, ensure_ascii=False), value, operation, ids)


def serve_store(open_store: Callable[[Path], AbstractAsyncContextManager[MemoryStore]], user: str = "user") -> Serve:
    """Return a function that opens the store in a folder, serves it to one session of an agent and records calls."""

    @asynccontextmanager
    async def serve(folder: Path, session: int) -> AsyncIterator[Served]:
        async with (
            open_store(folder) as store,
            open_proxy(StoreTools(store, user), session=session, user=user) as proxy,
        ):
            yield proxy

    return serve


def _facts_answer(operation: Operation, facts: Sequence[StoredFact]) -> ToolAnswer:
    rows = [fact.model_dump(include={"id", "content", "category"}, exclude_none=True) for fact in facts]
    ids, texts = tuple(fact.id for fact in facts), tuple(fact.content for fact in facts)
    return ToolAnswer(json.dumps({"facts": rows}, ensure_ascii=False), {"facts": rows}, operation, ids, texts)


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


def _failure(operation: Operation | None, problem: str) -> ToolAnswer:
    return ToolAnswer(problem, {"error": problem}, operation, error=problem)
