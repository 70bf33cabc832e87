"""Any memory store as six MCP tools, or as many of them as it has operations.

The descriptions say what the tools do and no more: when to store something, and what had better not be stored, is what
the agent is examined in.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from memorybench.core.agents import Operation, Serve, Served
from memorybench.core.errors import MemorybenchError, Refused
from memorybench.core.records import Record
from memorybench.core.stores import MemoryStore, NewFact, StoredFact

from .proxy import Answer, failed, open_proxy

RECALLED = 5
"""Facts that a recall brings up, unless it asks for more or fewer."""


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
    limit: int = Field(default=RECALLED, ge=1, le=100, description="How many facts to return at most.")


class _List(Record):
    """Returns every fact in long-term memory, with its id."""


class _Curate(Record):
    """Looks for facts that repeat or contradict each other, and proposes which to remove."""

    apply: bool = Field(default=False, description="Whether to carry the proposals out.")


@dataclass(frozen=True, slots=True)
class _Done:
    told: Any
    ids: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


_ASKED: Mapping[Operation, type[Record]] = {
    "remember": _Remember,
    "update": _Update,
    "forget": _Forget,
    "recall": _Recall,
    "list": _List,
    "curate": _Curate,
}


class StoreTools:
    """The tools of one store, used in the name of one person."""

    def __init__(self, store: MemoryStore, user: str = "user") -> None:
        self._store = store
        self._user = user
        able = {"remember", *store.capabilities}
        self._offered = {name: asked for name, asked in _ASKED.items() if name in able}

    async def list_tools(self) -> Sequence[Mapping[str, Any]]:
        return [
            {"name": name, "description": asked.__doc__, "inputSchema": _schema(asked)}
            for name, asked in self._offered.items()
        ]

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        operation = next((offered for offered in self._offered if offered == name), None)
        if operation is None:
            return _failure(None, f"there is no tool {name!r}; there are {', '.join(self._offered)}")
        try:
            done = await self._performed(self._offered[operation].model_validate(arguments))
        except ValidationError as error:
            return _failure(operation, _misread(error))
        except Refused as error:
            return Answer(failed(f"refused: {error}", refused=str(error)), operation, refused=str(error))
        except MemorybenchError as error:
            return _failure(operation, str(error))
        content = [{"type": "text", "text": json.dumps(done.told, ensure_ascii=False)}]
        return Answer({"content": content, "structuredContent": done.told}, operation, done.ids, done.texts)

    async def _performed(self, asked: Record) -> _Done:
        store, user = self._store, self._user
        match asked:
            case _Remember(content=content, category=category):
                kept = category if "category" in store.capabilities else ""
                id = await store.remember(user, NewFact(content=content, category=kept or None))
                return _Done({"id": id}, (id,))
            case _Update(id=id, content=content):
                id = await store.update(user, id, content)
                return _Done({"id": id}, (id,))
            case _Forget(id=id):
                await store.forget(user, id)
                return _Done({"forgotten": id}, (id,))
            case _Recall(query=query, limit=limit):
                return _facts(await store.recall(user, query, limit))
            case _Curate(apply=apply):
                curation = await store.curate(user, apply=apply)
                return _Done(curation.plain(), tuple(id for one in curation.proposals for id in one.ids))
        return _facts(await store.list(user))


def serving(open_store: Callable[[Path], AbstractAsyncContextManager[MemoryStore]], user: str = "user") -> Serve:
    """How an agent is given the store that `open_store` opens on a folder."""

    @asynccontextmanager
    async def serve(folder: Path, session: int) -> AsyncIterator[Served]:
        async with (
            open_store(folder) as store,
            open_proxy(StoreTools(store, user), session=session, user=user) as proxy,
        ):
            yield proxy

    return serve


def _facts(facts: Sequence[StoredFact]) -> _Done:
    told = [fact.model_dump(include={"id", "content", "category"}, exclude_none=True) for fact in facts]
    return _Done({"facts": told}, tuple(fact.id for fact in facts), tuple(fact.content for fact in facts))


def _schema(asked: type[Record]) -> dict[str, Any]:
    """As tools are described: without the titles that pydantic makes of our names."""
    made = asked.model_json_schema()
    properties = {
        name: {key: value for key, value in field.items() if key != "title"}
        for name, field in made.get("properties", {}).items()
    }
    return {
        "type": "object",
        "properties": properties,
        "required": made.get("required", []),
        "additionalProperties": False,
    }


def _failure(operation: Operation | None, problem: str) -> Answer:
    return Answer(failed(problem, error=problem), operation, error=problem)


def _misread(error: ValidationError) -> str:
    problems = (f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in error.errors())
    return f"the arguments do not fit: {'; '.join(problems)}"
