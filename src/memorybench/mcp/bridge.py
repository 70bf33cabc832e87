"""Connect the standard streams of an agent that can only start programs to a recording proxy on this machine.

python -m memorybench.mcp.bridge http://127.0.0.1:PORT/TOKEN/mcp
"""

from __future__ import annotations

import sys
from urllib.parse import urlsplit

import anyio
import httpx2
import mcp_types as types
from mcp.client.streamable_http import streamable_http_client
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage


async def run_bridge(url: str) -> None:
    """Pass messages on in both directions until standard input ends and every request has its reply."""
    unanswered: set[types.RequestId] = set()
    changed = anyio.Event()

    async with (
        httpx2.AsyncClient(timeout=None, trust_env=False) as http,  # a proxy in the environment is not for loopback
        streamable_http_client(url, http_client=http) as (from_server, to_server),
        stdio_server() as (from_agent, to_agent),
        anyio.create_task_group() as tasks,
    ):

        async def forward_replies() -> None:
            nonlocal changed
            async for item in from_server:
                if isinstance(item, SessionMessage):
                    await to_agent.send(item)
                    if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
                        unanswered.discard(item.message.id)
                        changed.set()
                        changed = anyio.Event()

        tasks.start_soon(forward_replies)
        async for item in from_agent:
            if isinstance(item, SessionMessage):
                if isinstance(item.message, types.JSONRPCRequest):
                    unanswered.add(item.message.id)
                await to_server.send(item)
        while unanswered:
            await changed.wait()
        tasks.cancel_scope.cancel()
        await to_agent.aclose()  # else stdio_server waits for more to write


def main(arguments: list[str]) -> None:
    if len(arguments) != 1:
        sys.exit("usage: python -m memorybench.mcp.bridge URL")
    address = urlsplit(arguments[0])
    if address.scheme != "http" or address.hostname != "127.0.0.1":
        sys.exit("mcp.bridge: invalid URL; expected http://127.0.0.1:PORT/TOKEN/mcp")
    try:
        anyio.run(run_bridge, arguments[0])
    except* (httpx2.HTTPError, OSError) as errors:
        sys.exit(f"mcp.bridge: the memory server cannot be reached: {errors.exceptions[0]}")


if __name__ == "__main__":
    main(sys.argv[1:])
