"""Connects an agent to a recording proxy on this machine through standard input and output.

For agents that can use MCP servers only as programs:

python -m memorybench.mcp.bridge http://127.0.0.1:PORT/TOKEN/mcp
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import mcp_types as types
from mcp import MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.server.runner import serve_dual_era_loop
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream  # the SDK has no public name for them
from mcp.shared.message import SessionMessage

from memorybench.core.errors import MemorybenchError
from memorybench.secrets.redaction import Redactor

from .client import MESSAGE_CAP, ClientRole, McpClient, open_client
from .forwarding import open_forwarding

Incoming = ReadStream[SessionMessage | Exception]


async def run_bridge(url: str) -> str:
    """Forward messages in both directions until standard input ends.

    Return why the proxy could not be reached; "" if it could.
    """

    @asynccontextmanager
    async def connect(role: ClientRole) -> AsyncIterator[McpClient]:
        async with (
            httpx2.AsyncClient(timeout=None, trust_env=False) as http,  # a proxy in the environment is not for loopback
            open_client(
                streamable_http_client(url, http_client=http, max_sse_event_size=MESSAGE_CAP),
                "memory",
                Redactor([]),
                None,  # the recording proxy has deadlines
                _find_no_failure,
                role,
            ) as client,
        ):
            yield client

    async with (
        open_forwarding(connect, same_revision=True) as server,
        stdio_server() as (from_agent, to_agent),
        _answer_all(from_agent, to_agent) as streams,
    ):
        # not server.run, which would ask for the name and the instructions before the connection exists
        await serve_dual_era_loop(server, *streams, lifespan_state={})
        return str(server.failure or "")


@asynccontextmanager
async def _answer_all(from_agent: Incoming, to_agent: WriteStream[SessionMessage]) -> AsyncIterator[Any]:
    """Yield streams for a server whose input ends only after every request of the agent has a reply.

    Some agents write their requests and close the stream at once; the server would end before it has replied.
    """
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    unanswered: set[types.RequestId] = set()
    replied = anyio.Event()

    async def read_requests() -> None:
        async with to_server:
            async for item in from_agent:
                if isinstance(item, SessionMessage) and isinstance(item.message, types.JSONRPCRequest):
                    unanswered.add(item.message.id)
                await to_server.send(item)
            while unanswered:
                await replied.wait()

    async def write_replies() -> None:
        nonlocal replied
        async with to_agent:
            async for item in from_server:
                await to_agent.send(item)
                if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError) and item.message.id is not None:
                    unanswered.discard(item.message.id)
                    replied.set()
                    replied = anyio.Event()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_requests)
        tasks.start_soon(write_replies)
        yield incoming, outgoing


async def _find_no_failure(_error: MCPError) -> MemorybenchError | None:
    return None


def main(arguments: list[str]) -> None:
    if len(arguments) != 1:
        sys.exit("usage: python -m memorybench.mcp.bridge URL")
    address = urlsplit(arguments[0])
    if address.scheme != "http" or address.hostname != "127.0.0.1":
        sys.exit("mcp.bridge: invalid URL; expected http://127.0.0.1:PORT/TOKEN/mcp")
    if failure := anyio.run(run_bridge, arguments[0]):
        sys.exit(f"mcp.bridge: the memory server cannot be reached: {failure}")


if __name__ == "__main__":
    main(sys.argv[1:])
