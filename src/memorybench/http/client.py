"""Guarded HTTP: every body has a cap, every request a deadline, every message passes the redactor.

It asks once. Whether and when to ask again is decided by the engine, which alone knows what a repeat costs.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from json import JSONEncoder
from typing import Any

from pydantic_core import to_json
from yarl import URL

from memorybench.core.errors import BadInput, Malformed, MemorybenchError, ServiceError, Transient
from memorybench.secrets.redaction import Redactor

from .addresses import check_url
from .bodies import ACCEPTED_ENCODING, Garbled, Received
from .connections import Connections, Lost, NotConnected, Origin
from .http1 import REDIRECTS, BrokenOff, NotHttp, Receiver, ReplyReader, field_lines, request_bytes
from .replies import Reply, describe

BODY_CAP = 32 * 2**20
ERROR_BODY_CAP = 16 * 2**10
"""An error's body is only quoted; more of it is not read."""
DEADLINE = 120.0
CONNECT_TIMEOUT = 10.0
LONGEST_PAUSE = 60.0
"""Seconds without a byte after which a download counts as broken off."""
MOST_REDIRECTS = 3

_OURS_TO_SAY = frozenset({"connection", "content-length", "transfer-encoding"})
"""Headers on which it hangs where a request ends and the next may begin."""
_THOROUGH = JSONEncoder(separators=(",", ":"), allow_nan=False)
_NO_REPLY = (NotConnected, Lost, BrokenOff, NotHttp, Garbled, TimeoutError, ValueError)


@asynccontextmanager
async def open_http(
    redactor: Redactor,
    *,
    insecure: bool = False,
    deadline: float = DEADLINE,
    connect_timeout: float = CONNECT_TIMEOUT,
    body_cap: int = BODY_CAP,
) -> AsyncIterator[Http]:
    """A pool of connections. `redactor` knows every secret that its requests will carry.

    `insecure` allows plain http to other hosts than this one.
    """
    connections = Connections(connect_timeout)
    try:
        yield Http(connections, redactor, insecure, deadline, body_cap)
    finally:
        await connections.close()


class Http:
    """Opened by `open_http`."""

    def __init__(
        self, connections: Connections, redactor: Redactor, insecure: bool, deadline: float, body_cap: int
    ) -> None:
        self._connections = connections
        self._redactor = redactor
        self._insecure = insecure
        self._deadline = deadline
        self._body_cap = body_cap

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        json: Any = None,
        deadline: float | None = None,
    ) -> Reply:
        """A reply of status 2xx; a ServiceError of the right kind for everything else.

        `deadline`, in seconds, holds for all of it: redirects, and the last byte of a body that drips.
        """
        address = check_url(url, self._insecure)
        target = address.update_query(params) if params else address
        payload = b"" if json is None else _payload(json)
        seconds = deadline or self._deadline
        try:
            return await self._reply(method, target, headers or {}, payload, seconds)
        except _NO_REPLY as error:
            # `from None`: what is being sent includes its headers.
            raise _lost(error, describe(method, address, self._redactor), seconds) from None

    async def receive(self, url: str, headers: Mapping[str, str], receiver: Receiver) -> None:
        """Gives `receiver` the reply to a GET, whatever its status: for downloads.

        It has no deadline as a whole, but may not pause for long. Redirects lead to other hosts, too, as those of file
        stores do, at most MOST_REDIRECTS of them and from https only to https: `headers` must hold nothing secret.
        """
        address = check_url(url, self._insecure)
        try:
            for _ in range(MOST_REDIRECTS + 1):
                async with asyncio.timeout(LONGEST_PAUSE) as pause:
                    directed = _Directed(receiver, pause)
                    await self._exchange("GET", address, headers, b"", directed, math.inf)
                if directed.elsewhere is None:
                    return
                address = self._handed_on(address, directed.elsewhere)
        except _NO_REPLY as error:
            raise _lost(error, describe("GET", address, self._redactor), LONGEST_PAUSE) from None
        raise ServiceError(f"{describe('GET', address, self._redactor)}: redirected more than {MOST_REDIRECTS} times")

    def named(self, url: str) -> str:
        """What messages call a download from there."""
        return describe("GET", check_url(url, self._insecure), self._redactor)

    def _handed_on(self, address: URL, location: str) -> URL:
        where = describe("GET", address, self._redactor)
        target = _joined(address, location, where)
        if address.scheme == "https" and target.scheme != "https":
            raise ServiceError(f"{where}: redirects from https to {target.scheme}, which is not followed")
        return check_url(str(target), self._insecure)

    async def _reply(
        self, method: str, address: URL, headers: Mapping[str, str], payload: bytes, seconds: float
    ) -> Reply:
        deadline = asyncio.get_running_loop().time() + seconds
        for _ in range(MOST_REDIRECTS + 1):
            received = Received(self._body_cap, ERROR_BODY_CAP)
            await self._exchange(method, address, headers, payload, received, deadline)
            if received.status not in REDIRECTS:
                return self._read(method, address, received)
            address = self._redirected(method, address, received.headers.get("location", ""))
        raise ServiceError(f"{describe(method, address, self._redactor)}: redirected more than {MOST_REDIRECTS} times")

    async def _exchange(
        self,
        method: str,
        address: URL,
        headers: Mapping[str, str],
        payload: bytes,
        receiver: Receiver,
        deadline: float,
    ) -> None:
        host, port = address.raw_host, address.port
        assert host is not None  # check_url saw to it
        assert port is not None
        lines = _fields(address.host_port_subcomponent or "", tuple(headers.items()), bool(payload))
        request = request_bytes(method, address.raw_path_qs, lines, payload)
        origin = Origin(address.scheme == "https", host, port)
        await self._connections.exchange(origin, request, ReplyReader(method, receiver), deadline)

    def _read(self, method: str, address: URL, received: Received) -> Reply:
        reply = Reply(received.status, received.headers, received.body(), method, address, self._redactor)
        if not received.succeeded:
            raise reply.failure(reply.status)
        if received.cut_off:
            raise Malformed(f"{reply.where}: the reply is larger than {self._body_cap:,} bytes and was cut off")
        return reply

    def _redirected(self, method: str, address: URL, location: str) -> URL:
        """Where to ask next: the same server, by the same method, or nowhere. So no header goes astray."""
        where = describe(method, address, self._redactor)
        target = _joined(address, location, where)
        if target.origin() != address.origin():
            raise ServiceError(f"{where}: redirects to {describe('', target, self._redactor)}, which is not followed")
        if method not in ("GET", "HEAD"):
            raise ServiceError(f"{where}: redirects a {method}, which is not followed")
        return target


