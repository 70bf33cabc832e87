"""A client of the Model Context Protocol: the handshake, tools, and nothing else, over any transport.

`mcp_stdio.open_mcp_stdio` starts a server as a child process, `mcp_http.open_mcp_http` asks one over HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, Protocol

from memorybench import __version__
from memorybench.core.errors import Malformed, MemorybenchError, Transient

from .messages import VERSIONS, Message, Reader, Tool, ToolResult, notification, request

DEADLINE = 60.0
MOST_PAGES = 1_000
"""A list of tools that goes on after this many pages never ends."""
_FAREWELL = 1.0
"""Seconds to tell a server that a call is given up."""


class Transport(Protocol):
    """Carries messages to one server; what goes wrong on the way is raised as a ServiceError."""

    async def ask(self, message: Message) -> Message:
        """The reply to a request. Many may be under way at once."""
        ...

    async def tell(self, message: Message) -> None:
        """A notification: no reply is waited for."""
        ...

    def agreed(self, version: str) -> None:
        """Both sides will speak this version from now on."""
        ...


class McpClient:
    """Calls tools of one server. Any number of calls may be in flight.

    A call that is not answered in time is cancelled and raises Transient: the server may have done it all the same.
    """

    def __init__(self, transport: Transport, reader: Reader, deadline: float) -> None:
        self._transport = transport
        self._reader = reader
        self._deadline = deadline
        self._ids = count(1)
        self.server_info: Mapping[str, Any] = {}
        """Name and version, as the server tells them in the handshake."""

    async def shake_hands(self) -> None:
        """To be called once, before anything else."""
        proposed = {
            "protocolVersion": VERSIONS[0],
            "capabilities": {},
            "clientInfo": {"name": "memorybench", "version": __version__},
        }
        result = await self.request("initialize", proposed)
        version = self._reader.version(result)
        info = result.get("serverInfo")
        self.server_info = info if isinstance(info, dict) else {}
        self._transport.agreed(version)
        await self._transport.tell(notification("notifications/initialized"))

    async def list_tools(self) -> Sequence[Tool]:
        tools: list[Tool] = []
        params: dict[str, Any] = {}
        for _ in range(MOST_PAGES):
            result = await self.request("tools/list", params)
            tools += self._reader.tools(result)
            if not result.get("nextCursor"):
                return tools
            params = {"cursor": result["nextCursor"]}
        raise Malformed(f"{self._reader.server}: tools/list goes on after {MOST_PAGES:,} pages")

    async def call_tool(self, name: str, arguments: Mapping[str, Any], *, deadline: float | None = None) -> ToolResult:
        """What the tool answered; ToolError where it says that it failed."""
        params = {"name": name, "arguments": dict(arguments)}
        return self._reader.tool_result(await self.request("tools/call", params, deadline=deadline), name)

    async def ping(self) -> None:
        await self.request("ping")

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, *, deadline: float | None = None
    ) -> Mapping[str, Any]:
        """The result of any request; `deadline` in seconds."""
        message = request(next(self._ids), method, params)
        seconds = deadline or self._deadline
        try:
            async with asyncio.timeout(seconds):
                reply = await self._transport.ask(message)
        except TimeoutError:
            await self._cancel(message, "timed out")
            raise Transient(
                f"{self._reader.server}: {_named(message)}: no reply within {seconds:g} s", uncertain=True
            ) from None
        except asyncio.CancelledError:
            await self._cancel(message, "no longer needed")
            raise
        return self._reader.result(reply, _named(message))

    async def _cancel(self, message: Message, reason: str) -> None:
        if message["method"] == "initialize":
            return  # the protocol forbids to cancel it
        told = notification("notifications/cancelled", {"requestId": message["id"], "reason": reason})
        with suppress(MemorybenchError, TimeoutError):  # what matters is the call that is given up
            async with asyncio.timeout(_FAREWELL):  # a server that hangs may not read either
                await self._transport.tell(told)


def _named(message: Message) -> str:
    tool = message.get("params", {}).get("name") if message["method"] == "tools/call" else None
    return f"{message['method']} {tool}" if tool else str(message["method"])
