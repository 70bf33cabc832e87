"""What the recorder between an agent and a store adds to a call: one over MCP to a store that answers at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from memorybench.http.client import open_http
from memorybench.mcp.http_transport import open_mcp_http
from memorybench.mcp.proxy import Answer, open_proxy
from memorybench.secrets.redaction import Redactor

GOAL = 5.0
"""Milliseconds a call."""
CALLS = 500


class Instant:
    """A store of no cost, with an answer of ordinary length."""

    async def list_tools(self) -> Sequence[Mapping[str, Any]]:
        return [{"name": "recall", "inputSchema": {"type": "object"}}]

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        facts = {"facts": [{"id": str(n), "content": f"fact number {n} is about tea"} for n in range(5)]}
        return Answer({"content": [{"type": "text", "text": str(facts)}], "structuredContent": facts}, "recall")


def milliseconds_a_call(calls: int = CALLS) -> float:
    """The median: a busy moment of the machine is outvoted."""
    return 1000 * median(asyncio.run(_times(calls)))


async def _times(calls: int) -> list[float]:
    nobody = Redactor([])
    took = []
    async with (
        open_proxy(Instant()) as proxy,
        open_http(nobody) as http,
        open_mcp_http(proxy.url, http, {}, nobody) as client,
    ):
        for n in range(calls):
            begun = time.perf_counter()
            await client.call_tool("recall", {"query": f"tea {n}"})
            took.append(time.perf_counter() - begun)
        assert len(proxy.calls) == calls
    return took


if __name__ == "__main__":
    print(f"recording proxy: {milliseconds_a_call():.2f} ms a call (goal: {GOAL:g} ms)")