class _Directed:
    """Keeps from `receiver` what only leads elsewhere, and renews the time for its next piece."""

    def __init__(self, receiver: Receiver, pause: asyncio.Timeout) -> None:
        self._receiver = receiver
        self._pause = pause
        self.elsewhere: str | None = None

    def head(self, status: int, headers: Mapping[str, str]) -> bool:
        self._alive()
        if status in REDIRECTS:
            self.elsewhere = headers.get("location", "")
            return False
        return self._receiver.head(status, headers)

    def piece(self, data: bytes) -> bool:
        self._alive()
        return self._receiver.piece(data)

    def _alive(self) -> None:
        self._pause.reschedule(asyncio.get_running_loop().time() + LONGEST_PAUSE)


@lru_cache(maxsize=256)  # a run sends the same few, thousands of times
def _fields(host: str, headers: tuple[tuple[str, str], ...], sends_json: bool) -> str:
    """What is sent beside the length of the body. `headers` come before our own, whatever the case of their names."""
    own = {"Host": host, "User-Agent": "memorybench", "Accept": "*/*", "Accept-Encoding": ACCEPTED_ENCODING}
    if sends_json:
        own["Content-Type"] = "application/json"
    given = {name: value for name, value in headers if name.lower() not in _OURS_TO_SAY}
    names = {name.lower() for name in given}
    return field_lines({name: value for name, value in own.items() if name.lower() not in names} | given)


def _payload(json: Any) -> bytes:
    """ValueError where it holds NaN."""
    with suppress(ValueError):  # half a surrogate
        payload = to_json(json)  # a quarter of the time
        if b"NaN" not in payload and b"Infinity" not in payload:
            return payload
    return _THOROUGH.encode(json).encode()


def _joined(address: URL, location: str, where: str) -> URL:
    try:
        return address.join(URL(location))
    except ValueError:
        raise Malformed(f"{where}: redirects to what is no URL") from None


def _lost(error: Exception, where: str, seconds: float) -> MemorybenchError:
    """Why there is no reply. Once a request may have left, the work may have been done: `uncertain`."""
    match error:
        case NotConnected(final=True):
            return ServiceError(f"{where}: {error}")
        case NotConnected():
            return Transient(f"{where}: {error}")
        case TimeoutError():
            return Transient(f"{where}: no full reply within {seconds:g} s", uncertain=True)
        case BrokenOff():
            return Transient(f"{where}: the reply breaks off", uncertain=True)
        case NotHttp():
            return Malformed(f"{where}: the reply is no HTTP")
        case Garbled():
            return Malformed(f"{where}: {error}")
        case ValueError():
            return BadInput(where, "a header or the URL holds a character that can not be sent")
        case _:
            return Transient(f"{where}: the connection was lost", uncertain=True)
