"""MCP over streamable HTTP: each message is a POST, answered with JSON or with a stream of events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager

from memorybench.core.errors import MemorybenchError
from memorybench.http.addresses import check_url
from memorybench.http.client import Http, open_http
from memorybench.http.replies import Reply, describe
from memorybench.secrets.redaction import Redactor

from .client import DEADLINE, McpClient
from .messages import Message, Reader, decode, is_reply, messages_in

_ACCEPTED = "application/json, text/event-stream"
_SESSION = "Mcp-Session-Id"
_VERSION = "MCP-Protocol-Version"


@asynccontextmanager
async def open_mcp_http(
    url: str, headers: Mapping[str, str], redactor: Redactor, *, deadline: float = DEADLINE
) -> AsyncIterator[McpClient]:
    """An event stream is read to its end, which the protocol asks servers to make after the reply."""
    async with open_http(redactor, deadline=deadline) as http:
        endpoint = _Endpoint(url, http, headers)
        client = McpClient(endpoint, Reader(describe("", check_url(url, insecure=True), redactor), redactor), deadline)
        try:
            await client.shake_hands()
            yield client
        finally:
            await endpoint.close()


class _Endpoint:
    def __init__(self, url: str, http: Http, headers: Mapping[str, str]) -> None:
        self._url = url
        self._http = http
        self._headers = {**headers, "Accept": _ACCEPTED}

    async def ask(self, message: Message) -> Message:
        reply = await self._post(message)
        if session := reply.headers.get(_SESSION.lower()):
            self._headers[_SESSION] = session
        for found in _messages(reply):
            if is_reply(found) and found["id"] == message["id"]:
                return found
        raise reply.malformed("the reply does not answer the request")

    async def tell(self, message: Message) -> None:
        await self._post(message)

    def agreed(self, version: str) -> None:
        self._headers[_VERSION] = version

    async def close(self) -> None:
        if _SESSION not in self._headers:
            return
        try:
            await self._http.request("DELETE", self._url, headers=self._headers, deadline=5.0)
        except MemorybenchError:
            return  # a server may refuse to end sessions, and then ends them itself

    async def _post(self, message: Message) -> Reply:
        return await self._http.request("POST", self._url, headers=self._headers, json=message)


def _messages(reply: Reply) -> Iterator[Message]:
    if reply.headers.get("content-type", "").partition(";")[0].strip().lower() != "text/event-stream":
        yield from messages_in(reply.json())
        return
    for event in _events(reply.body.decode("utf-8", "replace")):
        try:
            yield from messages_in(decode(event))
        except ValueError:
            raise reply.malformed("an event of the reply is no JSON") from None


def _events(stream: str) -> Iterator[str]:
    """The data of each server-sent event; comments, ids and names of events are passed over."""
    data: list[str] = []
    for line in [*stream.replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""]:
        if not line and data:
            yield "\n".join(data)
            data = []
        elif line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
