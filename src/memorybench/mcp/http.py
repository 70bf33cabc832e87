"""Connect to an MCP server over streamable HTTP.

The SDK speaks the protocol; its requests are sent by our HTTP client, which has the caps, the deadlines, the forbidden
addresses and the redaction of errors.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import httpx2
import mcp_types as types
from mcp import MCPError
from mcp.client.streamable_http import streamable_http_client

from memorybench.core.errors import MemorybenchError
from memorybench.http.addresses import check_url
from memorybench.http.client import Http, open_http
from memorybench.http.replies import describe
from memorybench.secrets.redaction import Redactor

from .client import DEADLINE, MESSAGE_CAP, McpClient, open_client

_FAILURE = "memorybenchFailure"
_CLOSE_TIMEOUT = 5.0
_FORWARDED = frozenset({"content-type", "mcp-session-id"})
_OMITTED = frozenset({"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "user-agent"})
"""Request headers that our HTTP client sets itself."""


@asynccontextmanager
async def open_mcp_http(
    url: str, headers: Mapping[str, str], redactor: Redactor, *, deadline: float = DEADLINE
) -> AsyncIterator[McpClient]:
    """Connect to the server at `url`; `headers` go with every request.

    `deadline` is the number of seconds that a call may take by default.
    """
    where = describe("", check_url(url, insecure=True), redactor).strip()
    async with (
        open_http(redactor, deadline=deadline) as http,
        httpx2.AsyncClient(transport=(sender := _Sender(http)), headers=dict(headers), timeout=None) as http_client,
        open_client(
            streamable_http_client(url, http_client=http_client, max_sse_event_size=MESSAGE_CAP),
            where,
            redactor,
            deadline,
            sender.find_failure,
        ) as client,
    ):
        yield client


class _Sender(httpx2.AsyncBaseTransport):
    """Sends the requests of the SDK by `Http`.

    An exception here would end the whole connection of the SDK. So a failure becomes a JSON-RPC error, which fails one
    call, and `find_failure` returns the exception behind it.
    """

    def __init__(self, http: Http) -> None:
        self._http = http
        self._failures: dict[int, MemorybenchError] = {}
        self._numbers = count()

    async def find_failure(self, error: MCPError) -> MemorybenchError | None:
        number = error.data.get(_FAILURE) if isinstance(error.data, dict) else None
        return self._failures.pop(number, None) if isinstance(number, int) else None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(405)  # the stream of server notifications, which we do not use
        body = json.loads(await request.aread() or b"null")
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _OMITTED}
        deadline = _CLOSE_TIMEOUT if request.method == "DELETE" else None
        try:
            reply = await self._http.request(
                request.method, str(request.url), headers=headers, json=body, deadline=deadline
            )
        except MemorybenchError as error:
            return self._failed(body, error)
        forwarded = {name: value for name, value in reply.headers.items() if name.lower() in _FORWARDED}
        return httpx2.Response(reply.status, headers=forwarded, content=reply.body)

    def _failed(self, body: Any, error: MemorybenchError) -> httpx2.Response:
        if not isinstance(body, dict) or "id" not in body:
            return httpx2.Response(405 if body is None else 202)  # a notification has no reply
        number = next(self._numbers)
        self._failures[number] = error
        problem = {"code": types.INTERNAL_ERROR, "message": "request failed", "data": {_FAILURE: number}}
        return httpx2.Response(200, json={"jsonrpc": "2.0", "id": body["id"], "error": problem})
