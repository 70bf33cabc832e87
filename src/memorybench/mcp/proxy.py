"""A local MCP server between an agent and a store, which records every tool call."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Route

from memorybench import __version__
from memorybench.core.agents import Operation, ToolCall
from memorybench.core.errors import MemorybenchError

from .client import MESSAGE_CAP

# without a handler, Python prints warnings of the server to stderr
logging.getLogger("uvicorn").addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool answers, and what the call did to the memory."""

    text: str
    structured: Any = None
    operation: Operation | None = None
    ids: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    refused: str | None = None
    error: str | None = None


class Tools(Protocol):
    """The tools that a proxy offers."""

    async def list_tools(self) -> Sequence[types.Tool]: ...

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer: ...


class Proxy:
    """Records the tool calls of one session. Opened by `open_proxy`."""

    def __init__(self, tools: Tools, session: int, user: str) -> None:
        self.url = ""
        self.connected = False
        self.calls: list[ToolCall] = []
        self._tools = tools
        self._session = session
        self._user = user
        # one call at a time, so that calls are recorded in the order in which the store saw them
        self._lock = asyncio.Lock()

    @property
    def command(self) -> tuple[str, ...]:
        # -P: a file in the agent's folder must not be imported in the place of a module
        return (sys.executable, "-P", "-m", "memorybench.mcp.bridge", self.url)

    async def list_tools(self, _context: Any, _params: Any) -> types.ListToolsResult:
        self.connected = True
        return types.ListToolsResult(tools=list(await self._tools.list_tools()))

    async def call_tool(self, _context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        self.connected = True  # some agents know their tools beforehand and never list them
        arguments = params.arguments or {}
        async with self._lock:
            started = time.perf_counter()
            try:
                answer = await self._tools.call_tool(params.name, arguments)
            except Exception as error:  # a call that failed unexpectedly is recorded as well
                problem = str(error) if isinstance(error, MemorybenchError) else f"{type(error).__name__}: {error}"
                answer = ToolAnswer(problem, {"error": problem}, error=problem)
            self.calls.append(
                ToolCall(
                    session=self._session,
                    tool=params.name,
                    operation=answer.operation,
                    user=self._user,
                    arguments=arguments,
                    result=answer.text,
                    ids=answer.ids,
                    texts=answer.texts,
                    refused=answer.refused,
                    error=answer.error,
                    seconds=time.perf_counter() - started,
                )
            )
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.text)],
            structured_content=answer.structured,
            is_error=answer.refused is not None or answer.error is not None,
        )


@asynccontextmanager
async def open_proxy(tools: Tools, *, session: int = 1, user: str = "user") -> AsyncIterator[Proxy]:
    """Start a server for one session of an agent that works for `user`.

    It listens on a free port of the loopback address. A random token in its URL keeps other programs out.
    """
    proxy = Proxy(tools, session, user)
    server = Server(
        "memory",
        version=__version__,
        on_list_tools=proxy.list_tools,
        on_call_tool=proxy.call_tool,
        # our tools read no headers; without this, the SDK lists all tools on every call to check them
        get_tool_input_schema=lambda _name: None,
    )
    manager = StreamableHTTPSessionManager(
        server, json_response=True, stateless=True, max_request_body_size=MESSAGE_CAP
    )
    path = f"/{secrets.token_urlsafe(24)}/mcp"
    app = Starlette(routes=[Route(path, StreamableHTTPASGIApp(manager), methods=["POST"])])
    config = uvicorn.Config(
        app, http="h11", ws="none", lifespan="off", log_config=None, access_log=False, timeout_graceful_shutdown=1
    )
    web_server = _WebServer(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # accepted connections inherit this; without it, every reply waits 40 ms for a delayed acknowledgement
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        proxy.url = f"http://127.0.0.1:{listener.getsockname()[1]}{path}"

        async def serve() -> None:
            async with manager.run():
                await web_server.serve(sockets=[listener])

        serving = asyncio.create_task(serve())
        try:
            yield proxy
        finally:
            web_server.should_exit = True
            await serving


class _WebServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # signals belong to the engine
