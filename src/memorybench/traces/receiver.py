"""A small OTLP/HTTP server that stores the spans it receives in files of OTLP JSON, which other commands read.

It implements the protocol at https://opentelemetry.io/docs/specs/otlp/#otlphttp. Requests with Protocol Buffers need
the extra `otel`; requests with JSON do not.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import logging
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

from aiohttp import web

from memorybench.core.errors import BadInput
from memorybench.files.json_text import decode
from memorybench.files.reading import LONGEST_LINE
from memorybench.text.sanitize import EXCERPT, printable, shorten

from .otlp_spans import remove_invalid
from .span_files import FolderFull, SpanFiles

TRACES_PATH = "/v1/traces"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
JSON, PROTOBUF = "application/json", "application/x-protobuf"
MAX_BODY = 16 * 2**20
"""Maximum size of the body of a request in bytes, as it is sent and after it is decompressed."""
_MAX_WORKING, _MAX_WAITING = 4, 256
"""Maximum number of requests that are decompressed and parsed at the same time (the same limit applies to large bodies
that are being read), and maximum number of requests that have arrived and are not answered yet."""
_SMALL_BODY = 2**20
"""A body of at most this many bytes is read without waiting for requests with large bodies."""
_BODY_SECONDS = 60
_FULL_SECONDS, _BUSY_SECONDS = 60, 1
"""Seconds in the header Retry-After of a refusal: if the folder is full, and if there are too many requests."""
_ENCODINGS = {"": (), "identity": (), "gzip": (31,), "deflate": (15, -15)}
"""Maps a Content-Encoding to the values of zlib's `wbits` that are tried in turn. For deflate, there are two, because
some senders omit the header of the format."""
_IDS = frozenset({"traceId", "spanId", "parentSpanId"})
_INVALID, _UNAUTHENTICATED, _TOO_LARGE, _UNAVAILABLE = 3, 16, 8, 14
"""Codes of google.rpc.Status."""


@dataclass
class Receiver:
    files: SpanFiles
    token: str | None = None
    """The token that senders must send as `Authorization: Bearer …`. None: no token is required, but the Host header of
    a request must be a name of this machine, such as localhost."""
    redact: Callable[[str], str] = str
    batches: int = 0
    spans: int = 0
    refused: int = 0
    """Number of requests that were refused."""
    _waiting: int = 0
    _reading: asyncio.Semaphore = field(default_factory=partial(asyncio.Semaphore, _MAX_WORKING))
    _working: asyncio.Semaphore = field(default_factory=partial(asyncio.Semaphore, _MAX_WORKING))
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def receive(self, request: web.Request) -> web.Response:
        try:
            rejected = await self._receive(request)
        except _Refused as refused:
            self.refused += 1
            return _error(request, refused)
        return _accepted(request, rejected)

    async def _receive(self, request: web.Request) -> list[str]:
        self._check(request)
        if self._waiting >= _MAX_WAITING:
            raise _Refused(
                503,
                _UNAVAILABLE,
                "the receiver has too many requests at once; send this one again later",
                _BUSY_SECONDS,
            )
        self._waiting += 1
        try:
            length = request.content_length  # of the body, which may be compressed
            if length is not None and length <= _SMALL_BODY:
                return await self._store(request, await _read_body(request))
            async with self._reading:  # not `_working`: a slow sender must not hold up small requests
                return await self._store(request, await _read_body(request))
        finally:
            self._waiting -= 1

    def _check(self, request: web.Request) -> None:
        if self.token is not None:
            scheme, _, given = request.headers.get("Authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token.encode()):
                raise _Refused(401, _UNAUTHENTICATED, "the token is missing or wrong")
        elif request.url.host not in LOOPBACK:  # DNS rebinding: a web page whose host name now means this machine
            raise _Refused(403, _UNAUTHENTICATED, "a request to a host name other than localhost needs a token")
        if request.content_type not in (JSON, PROTOBUF):
            raise _Refused(415, _INVALID, f"the content type must be {JSON} or {PROTOBUF}")
        if request.content_type == PROTOBUF and not can_read_protobuf():
            raise _Refused(415, _INVALID, f"{PROTOBUF} needs memorybench[otel] on the receiver; send {JSON}")
        if _encoding(request) not in _ENCODINGS:
            raise _Refused(415, _INVALID, "the content encoding must be gzip or deflate")
        if (request.content_length or 0) > MAX_BODY:
            raise _too_large()

    async def _store(self, request: web.Request, body: bytes) -> list[str]:
        """Store the valid spans of a request; return the problems of the invalid spans, one text each."""
        parse = _from_protobuf if request.content_type == PROTOBUF else _from_json
        encoding = _encoding(request)
        async with self._working:
            line, count, problems = await asyncio.to_thread(
                lambda: _line(parse, _unpacked(body, encoding), self.redact)
            )
        if count:
            async with self._writing:
                try:
                    await asyncio.to_thread(self.files.append, line)
                except FolderFull as full:
                    raise _Refused(503, _UNAVAILABLE, str(full), _FULL_SECONDS) from None
        self.batches += 1
        self.spans += count
        return problems


class _Refused(Exception):
    """A request is refused. Has the HTTP status, the code of google.rpc.Status, and the seconds until a retry."""

    def __init__(self, status: int, code: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.retry_after = status, code, retry_after


def _encoding(request: web.Request) -> str:
    return request.headers.get("Content-Encoding", "").strip().lower()


def _unpacked(body: bytes, encoding: str) -> bytes:
    """Return the decompressed body. Raise _Refused if it is invalid or larger than MAX_BODY."""
    formats = _ENCODINGS[encoding]
    if not formats:
        return body
    for bits in formats:
        unpacking = zlib.decompressobj(bits)
        try:
            content = unpacking.decompress(body, MAX_BODY + 1)
        except zlib.error:
            continue
        if len(content) > MAX_BODY:
            raise _too_large()
        if unpacking.eof and not unpacking.unused_data:
            return content
    raise _Refused(400, _INVALID, "the body is incomplete, or not compressed as the header Content-Encoding says")


async def _read_body(request: web.Request) -> bytes:
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise _too_large() from None
    except TimeoutError:
        raise _Refused(408, _UNAVAILABLE, "the body did not arrive in time") from None
    except (web.RequestPayloadError, web.HTTPBadRequest, OSError):
        raise _Refused(400, _INVALID, "the body is incomplete") from None


class _OneLine(logging.Formatter):
    """Formats an error as one line, because senders of invalid requests must not fill the terminal with tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        return shorten(printable(f"{record.getMessage()}: {error}" if error else record.getMessage()), EXCERPT)


