"""Guarded HTTP: every body has a cap, every request a deadline, every message passes the redactor.

It asks once. Whether and when to ask again is decided by the engine, which alone knows what a repeat costs.
"""

from __future__ import annotations

import asyncio
import io
import json as json_text
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from yarl import URL

from memorybench.vocabulary.errors import BadInput, Malformed, MemorybenchError, ServiceError, Transient

from .addresses import check_url
from .bodies import ACCEPTED_ENCODING, Garbled, read_body
from .redaction import Redactor
from .replies import Reply, describe
from .resolver import GuardedResolver

BODY_CAP = 32 * 2**20
ERROR_BODY_CAP = 16 * 2**10
"""An error's body is only quoted; more of it is not read."""
DEADLINE = 120.0
CONNECT_TIMEOUT = 10.0
LONGEST_PAUSE = 60.0
"""Seconds without a byte after which a download counts as broken off."""
REDIRECTS = frozenset({301, 302, 303, 307, 308})
MOST_REDIRECTS = 3
SENT_AT_ONCE = 2**20
"""aiohttp warns of larger bodies as bytes, and sends a file-like one piece by piece."""


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
    # No limit on connections: how many calls are in flight is the engine's business.
    connector = aiohttp.TCPConnector(limit=0, resolver=GuardedResolver())
    session = aiohttp.ClientSession(
        connector=connector,
        headers={"User-Agent": "memorybench", "Accept-Encoding": ACCEPTED_ENCODING},
        timeout=aiohttp.ClientTimeout(total=None, connect=connect_timeout),  # the total is kept by `request`
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,  # not every version of aiohttp unpacks piece by piece
    )
    # By itself, aiohttp sends a PUT, GET or DELETE again where a used connection breaks. There is no option against it.
    session._retry_connection = False
    async with session:
        yield Http(session, redactor, insecure, deadline, body_cap)


class Http:
    """Opened by `open_http`."""

    def __init__(
        self, session: aiohttp.ClientSession, redactor: Redactor, insecure: bool, deadline: float, body_cap: int
    ) -> None:
        self._session = session
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
        sent, payload = headers or {}, None
        if json is not None:
            sent = {"Content-Type": "application/json", **sent}
            payload = _payload(json)
        seconds = deadline or self._deadline
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange(method, target, sent, payload)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            # `from None`: what aiohttp knows of a request includes its headers.
            raise _lost(error, describe(method, address, self._redactor), seconds) from None

    @asynccontextmanager
    async def stream(self, url: str, headers: Mapping[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        """The reply to a GET, whatever its status, for the caller to read as it comes: for downloads.

        It has no deadline as a whole, but may not pause for long. Redirects lead to other hosts, too, as those of file
        stores do, at most MOST_REDIRECTS of them and from https only to https: `headers` must hold nothing secret.
        """
        address = check_url(url, self._insecure)
        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT, sock_read=LONGEST_PAUSE)
        try:
            for _ in range(MOST_REDIRECTS + 1):
                async with self._session.get(
                    address, headers=headers, timeout=timeout, allow_redirects=False
                ) as response:
                    if response.status not in REDIRECTS:
                        yield response
                        return
                    address = self._handed_on(address, response.headers.get("Location", ""))
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise _lost(error, describe("GET", address, self._redactor), LONGEST_PAUSE) from None
        raise ServiceError(f"{describe('GET', address, self._redactor)}: redirected more than {MOST_REDIRECTS} times")

    def named(self, url: str) -> str:
        """What messages call a download from there."""
        return describe("GET", check_url(url, self._insecure), self._redactor)

    def _handed_on(self, address: URL, location: str) -> URL:
        where = describe("GET", address, self._redactor)
        try:
            target = address.join(URL(location))
        except ValueError:
            raise Malformed(f"{where}: redirects to what is no URL") from None
        if address.scheme == "https" and target.scheme != "https":
            raise ServiceError(f"{where}: redirects from https to {target.scheme}, which is not followed")
        return check_url(str(target), self._insecure)

    async def _exchange(self, method: str, address: URL, headers: Mapping[str, str], payload: Any) -> Reply:
        for _ in range(MOST_REDIRECTS + 1):
            async with self._session.request(
                method, address, headers=headers, data=payload, allow_redirects=False
            ) as response:
                if response.status not in REDIRECTS:
                    return await self._reply(method, address, response)
                address = self._redirected(method, address, response.headers.get("Location", ""))
        raise ServiceError(f"{describe(method, address, self._redactor)}: redirected more than {MOST_REDIRECTS} times")

    async def _reply(self, method: str, address: URL, response: aiohttp.ClientResponse) -> Reply:
        succeeded = 200 <= response.status < 300
        try:
            body = await read_body(response, self._body_cap if succeeded else ERROR_BODY_CAP)
        except Garbled as garbled:
            raise Malformed(f"{describe(method, address, self._redactor)}: {garbled}") from None
        reply = Reply(response.status, response.headers, body, method, address, self._redactor)
        if not succeeded:
            raise reply.failure(reply.status)
        if len(body) > self._body_cap:
            raise Malformed(f"{reply.where}: the reply is larger than {self._body_cap:,} bytes and was cut off")
        return reply

    def _redirected(self, method: str, address: URL, location: str) -> URL:
        """Where to ask next: the same server, by the same method, or nowhere. So no header goes astray."""
        where = describe(method, address, self._redactor)
        try:
            target = address.join(URL(location))
        except ValueError:
            raise Malformed(f"{where}: redirects to what is no URL") from None
        if target.origin() != address.origin():
            raise ServiceError(f"{where}: redirects to {describe('', target, self._redactor)}, which is not followed")
        if method not in ("GET", "HEAD"):
            raise ServiceError(f"{where}: redirects a {method}, which is not followed")
        return target


def _payload(json: Any) -> bytes | io.BytesIO:
    payload = json_text.dumps(json, separators=(",", ":"), allow_nan=False).encode()
    return payload if len(payload) <= SENT_AT_ONCE else io.BytesIO(payload)


def _lost(error: Exception, where: str, seconds: float) -> MemorybenchError:
    """Why there is no reply. Once a request may have left, the work may have been done: `uncertain`."""
    match error:
        case aiohttp.ConnectionTimeoutError():
            return Transient(f"{where}: no connection in time")
        case aiohttp.ClientConnectorCertificateError():
            return ServiceError(f"{where}: the certificate is not accepted")
        case aiohttp.ClientConnectorSSLError():
            return ServiceError(f"{where}: no secure connection; is it a plain http server?")
        case aiohttp.ClientConnectorDNSError():
            return Transient(f"{where}: the name of the host is not known")
        case aiohttp.ClientConnectorError():
            return Transient(f"{where}: not reached: {error.os_error.strerror or 'no route'}")
        case TimeoutError():
            return Transient(f"{where}: no full reply within {seconds:g} s", uncertain=True)
        case aiohttp.ClientPayloadError():
            return Transient(f"{where}: the reply breaks off", uncertain=True)
        case aiohttp.ClientResponseError():
            return Malformed(f"{where}: the reply is no HTTP")
        case ValueError():
            return BadInput(where, "a header or the URL holds a character that can not be sent")
        case _:
            return Transient(f"{where}: the connection was lost", uncertain=True)
