"""A judge of 50 ms that lists facts and does little else, in a process of its own: a real web server would take more
of the machine than what is measured."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection

from perf.serving import served

SECONDS = 0.050
_TRACE = re.compile(rb"trace (\d+)")
_WRITTEN = b"You audit what was written"
_REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"


def judge_stub() -> AbstractContextManager[str]:
    """The address of a running stub."""
    return served(_serve)


def listing(prompt: bytes) -> bytes:
    """What the judge finds in a trace: three facts that were written down, one that was not, and one made up."""
    number = _TRACE.search(prompt)
    n = int(number[1]) if number else 0
    both = [f"customer_segments: bakeries in district {n}", "constraint: no subscription model"]
    if _WRITTEN in prompt:
        facts = [f"pricing: ${n} monthly", *both, "tool: uses a spreadsheet"]
    else:
        facts = [f"pricing: {n} dollars a month", *both, f"team: {n % 7} people work in the back office"]
    message = {"role": "assistant", "content": json.dumps({"facts": facts})}
    return json.dumps(
        {
            "id": "x",
            "object": "chat.completion",
            "model": "stub-1",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 400, "completion_tokens": 40, "total_tokens": 440},
        }
    ).encode()


class _Exchange(asyncio.Protocol):
    """As much HTTP as our clients speak: one request at a time, its length told."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        if not blank or len(body) < _length(head):
            return
        self._received = b""
        self._loop.call_later(SECONDS, self._answer, body)

    def _answer(self, prompt: bytes) -> None:
        body = listing(prompt)
        self._transport.write(_REPLY % (len(body), body))


def _length(head: bytes) -> int:
    _, told, rest = head.lower().partition(b"content-length:")
    return int(rest.split(b"\r\n", 1)[0]) if told else 0


def _serve(pipe: Connection) -> None:
    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(_Exchange, "127.0.0.1", 0, backlog=1024)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())