def _one_line_logger() -> logging.Logger:
    logger, handler = logging.Logger("memorybench receiver"), logging.StreamHandler()
    handler.setFormatter(_OneLine())
    logger.addHandler(handler)
    return logger


@asynccontextmanager
async def serve(receiver: Receiver, host: str, port: int) -> AsyncIterator[str]:
    """Start the server and yield its address. When the context ends, wait up to 5 s for requests that have begun."""
    app = web.Application(client_max_size=MAX_BODY)
    app.router.add_post(TRACES_PATH, receiver.receive)
    # bodies are unpacked in a thread, within limits
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=5.0, auto_decompress=False, logger=_one_line_logger())
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise BadInput(
                "--port",
                f"cannot listen on {host} port {port} ({error.strerror or error})",
                remedy="choose another port",
            ) from None
        bound = runner.addresses[0]
        yield f"http://{f'[{host}]' if ':' in host else host}:{bound[1]}"
    finally:
        await runner.cleanup()


def can_read_protobuf() -> bool:
    try:
        return all(map(find_spec, ("google.protobuf", "opentelemetry.proto.collector", "google.rpc")))
    except ModuleNotFoundError:  # a parent of one of them is not installed
        return False


def _line(parse: Callable[[bytes], Any], body: bytes, redact: Callable[[str], str]) -> tuple[bytes, int, list[str]]:
    """Return a batch as one line of OTLP JSON, the number of spans in it, and the problem of each span left out."""
    try:
        batch = parse(body)
        count, problems = remove_invalid(batch, "request")
    except BadInput as error:
        raise _Refused(400, _INVALID, str(error)) from None
    # ASCII only, so that a line that is cut by a kill does not end within a character
    line = redact(json.dumps(batch, separators=(",", ":"))).encode() + b"\n"
    if len(line) > LONGEST_LINE:
        raise _too_large()
    return line, count, problems


def _from_json(body: bytes) -> Any:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise BadInput("request", "the body is not UTF-8") from None
    return decode(text, "request")


def _from_protobuf(body: bytes) -> Any:
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    try:
        return _with_hex_ids(MessageToDict(ExportTraceServiceRequest.FromString(body)))
    except (DecodeError, ValueError):
        raise BadInput("request", "the body is not an ExportTraceServiceRequest") from None


def _with_hex_ids(value: Any) -> Any:
    """Return the batch with hexadecimal ids, as OTLP JSON requires. In JSON from Protocol Buffers, ids are base64."""
    if isinstance(value, dict):
        return {
            key: base64.b64decode(one).hex() if key in _IDS and isinstance(one, str) else _with_hex_ids(one)
            for key, one in value.items()
        }
    return [_with_hex_ids(one) for one in value] if isinstance(value, list) else value


def _too_large() -> _Refused:
    return _Refused(413, _TOO_LARGE, f"the batch is larger than {MAX_BODY // 2**20} MB; send smaller batches")


def _accepted(request: web.Request, problems: list[str]) -> web.Response:
    message = "; ".join(problems[:3])
    if request.content_type != PROTOBUF:
        partial = {"partialSuccess": {"rejectedSpans": str(len(problems)), "errorMessage": message}}
        return web.json_response(partial if problems else {})
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    reply = ExportTraceServiceResponse()
    if problems:
        reply.partial_success.rejected_spans = len(problems)
        reply.partial_success.error_message = message
    return web.Response(body=reply.SerializeToString(), content_type=PROTOBUF)


def _error(request: web.Request, refused: _Refused) -> web.Response:
    headers = {"Retry-After": str(refused.retry_after)} if refused.retry_after is not None else {}
    if refused.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if request.content_type != PROTOBUF or not can_read_protobuf():
        return web.json_response(
            {"code": refused.code, "message": str(refused)}, status=refused.status, headers=headers
        )
    from google.rpc.status_pb2 import Status

    body = Status(code=refused.code, message=str(refused)).SerializeToString()
    return web.Response(body=body, status=refused.status, headers=headers, content_type=PROTOBUF)
