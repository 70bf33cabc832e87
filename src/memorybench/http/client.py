"""HTTP requests with size limits, deadlines and redaction, based on aiohttp.

A request is sent once and not retried here. The engine decides about retries, because only it knows what they cost.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from json import JSONEncoder
from typing import Any

import aiohttp
from pydantic_core import to_json
from yarl import URL

from memorybench.core.errors import BadInput, Malformed, MemorybenchError, ServiceError, Transient
from memorybench.secrets.redaction import Redactor

from .addresses import check_url
from .config import HEADER_LINE
from .replies import EventStream, Reply, describe
from .routes import ConnectionPool, Progress, Routes, current_progress
from .tls import TlsFiles, failure_reason, remedy, tls_context

BODY_CAP = 32 * 2**20
ERROR_BODY_CAP = 16 * 2**10
"""Maximum number of bytes to read of the body of an error, which is only quoted."""
DEADLINE = 120.0
CONNECT_TIMEOUT = 10.0
LONGEST_PAUSE = 60.0
"""Maximum number of seconds between two chunks of a download; after that, the connection counts as lost."""
MAX_REDIRECTS = 3
REDIRECTS = frozenset({301, 302, 303, 307, 308})
MAX_UNBUFFERED = 2**20
"""Larger bodies, in bytes, are sent as file-like objects: aiohttp warns about large bodies of type bytes."""

Signer = Callable[[str, str, Mapping[str, str], bytes], Mapping[str, str]]
"""Takes the method, the URL, the headers and the body of a request; returns headers to add."""
_FRAMING_HEADERS = frozenset({"connection", "content-length", "transfer-encoding"})
_SLOW_ENCODER = JSONEncoder(separators=(",", ":"), allow_nan=False)


@asynccontextmanager
async def open_http(
    redactor: Redactor,
    *,
    insecure: bool = False,
    deadline: float = DEADLINE,
    tls: TlsFiles | None = None,
) -> AsyncIterator[Http]:
    """Open a pool of connections. `redactor` must know every secret that the requests contain.

    `insecure` allows plain http to other machines.
    """
    routes = Routes()
    session = aiohttp.ClientSession(
        connector=ConnectionPool(routes),
        headers={"User-Agent": "memorybench"},
        timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT),
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    # aiohttp repeats GET, PUT and DELETE when a pooled connection breaks, and has no public option against it
    session._retry_connection = False
    async with session:
        yield Http(session, routes, redactor, insecure, deadline, tls or TlsFiles())


@dataclass(slots=True, repr=False, eq=False)
class Http:
    """A pool of connections, opened by `open_http`."""

    _session: aiohttp.ClientSession
    _routes: Routes
    _redactor: Redactor
    _insecure: bool
    _deadline: float
    _tls: TlsFiles

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        json: Any = None,
        deadline: float | None = None,
        sign: Signer | None = None,
    ) -> Reply:
        """Send a request and return its reply if the status is 2xx; otherwise raise the ServiceError for the status.

        `deadline`, in seconds, covers everything from the connection to the last byte, redirects included; None: that
        of `open_http`. Redirects are followed for GET and HEAD on the same server only, so that headers are not sent to
        another one. `sign` gets the method, the URL, the headers and the body, and returns headers to add.
        """
        address = check_url(url, self._insecure)
        if params:
            address = address.update_query(params)
        body = b"" if json is None else encode_json(json)
        seconds = deadline or self._deadline
        time = asyncio.get_running_loop().time
        end = time() + seconds
        for _ in range(MAX_REDIRECTS + 1):
            limits = aiohttp.ClientTimeout(total=max(end - time(), 1e-6), connect=CONNECT_TIMEOUT)
            sent = headers or {}
            if sign is not None:
                sent = {**sent, **sign(method, str(address), sent, body)}
            async with self._exchange(method, address, sent, body, limits, seconds) as response:
                if response.status not in REDIRECTS:
                    return await self._read(method, address, response)
            where = describe(method, address, self._redactor)
            target = _join(address, response, where)
            if target.origin() != address.origin():
                shown = describe("", target, self._redactor)
                raise ServiceError(
                    f"{where}: the service redirects to another server:{shown}; if you trust that, use its URL",
                    status=response.status,
                )
            if method not in ("GET", "HEAD"):
                raise ServiceError(
                    f"{where}: the service redirects a {method} request, which is not followed; use the final URL",
                    status=response.status,
                )
            address = target
        raise ServiceError(f"{where}: more than {MAX_REDIRECTS} redirects", status=response.status)

    @asynccontextmanager
    async def stream(self, url: str, headers: Mapping[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a GET request for a download, and yield the response, whatever its status. The caller reads its body.

        There is no total deadline, but a limit on the pause between two chunks. Redirects to other servers are
        followed, so `headers` must not contain secrets. A redirect from https to http is an error.
        """
        address = check_url(url, self._insecure)
        limits = aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT, sock_read=LONGEST_PAUSE)
        for _ in range(MAX_REDIRECTS + 1):
            async with self._exchange("GET", address, headers, b"", limits, LONGEST_PAUSE) as response:
                if response.status not in REDIRECTS:
                    yield response
                    return
            where = describe("GET", address, self._redactor)
            target = _join(address, response, where)
            if address.scheme == "https" and target.scheme != "https":
                raise ServiceError(
                    f"{where}: the service redirects from https to {target.scheme}, which is not followed"
                )
            address = check_url(str(target), self._insecure)
        raise ServiceError(f"{where}: more than {MAX_REDIRECTS} redirects", status=response.status)

    @asynccontextmanager
    async def open_events(
        self, method: str, url: str, *, headers: Mapping[str, str], json: Any = None
    ) -> AsyncIterator[Reply | EventStream]:
        """Send a request; yield its complete reply or, if the reply is an event stream, the stream of its body.

        Only connecting has a deadline: the caller decides when to stop reading. A status other than 2xx raises the
        ServiceError for it. Redirects are not followed.
        """
        address = check_url(url, self._insecure)
        body = b"" if json is None else encode_json(json)
        limits = aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT)
        async with self._exchange(method, address, headers, body, limits, 0) as response:
            if response.status == 200 and response.content_type == "text/event-stream":
                where = describe(method, address, self._redactor)
                yield EventStream(response.status, response.headers, _read_pieces(response, where))
            else:
                yield await self._read(method, address, response)

    def describe(self, url: str) -> str:
        """Return the method and the URL of a download for error messages, without secrets."""
        return describe("GET", check_url(url, self._insecure), self._redactor)

    @asynccontextmanager
    async def _exchange(
        self,
        method: str,
        address: URL,
        headers: Mapping[str, str],
        body: bytes,
        limits: aiohttp.ClientTimeout,
        seconds: float,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and yield its response. Errors of aiohttp are replaced by errors of memorybench."""
        progress = Progress()
        current_progress.set(progress)
        response = None
        try:
            if self._session.closed:
                raise aiohttp.ClientConnectionError
            try:
                response = await self._session.request(
                    method,
                    address,
                    headers=_prepare_headers(tuple(headers.items()), bool(body)),
                    data=(body if len(body) <= MAX_UNBUFFERED else io.BytesIO(body)) if body else None,
                    timeout=limits,
                    allow_redirects=False,
                    proxy=self._routes.find_proxy(address),
                    ssl=tls_context(self._tls) if address.scheme == "https" else True,
                )
            except ValueError as error:
                if isinstance(error, aiohttp.ClientError):
                    raise
                where = describe(method, address, self._redactor)
                raise BadInput(
                    where, "a header or the URL contains an invalid character", remedy="check the key for line breaks"
                ) from None
            yield response
        except (aiohttp.ClientError, TimeoutError) as error:
            # `from None`: aiohttp's errors contain the headers of the request
            where = describe(method, address, self._redactor)
            raise _translate(error, where, seconds, progress.is_connected) from None
        finally:
            if response is not None:
                response.close()  # a response that was read to its end has returned its connection to the pool

    async def _read(self, method: str, address: URL, response: aiohttp.ClientResponse) -> Reply:
        succeeded = 200 <= response.status < 300
        cap = BODY_CAP if succeeded else ERROR_BODY_CAP
        body = bytearray()
        try:
            while len(body) <= cap and (piece := await response.content.readany()):
                body += piece
        except (aiohttp.ClientError, TimeoutError):
            if succeeded:
                raise
        reply = Reply(response.status, response.headers, bytes(body[:cap]), method, address, self._redactor)
        if not succeeded:
            raise reply.failure(reply.status)
        if len(body) > cap:
            raise Malformed(f"{reply.where}: the reply is larger than {cap:,} bytes", status=reply.status)
        return reply


async def _read_pieces(response: aiohttp.ClientResponse, where: str) -> AsyncIterator[bytes]:
    try:
        async for piece in response.content.iter_any():
            yield piece
    except (aiohttp.ClientError, TimeoutError) as error:
        raise _translate(error, where, 0, True) from None


@lru_cache(maxsize=256)  # a run sends the same few headers thousands of times
def _prepare_headers(headers: tuple[tuple[str, str], ...], has_json: bool) -> Mapping[str, str]:
    """Return the headers to send; raise ValueError if one is invalid, such as one that contains a line break."""
    for name, value in headers:
        line = f"{name}: {value}"
        line.encode()  # fails on half a surrogate pair
        if not HEADER_LINE.fullmatch(line):
            raise ValueError("invalid header")
    prepared = {name: value for name, value in headers if name.lower() not in _FRAMING_HEADERS}
    if has_json and not any(name.lower() == "content-type" for name in prepared):
        prepared["Content-Type"] = "application/json"
    return prepared


def encode_json(json: Any) -> bytes:
    """Encode a value as JSON; raise ValueError if it contains NaN or an infinity."""
    with suppress(ValueError):  # half a surrogate pair
        encoded = to_json(json)  # takes a quarter of the time
        if b"NaN" not in encoded and b"Infinity" not in encoded:
            return encoded
    return _SLOW_ENCODER.encode(json).encode()


def _join(address: URL, response: aiohttp.ClientResponse, where: str) -> URL:
    try:
        target = address.join(URL(response.headers.get("Location", "")))
        target.origin()  # raises ValueError if the URL has no host, such as mailto:
        return target
    except ValueError:
        raise Malformed(f"{where}: the service redirects to an invalid URL", status=response.status) from None


def _translate(error: Exception, where: str, seconds: float, is_connected: bool) -> MemorybenchError:
    """Return the error for a request that got no valid reply.

    Its `uncertain` is True if the server may have received the request.
    """
    if (reason := failure_reason(error)) and is_connected:
        return Transient(f"{where}: connection lost: {reason}", uncertain=True)
    if reason:
        text = "; ".join(part for part in (f"no secure connection: {reason}", remedy(reason)) if part)
        return ServiceError(f"{where}: {text}", reason=reason)
    match error:
        case aiohttp.ClientHttpProxyError(status=status):
            text = f"{where}: the proxy refused the connection: HTTP {status}; check HTTPS_PROXY"
            return Transient(text) if status >= 500 else ServiceError(text)
        case aiohttp.ClientProxyConnectionError():
            return Transient(
                f"{where}: cannot connect to the proxy; check HTTPS_PROXY and HTTP_PROXY", unreachable=True
            )
        case aiohttp.ClientConnectorDNSError():
            return Transient(f"{where}: host name not found", unreachable=True)
        case aiohttp.ClientConnectorError():
            problem = error.os_error.strerror or "connection closed"
            return Transient(f"{where}: cannot connect: {problem}", unreachable=True)
        case TimeoutError() if not is_connected:
            return Transient(f"{where}: connection timed out", unreachable=True)
        case TimeoutError():
            return Transient(f"{where}: timed out; no complete reply within {seconds:g} s", uncertain=True)
        case aiohttp.ClientResponseError():
            return Malformed(f"{where}: invalid HTTP response")
        case aiohttp.ClientPayloadError():
            return Transient(f"{where}: the connection ended before the reply was complete", uncertain=True)
        case _:
            return Transient(f"{where}: connection lost", uncertain=is_connected)
