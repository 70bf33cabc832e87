"""A stub server in its own process: a model that takes 50 ms and a memory that takes 20 ms, or a multiple of that.

It is written without a web server, which would use more of the machine than what is measured.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import re
import selectors
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any
from urllib.request import urlopen

MODEL_SECONDS = 0.050
MEMORY_SECONDS = 0.020
_MEMORIES = b'{"results": [{"id": "m1", "memory": "tea", "score": 0.5}]}'
_REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
_TRACE = re.compile(rb"trace (\d+)")
_STATED, _WRITTEN, _WITHDRAWN = b"You audit what a memory", b"You audit what was written", b"You audit which entries"
"""How the prompts that ask for lists of facts begin."""


@contextmanager
def stub_server(slowness: int = 1) -> Iterator[str]:
    """The address of a running stub. Its replies take `slowness` times as long as usual."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs, slowness), daemon=True)
    process.start()
    port = ours.recv()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.join()


def take_counts(address: str) -> dict[str, int]:
    """The requests `served` since the last call, and the `most` in flight at once."""
    with urlopen(f"{address}/counts") as reply:
        counts: dict[str, int] = json.load(reply)
    return counts


def _serve(pipe: Connection, slowness: int) -> None:
    async def serve() -> None:
        counts = _Counts()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Exchange(counts, slowness), "127.0.0.1", 0, backlog=1024)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    # epoll rounds up to whole milliseconds, so replies would take 51 ms
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        runner.run(serve())


class _Counts:
    def __init__(self) -> None:
        self.served = self.now = self.most = 0

    def begin(self) -> None:
        self.served += 1
        self.now += 1
        self.most = max(self.most, self.now)

    def end(self) -> None:
        self.now -= 1

    def take(self) -> bytes:
        counts = json.dumps({"served": self.served, "most": self.most}).encode()
        self.served = self.most = 0
        return counts


class _Exchange(asyncio.Protocol):
    """As much HTTP as the clients need: one request at a time, with a Content-Length."""

    def __init__(self, counts: _Counts, slowness: int) -> None:
        self._counts = counts
        self._slowness = slowness
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._loop = asyncio.get_running_loop()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        if not blank or len(body) < _length(head):
            return
        self._received = b""
        if head.startswith(b"GET /counts"):
            self._write(self._counts.take())
            return
        self._counts.begin()
        received = self._loop.time()
        if head.startswith(b"POST /v1/chat/completions"):
            self._loop.call_at(received + MODEL_SECONDS * self._slowness, self._answer, _completion(body))
        else:
            self._loop.call_at(received + MEMORY_SECONDS * self._slowness, self._answer, _MEMORIES)

    def _answer(self, body: bytes) -> None:
        self._counts.end()
        self._write(body)

    def _write(self, body: bytes) -> None:
        self._transport.write(_REPLY % (len(body), body))


def _length(head: bytes) -> int:
    _, header, rest = head.lower().partition(b"content-length:")
    return int(rest.split(b"\r\n", 1)[0]) if header else 0


def _completion(prompt: bytes) -> bytes:
    """The facts that the prompt asks for, or "yes"."""
    facts = _facts(prompt)
    content = "yes" if facts is None else json.dumps({"facts": facts})
    reply: dict[str, Any] = {
        "id": "x",
        "object": "chat.completion",
        "model": "stub-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 400, "completion_tokens": 40, "total_tokens": 440},
    }
    return json.dumps(reply).encode()


def _facts(prompt: bytes) -> list[str] | None:
    """Three facts stated and stored, one only stated, one only stored, and none withdrawn; None for other prompts."""
    trace = _TRACE.search(prompt)
    n = int(trace[1]) if trace else 0
    both = [f"customer_segments: bakeries in district {n}", "constraint: no subscription model"]
    if _STATED in prompt:
        return [f"pricing: {n} dollars a month", *both, f"team: {n % 7} people work in the back office"]
    if _WRITTEN in prompt:
        return [f"pricing: ${n} monthly", *both, "tool: uses a spreadsheet"]
    return [] if _WITHDRAWN in prompt else None
