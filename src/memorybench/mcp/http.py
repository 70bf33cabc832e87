"""Connect to an MCP server over streamable HTTP.

The SDK implements the protocol. memorybench's HTTP client sends the requests, because it limits sizes and times,
rejects forbidden addresses and redacts errors.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from typing import Any

import httpx2
import mcp_types as types
from mcp import MCPError
from mcp.client.streamable_http import streamable_http_client

from memorybench.core.errors import MemorybenchError
from memorybench.http.addresses import check_url
from memorybench.http.client import Http, open_http
from memorybench.http.replies import EventStream, Reply, describe
from memorybench.secrets.redaction import Redactor

from .client import DEADLINE, MESSAGE_CAP, ClientRole, McpClient, open_client

_FAILURE = "memorybenchFailure"
_CLOSE_TIMEOUT = 5.0
_FORWARDED = frozenset({"content-type", "mcp-session-id"})
_OMITTED = frozenset({"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "user-agent"})
"""Request headers of the SDK that are left out, because memorybench's HTTP client sets them."""


@asynccontextmanager
async def open_mcp_http(
    url: str,
    headers: Mapping[str, str],
    redactor: Redactor,
    *,
    deadline: float = DEADLINE,
    role: ClientRole | None = None,
) -> AsyncIterator[McpClient]:
    """Connect to the server at `url`; `headers` are sent with every request.

    `deadline` is the default timeout of a call in seconds. A client with a `role` also receives messages that the
    server sends before the result of a call, and between calls.
    """
    where = describe("", check_url(url, insecure=True), redactor).strip()
    async with (
        open_http(redactor, deadline=deadline) as http,
        httpx2.AsyncClient(
            transport=(sender := _Sender(http, streams=role is not None)), headers=dict(headers), timeout=None
        ) as http_client,
        open_client(
            streamable_http_client(url, http_client=http_client, max_sse_event_size=MESSAGE_CAP),
            where,
            redactor,
            deadline,
            sender.find_failure,
            role,
        ) as client,
    ):
        yield client


class _Sender(httpx2.AsyncBaseTransport):
    """Sends the requests of the SDK with memorybench's `Http` client.

    An exception here would end the whole connection of the SDK. So a failure is returned as a JSON-RPC error, which
    fails only one call; `find_failure` returns the original exception.
    """

    def __init__(self, http: Http, *, streams: bool) -> None:
        self._http = http
        self._streams = streams
        self._failures: dict[int, MemorybenchError] = {}
        self._numbers = count()

    async def find_failure(self, error: MCPError) -> MemorybenchError | None:
        number = error.data.get(_FAILURE) if isinstance(error.data, dict) else None
        return self._failures.pop(number, None) if isinstance(number, int) else None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET" and not self._streams:
            return httpx2.Response(405)  # the stream of server notifications
        body = json.loads(await request.aread() or b"null")
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _OMITTED}
        try:
            if self._streams and request.method != "DELETE":
                return await self._open_events(request, headers, body)
            deadline = _CLOSE_TIMEOUT if request.method == "DELETE" else None
            reply = await self._http.request(
                request.method, str(request.url), headers=headers, json=body, deadline=deadline
            )
        except MemorybenchError as error:
            return self._failed(body, error)
        return _response(reply, content=reply.body)

    async def _open_events(self, request: httpx2.Request, headers: Mapping[str, str], body: Any) -> httpx2.Response:
        async with AsyncExitStack() as stack:
            exchange = self._http.open_events(request.method, str(request.url), headers=headers, json=body)
            reply = await stack.enter_async_context(exchange)
            if isinstance(reply, Reply):
                return _response(reply, content=reply.body)
            return _response(reply, stream=_Pieces(reply, stack.pop_all()))

    def _failed(self, body: Any, error: MemorybenchError) -> httpx2.Response:
        if not isinstance(body, dict) or "id" not in body:
            return httpx2.Response(405 if body is None else 202)  # a notification has no reply
        number = next(self._numbers)
        self._failures[number] = error
        problem = {"code": types.INTERNAL_ERROR, "message": "request failed", "data": {_FAILURE: number}}
        return httpx2.Response(200, json={"jsonrpc": "2.0", "id": body["id"], "error": problem})


class _Pieces(httpx2.AsyncByteStream):
    """The response body of an event stream. Closing it closes `stack` and so the connection."""

    def __init__(self, events: EventStream, stack: AsyncExitStack) -> None:
        self._events = events
        self._stack = stack

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._events.pieces:
                yield piece
        except MemorybenchError as error:
            raise httpx2.ReadError(str(error)) from None

    async def aclose(self) -> None:
        await self._stack.aclose()


def _response(reply: Reply | EventStream, **content: Any) -> httpx2.Response:
    headers = {name: value for name, value in reply.headers.items() if name.lower() in _FORWARDED}
    return httpx2.Response(reply.status, headers=headers, **content)
