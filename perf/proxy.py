"""What the recording MCP proxy between an agent and a store or a server takes per call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

import mcp_types as types
from mcp import Client
from mcp.server.lowlevel import Server

from memorybench.mcp.client import ClientRole, McpClient
from memorybench.mcp.http import open_mcp_http
from memorybench.mcp.proxy import ReadCall, open_server_proxy, serve_http
from memorybench.mcp.store_server import open_store_proxy
from memorybench.secrets.redaction import Redactor
from memorybench.stores.reference import open_reference
from perf.measuring import Line, Setup, at_most


def measure(setup: Setup) -> Iterator[Line]:
    (setup.folder / "proxy").mkdir()
    seconds = asyncio.run(_store_seconds(setup.folder / "proxy", setup.proxy_calls))
    yield at_most("recording proxy with the reference store, per call", 1000 * median(seconds), 5, "ms")
    for name, mode in (("a handshake", "legacy"), ("the newest revision", "auto")):
        direct, passed = asyncio.run(_server_seconds(setup.proxy_calls, mode))
        added = 1000 * (median(passed) - median(direct))
        yield at_most(f"recording proxy before a server, with {name}, added per call", added, 5, "ms")


async def _store_seconds(folder: Path, calls: int) -> list[float]:
    async with (
        open_reference(folder) as store,
        open_store_proxy(store) as proxy,
        open_mcp_http(proxy.url, {}, Redactor([])) as client,
    ):
        await client.call_tool("remember", {"content": "Ana likes tea"})
        return await _measure_calls(calls, lambda n: client.call_tool("recall", {"query": f"tea {n}"}))


async def _server_seconds(calls: int, mode: Any) -> tuple[list[float], list[float]]:
    """Return the seconds of calls by the official client: without the proxy, and through it."""
    async with serve_http(_echo_server()) as url:

        @asynccontextmanager
        async def connect(role: ClientRole) -> AsyncIterator[McpClient]:
            async with open_mcp_http(url, {}, Redactor([]), role=role) as client:
                yield client

        async with (
            open_server_proxy(connect, lambda *_: ReadCall()) as proxy,
            Client(url, mode=mode) as direct,
            Client(proxy.url, mode=mode) as passed,
        ):
            for client in (direct, passed):
                await client.list_tools()
            seconds: tuple[list[float], list[float]] = ([], [])
            for _ in range(calls):  # in turn, so that both are measured on the same machine load
                seconds[0].extend(await _measure_calls(1, lambda n: direct.call_tool("echo", {"n": n})))
                seconds[1].extend(await _measure_calls(1, lambda n: passed.call_tool("echo", {"n": n})))
            return seconds


async def _measure_calls(calls: int, call: Callable[[int], Awaitable[object]]) -> list[float]:
    seconds = []
    for n in range(calls):
        started = time.perf_counter()
        await call(n)
        seconds.append(time.perf_counter() - started)
    return seconds


def _echo_server() -> Server[Any]:
    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="echo", input_schema={"type": "object"})])

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text=str(params.arguments))])

    return Server("echo", on_list_tools=list_tools, on_call_tool=call_tool)
