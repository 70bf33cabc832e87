"""A recorder between an agent and a store: every call of a tool is passed on as it is, and noted."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from memorybench.core.agents import Operation, ToolCall
from memorybench.core.errors import Malformed, MemorybenchError

from .client import MOST_PAGES, McpClient
from .server import open_mcp_server


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answered, as the protocol writes it, and what that means for a memory."""

    result: Mapping[str, Any]
    operation: Operation | None = None
    ids: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    refused: str | None = None
    error: str | None = None


class Upstream(Protocol):
    """Tools that lead to a store."""

    async def list_tools(self) -> Sequence[Mapping[str, Any]]: ...

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Answer: ...


class Proxy:
    """Opened by `open_proxy`."""

    def __init__(self, upstream: Upstream, session: int, user: str) -> None:
        self.url = ""
        self.connected = False
        self.calls: list[ToolCall] = []
        self._upstream = upstream
        self._session = session
        self._user = user
        # one call at a time: what came first is then the same for the store and for the record
        self._turn = asyncio.Lock()

    @property
    def command(self) -> tuple[str, ...]:
        # -P: nothing in the folder where the agent works can pass itself off as a module
        return (sys.executable, "-P", "-m", "memorybench.mcp.bridge", self.url)

    async def list_tools(self) -> Sequence[Mapping[str, Any]]:
        self.connected = True
        return await self._upstream.list_tools()

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        self.connected = True  # some agents are told their tools beforehand, and never ask
        async with self._turn:
            begun = time.perf_counter()
            try:
                answer = await self._upstream.call_tool(name, arguments)
            except Exception as error:  # a call that broke was made all the same, and is shown
                problem = str(error) if isinstance(error, MemorybenchError) else f"{type(error).__name__}: {error}"
                answer = Answer(failed(problem, error=problem), error=problem)
            seconds = time.perf_counter() - begun
            self.calls.append(self._noted(name, arguments, answer, seconds))
            return answer.result

    def _noted(self, name: str, arguments: Mapping[str, Any], answer: Answer, seconds: float) -> ToolCall:
        return ToolCall(
            session=self._session,
            tool=name,
            operation=answer.operation,
            user=self._user,
            arguments=arguments,
            result=text_of(answer.result),
            ids=answer.ids,
            texts=answer.texts,
            refused=answer.refused,
            error=answer.error,
            seconds=seconds,
        )


@asynccontextmanager
async def open_proxy(upstream: Upstream, *, session: int = 1, user: str = "user") -> AsyncIterator[Proxy]:
    """A server of its own for each session: what is noted there was done there. `user`: who the agent works for."""
    proxy = Proxy(upstream, session, user)
    async with open_mcp_server(proxy) as proxy.url:
        yield proxy


class ClientTools:
    """The tools of another MCP server, under their own names and as that server tells them.

    `operations` says what calling a tool does to the memory. `refusal` is found in what a tool says when it declines to
    store something; without it no failure counts as a refusal.
    """

    def __init__(self, client: McpClient, operations: Mapping[str, Operation], refusal: _Pattern | None = None) -> None:
        self._client = client
        self._operations = operations
        self._refusal = refusal

    async def list_tools(self) -> Sequence[Mapping[str, Any]]:
        tools: list[Mapping[str, Any]] = []
        parameters: dict[str, Any] = {}
        for _ in range(MOST_PAGES):
            result = await self._client.request("tools/list", parameters)
            tools += result.get("tools") or []
            if not result.get("nextCursor"):
                return tools
            parameters = {"cursor": result["nextCursor"]}
        raise Malformed(f"tools/list goes on after {MOST_PAGES:,} pages")

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        operation = self._operations.get(name)
        try:
            result = await self._client.request("tools/call", {"name": name, "arguments": dict(arguments)})
        except MemorybenchError as error:
            return Answer(failed(str(error), error=str(error)), operation, error=str(error))
        text = text_of(result)
        if result.get("isError"):
            declined = self._refusal is not None and self._refusal.search(text) is not None
            return Answer(result, operation, refused=text if declined else None, error=None if declined else text)
        return Answer(result, operation, texts=(text,) if operation in ("recall", "list") else ())


class _Pattern(Protocol):
    def search(self, text: str, /) -> object | None: ...


def text_of(result: Mapping[str, Any]) -> str:
    """All text parts of a result, one after the other."""
    content = result.get("content")
    parts = content if isinstance(content, list) else []
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return "\n".join(texts)


def failed(reason: str, **marks: Any) -> dict[str, Any]:
    """The result of a tool that failed, for the agent to read; `marks` tell programs why."""
    return {
        "content": [{"type": "text", "text": reason}],
        "isError": True,
        **({"structuredContent": marks} if marks else {}),
    }
