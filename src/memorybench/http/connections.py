"""Connections to servers, opened where none is idle, one exchange at a time on each."""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
from collections import defaultdict, deque
from functools import lru_cache
from typing import NamedTuple, cast

from aiohappyeyeballs import start_connection

from .http1 import BrokenOff, ReplyReader
from .resolver import GuardedResolver

IDLE_SECONDS = 15.0
"""A connection idle for longer is not trusted: servers close theirs, and what is sent at that moment is lost."""
EYEBALLS_DELAY = 0.25
"""After so many seconds the next address of a name is tried beside the first, which may be a dead route."""

_ENDING = "not asked: connections are being closed"


class Origin(NamedTuple):
    secure: bool
    host: str
    port: int


class NotConnected(Exception):
    """Says why. Nothing was sent. `final`: another attempt would end alike."""

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


class Lost(Exception):
    """The connection ended before a reply began: what was asked for may have been done."""


class Connections:
    """There is no limit on their number: how many calls are in flight is the engine's business."""

    def __init__(self, connect_timeout: float) -> None:
        self._connect_timeout = connect_timeout
        self._resolver = GuardedResolver()
        self._idle: dict[Origin, deque[_Connection]] = defaultdict(deque)
        self._open: set[_Connection] = set()
        self._closed = False

    async def exchange(self, origin: Origin, request: bytes, reader: ReplyReader, deadline: float) -> None:
        """Sends once and reads until the reply is whole. NotConnected, Lost, BrokenOff, TimeoutError where `deadline`,
        by the loop's clock, passes after something was sent, or what the reader raises."""
        if self._closed:
            raise NotConnected(_ENDING)
        connection = self._unused(origin) or await self._opened(origin, deadline)
        try:
            await connection.ask(request, reader, deadline)
        except BaseException:
            connection.drop()
            raise
        if connection.free():
            self._idle[origin].append(connection)
        else:
            connection.drop()

    async def close(self) -> None:
        self._closed = True
        for connection in self._open:
            connection.drop()
        if self._open:
            await asyncio.wait([connection.closed for connection in self._open])

    def _unused(self, origin: Origin) -> _Connection | None:
        """The one that was used last; those that have aged are closed."""
        idle = self._idle[origin]
        while idle and idle[0].idle_for() > IDLE_SECONDS:
            idle.popleft().drop()
        while idle:
            connection = idle.pop()
            if connection.silent():
                return connection
            connection.drop()
        return None

    async def _opened(self, origin: Origin, deadline: float) -> _Connection:
        latest = asyncio.get_running_loop().time() + self._connect_timeout
        try:
            async with asyncio.timeout_at(min(latest, deadline)):
                connection = await self._connected(origin)
        except TimeoutError:
            raise NotConnected("no connection in time") from None
        except socket.gaierror:
            raise NotConnected("the name of the host is not known") from None
        except ssl.SSLCertVerificationError:
            raise NotConnected("the certificate is not accepted", final=True) from None
        except ssl.SSLError:
            raise NotConnected("no secure connection; is it a plain http server?", final=True) from None
        except OSError as error:
            raise NotConnected(f"not reached: {error.strerror or str(error) or 'it hangs up'}") from None
        self._open.add(connection)
        connection.closed.add_done_callback(lambda _: self._open.discard(connection))
        if self._closed:  # while we were connecting
            connection.drop()
            await asyncio.wait([connection.closed])
            raise NotConnected(_ENDING)
        return connection

    async def _connected(self, origin: Origin) -> _Connection:
        loop, secured = asyncio.get_running_loop(), _secured() if origin.secure else None
        found = await self._resolver.resolve(origin.host, origin.port)
        reached = await start_connection(found, happy_eyeballs_delay=EYEBALLS_DELAY, interleave=1)
        reached.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # a model may think for minutes
        plain, connection = await loop.create_connection(lambda: _Connection(reached), sock=reached)
        if secured is not None:
            transport = await loop.start_tls(plain, connection, secured, server_hostname=origin.host.rstrip("."))
            assert transport is not None  # the way it is typed, it may be
            connection.transport = transport
        return connection


@lru_cache(maxsize=1)  # reads all certificates that this machine trusts
def _secured() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class _Connection(asyncio.Protocol):
    transport: asyncio.Transport
    """What is written to; over TLS, another one than what is sent from."""
    _plain: asyncio.Transport
    _replied: asyncio.Future[None]
    _overdue: asyncio.TimerHandle

    def __init__(self, reached: socket.socket) -> None:
        self._arrivals = select.poll()
        self._arrivals.register(reached, select.POLLIN)
        self._loop = asyncio.get_running_loop()
        self.closed = self._loop.create_future()
        self._reader: ReplyReader | None = None
        self._idle_since = 0.0

    def ask(self, request: bytes, reader: ReplyReader, deadline: float) -> asyncio.Future[None]:
        self._reader = reader
        self._replied = self._loop.create_future()
        self._overdue = self._loop.call_at(deadline, self._fail, TimeoutError())
        self.transport.write(request)
        return self._replied

    def free(self) -> bool:
        """Whether another exchange may follow; from now on it counts as idle."""
        self._overdue.cancel()
        reader, self._reader = self._reader, None
        self._idle_since = self._loop.time()
        # a server may reply before it has taken all
        unsent = self.transport.get_write_buffer_size() or self._plain.get_write_buffer_size()
        return reader is not None and reader.keeps_open and not unsent and not self.transport.is_closing()

    def idle_for(self) -> float:
        return self._loop.time() - self._idle_since

    def silent(self) -> bool:
        """Nothing has come since it was freed. What has is no reply to what will be asked next: a farewell, or worse.
        The loop need not have noticed yet."""
        return not self.transport.is_closing() and not self._arrivals.poll(0)

    def drop(self) -> None:
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._plain = self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._reader is None or self._reader.whole:
            self.drop()  # nobody has asked
            return
        try:
            self._reader.feed(data)
        except Exception as error:
            self._fail(error)
        else:
            self._tell()

    def eof_received(self) -> None:
        if self._reader is None:
            self.drop()
            return
        self._reader.end()
        self._tell()
        self._fail(BrokenOff() if self._reader.begun else Lost())

    def connection_lost(self, error: Exception | None) -> None:
        self.closed.set_result(None)
        if self._reader is not None:
            self._overdue.cancel()
            self._fail(BrokenOff() if self._reader.begun else Lost())

    def _tell(self) -> None:
        if self._reader is not None and self._reader.whole and not self._replied.done():
            self._replied.set_result(None)

    def _fail(self, error: Exception) -> None:
        if not self._replied.done():
            self._replied.set_exception(error)
            self._replied.exception()  # seen: who asked may have been stopped at this very moment
