"""Records the calls of an agent: the parts that all proxies share, and the proxy before another MCP server."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from msgspec import Struct
from starlette.applications import Starlette
from starlette.routing import Route

from memorybench.core.agents import MemoryOperation, ToolCall
from memorybench.core.errors import MemorybenchError

from .client import MESSAGE_CAP, ToolResult
from .forwarding import Connect, Send, open_forwarding

USER = "user"
"""The user for whom agents work."""
NO_REPLY = "no reply before the session ended"
_RECORDED = frozenset({"resources/read", "prompts/get"})
"""Requests other than tool calls that are recorded, too; their method is recorded as the name of the tool."""

# without a handler, Python prints warnings of the server to stderr
logging.getLogger("uvicorn").addHandler(logging.NullHandler())


class ReadCall(Struct, frozen=True):
    """What a call of one of the server's tools did to the memory. `refused` is the message if the server refused it."""

    parts: tuple[MemoryOperation, ...] = ()
    refused: str | None = None


ReadToolCall = Callable[[str, Mapping[str, Any], ToolResult, str | None], ReadCall]
"""Takes the name, arguments, result and error of a tool call; returns what it did to the memory."""


class Proxy:
    """Records the calls of one session. Opened by `open_store_proxy` and `open_server_proxy`."""

    def __init__(self, session: int) -> None:
        self.url = ""
        self.connected = False
        self.calls: list[ToolCall] = []
        self._session = session

    @property
    def command(self) -> tuple[str, ...]:
        # -P: a file in the agent's folder must not be imported in the place of a module
        return (sys.executable, "-P", "-m", "memorybench.mcp.bridge", self.url)

    def record(self, tool: str, arguments: Mapping[str, Any]) -> Callable[..., None]:
        """Record that a call began.

        Return a function that records its end; its arguments are further fields of ToolCall.
        """
        self.connected = True  # some agents know their tools beforehand and never list them
        started, place = time.perf_counter(), len(self.calls)
        call = ToolCall(session=self._session, tool=tool, user=USER, arguments=arguments, error=NO_REPLY)
        self.calls.append(call)

        def end(**fields: Any) -> None:
            seconds = time.perf_counter() - started
            self.calls[place] = call.model_copy(update={"error": None, "seconds": seconds, **fields})

        return end


class _ServerProxy(Proxy):
    """A proxy that forwards the requests of the agent to a server and records them."""

    def __init__(self, read_call: ReadToolCall, session: int) -> None:
        super().__init__(session)
        self._read_call = read_call

    async def observe(self, method: str, params: Mapping[str, Any], send: Send) -> dict[str, Any]:
        if method == "tools/list":
            self.connected = True
        if method == "tools/call":
            return await self._observe_tool(str(params.get("name", "")), params.get("arguments") or {}, send)
        if method not in _RECORDED:
            return await send()
        end = self.record(method, params)
        try:
            result = await send()
        except MCPError as error:
            end(error=error.message)
            raise
        end(result=json.dumps(result, ensure_ascii=False))
        return result

    async def _observe_tool(self, name: str, arguments: Mapping[str, Any], send: Send) -> dict[str, Any]:
        end = self.record(name, arguments)
        try:
            result = await send()
        except MCPError as error:
            read = self._read_call(name, arguments, ToolResult(""), error.message)
            end(parts=read.parts, refused=read.refused, error=None if read.refused else error.message)
            raise
        parts = [part for part in result.get("content", ()) if isinstance(part, dict)]
        text = "\n".join(str(part["text"]) for part in parts if part.get("type") == "text" and "text" in part)
        error_text = (text or "failed with no error message") if result.get("isError") else None
        read = self._read_call(name, arguments, ToolResult(text, result.get("structuredContent")), error_text)
        end(
            result=text or json.dumps(result, ensure_ascii=False),
            parts=read.parts,
            refused=read.refused,
            error=None if read.refused else error_text,
        )
        return result


@asynccontextmanager
async def open_server_proxy(connect: Connect, read_call: ReadToolCall, *, session: int = 1) -> AsyncIterator[Proxy]:
    """Forward one session of an agent to a server, and record its calls.

    If the server could not be reached, raise that ServiceError instead of the error that the agent had because of it.
    """
    proxy = _ServerProxy(read_call, session)
    async with open_forwarding(connect, proxy.observe) as server, serve_http(server) as proxy.url:
        try:
            yield proxy
        except MemorybenchError as error:
            raise (server.failure or error) from None
        if server.failure is not None:
            raise server.failure


@asynccontextmanager
async def serve_http(server: Server[Any], *, stateless: bool = False) -> AsyncIterator[str]:
    """Serve an MCP server over streamable HTTP and yield its URL.

    It listens on a free port of the loopback address. A random token in the URL keeps other programs out. With
    `stateless`, the server has no sessions and sends only results.
    """
    manager = StreamableHTTPSessionManager(
        server, json_response=stateless, stateless=stateless, max_request_body_size=MESSAGE_CAP
    )
    path = f"/{secrets.token_urlsafe(24)}/mcp"
    methods = ["POST"] if stateless else ["POST", "GET", "DELETE"]
    app = Starlette(routes=[Route(path, StreamableHTTPASGIApp(manager), methods=methods)])
    config = uvicorn.Config(
        app, http="h11", ws="none", lifespan="off", log_config=None, access_log=False, timeout_graceful_shutdown=1
    )
    web_server = _WebServer(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # accepted connections inherit this; without it, every reply waits 40 ms for a delayed acknowledgement
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        async def serve() -> None:
            async with manager.run():
                await web_server.serve(sockets=[listener])

        serving = asyncio.create_task(serve())
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}{path}"
        finally:
            web_server.should_exit = True
            await serving


class _WebServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # signals belong to the engine
