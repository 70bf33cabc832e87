"""A memory of 20 ms that does little else, in a process of its own: a real web server would be what is measured."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection

from perf.serving import served

SECONDS = 0.020
_BODY = b'{"results": [{"id": "m1", "memory": "tea", "score": 0.5}]}'
_REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"


def quick_stub() -> AbstractContextManager[str]:
    """The address of a running stub. `GET /served` gives how many other requests it has answered since the last."""
    return served(_serve)


class _Exchange(asyncio.Protocol):
    """As much HTTP as our clients speak: one request at a time, its length told."""

    served = 0

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
        if head.startswith(b"GET /served"):
            told = b"%d" % _Exchange.served
            _Exchange.served = 0
            self._answer(told)
        else:
            _Exchange.served += 1
            self._loop.call_later(SECONDS, self._answer, _BODY)

    def _answer(self, body: bytes) -> None:
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
