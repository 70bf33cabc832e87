"""Small servers: one that sends given bytes, and an HTTP proxy."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiohttp.abc import ResolveResult

from memorybench.core.errors import MemorybenchError
from memorybench.http.client import Http, open_http
from memorybench.secrets.redaction import Redactor

HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


class ByteServer:
    """Sends the same bytes to every request, and records requests and connections."""

    def __init__(self, reply: bytes, *, end: Callable[[asyncio.StreamWriter], None] | None = None) -> None:
        """`end` ends the connection after each reply; None keeps it open."""
        self._reply = reply
        self._end = end
        self.requests: list[bytes] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.connections = 0
        self.closed = asyncio.Semaphore(0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):  # the client has closed the connection
            while head := await reader.readuntil(b"\r\n\r\n"):
                _, has_body, length = head.lower().partition(b"content-length:")
                body = await reader.readexactly(int(length.split(b"\r\n")[0])) if has_body else b""
                self.requests.append(head + body)
                writer.write(self._reply)
                if self._end is not None:
                    await writer.drain()
                    self._end(writer)
                    break
        writer.close()
        with suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()
        self.closed.release()


def close_connection(writer: asyncio.StreamWriter) -> None:
    writer.close()


def reset_connection(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class Proxy:
    """An HTTP proxy that sends every request and tunnel to one port of this machine."""

    def __init__(self, port: int = 0, *, status: int = 200) -> None:
        """`status` is the reply to CONNECT."""
        self._port = port
        self._status = status
        self._pipes: set[asyncio.Task[None]] = set()
        self.heads: list[str] = []
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head.decode())
        if self._status != 200:
            writer.write(b"HTTP/1.1 %d Refused\r\nContent-Length: 0\r\n\r\n" % self._status)
            writer.close()
            return
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._port)
        self.writers.append(server_writer)
        if head.startswith(b"CONNECT "):
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            server_writer.write(head)
        back = asyncio.create_task(_pipe(server_reader, writer))
        self._pipes.add(back)
        back.add_done_callback(self._pipes.discard)
        await _pipe(reader, server_writer)


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(2**16):
            writer.write(data)
    writer.close()


@asynccontextmanager
async def running(server: ByteServer | Proxy, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Run `server` on a port of this machine."""
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls)
    async with listener:
        yield listener.sockets[0].getsockname()[1]
        for writer in server.writers:
            writer.transport.abort()
        await asyncio.sleep(0)


def send(
    server: ByteServer,
    *,
    times: int = 1,
    method: str = "GET",
    tls: ssl.SSLContext | None = None,
    opened: dict[str, Any] | None = None,
    **request: Any,
) -> list[bytes | MemorybenchError]:
    """Send `times` requests one after the other; return the body or the error of each."""

    async def send_all() -> list[bytes | MemorybenchError]:
        async with running(server, tls) as port, open_http(Redactor([]), deadline=20.0, **(opened or {})) as http:
            url = f"http{'s' if tls else ''}://127.0.0.1:{port}/"
            return [await outcome(http, method, url, **request) for _ in range(times)]

    return asyncio.run(send_all())


async def outcome(http: Http, method: str, url: str, **request: Any) -> bytes | MemorybenchError:
    try:
        return (await http.request(method, url, **request)).body
    except MemorybenchError as error:
        return error


def resolve_to(address: str) -> Callable[..., Awaitable[list[ResolveResult]]]:
    """Return a replacement of `ThreadedResolver.resolve` that gives every name the same address."""

    async def resolve(_: object, host: str, port: int = 0, *__: object, **___: object) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0)]

    return resolve
