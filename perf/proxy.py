"""What the recording MCP proxy between an agent and a store takes per call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from memorybench.mcp.http import open_mcp_http
from memorybench.mcp.proxy import open_proxy
from memorybench.mcp.store_server import StoreTools
from memorybench.secrets.redaction import Redactor
from memorybench.stores.reference import open_reference
from perf.measuring import Line, Setup, at_most


def measure(setup: Setup) -> Iterator[Line]:
    (setup.folder / "proxy").mkdir()
    seconds = asyncio.run(_call_seconds(setup.folder / "proxy", setup.proxy_calls))
    yield at_most("recording proxy with the reference store, per call", 1000 * median(seconds), 5, "ms")


async def _call_seconds(folder: Path, calls: int) -> list[float]:
    seconds = []
    async with (
        open_reference(folder) as store,
        open_proxy(StoreTools(store)) as proxy,
        open_mcp_http(proxy.url, {}, Redactor([])) as client,
    ):
        await client.call_tool("remember", {"content": "Ana likes tea"})
        for n in range(calls):
            started = time.perf_counter()
            await client.call_tool("recall", {"query": f"tea {n}"})
            seconds.append(time.perf_counter() - started)
    return seconds
