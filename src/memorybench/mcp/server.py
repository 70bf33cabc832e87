"""The server's side of the Model Context Protocol: tools over streamable HTTP, for programs on this machine alone."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from aiohttp import web

from memorybench import __version__
from memorybench.core.errors import MemorybenchError

from .messages import MESSAGE_CAP, NO_SUCH_METHOD, VERSIONS, Message, decode, encode, messages_in

UNREADABLE, NO_REQUEST, BAD_PARAMETERS, BROKEN = -32700, -32600, -32602, -32603
"""Error codes of JSON-RPC 2.0."""


class Tools(Protocol):
    """What a server offers. Tools and results are told as the protocol writes them."""

    async def list_tools(self) -> Sequence[Mapping[str, Any]]: ...

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]: ...


@asynccontextmanager
async def open_mcp_server(tools: Tools, *, message_cap: int = MESSAGE_CAP) -> AsyncIterator[str]:
    """The address of a server on a free port. Part of it is a token: without it nobody is let in."""
    path = f"/{secrets.token_urlsafe(24)}/mcp"
    application = web.Application(client_max_size=message_cap)
    application.router.add_post(path, _Endpoint(tools).post)
    # no stream of our own is offered (GET), and there is no session to end (DELETE): both are answered with 405
    runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        yield f"http://127.0.0.1:{port}{path}"
    finally:
        await runner.cleanup()


class _Endpoint:
    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    async def post(self, request: web.Request) -> web.Response:
        try:
            value = decode(await request.read())
        except ValueError:
            return _json({"jsonrpc": "2.0", "id": None, "error": _error(UNREADABLE, "this is no JSON")}, status=400)
        messages = messages_in(value)
        if not messages:
            return _json({"jsonrpc": "2.0", "id": None, "error": _error(NO_REQUEST, "no message")}, status=400)
        # replies to requests of ours would have no method, but we make none
        asked = [message for message in messages if "id" in message and "method" in message]
        if not asked:
            return web.Response(status=202)
        replies = [await self._reply(message) for message in asked]
        return _json(replies if isinstance(value, list) else replies[0])

    async def _reply(self, message: Message) -> Message:
        reply: Message = {"jsonrpc": "2.0", "id": message["id"]}
        parameters = message.get("params") or {}
        if not isinstance(parameters, dict):
            return {**reply, "error": _error(BAD_PARAMETERS, "params is no object")}
        try:
            return {**reply, **await self._answer(message["method"], parameters)}
        except MemorybenchError as error:
            return {**reply, "error": _error(BROKEN, str(error))}

    async def _answer(self, method: Any, parameters: Mapping[str, Any]) -> Message:
        match method:
            case "initialize":
                return {"result": _introduction(parameters.get("protocolVersion"))}
            case "ping":
                return {"result": {}}
            case "tools/list":
                return {"result": {"tools": list(await self._tools.list_tools())}}
            case "tools/call":
                name, arguments = parameters.get("name"), parameters.get("arguments") or {}
                if not isinstance(name, str) or not isinstance(arguments, dict):
                    return {"error": _error(BAD_PARAMETERS, "a call needs a name and an object of arguments")}
                return {"result": await self._tools.call_tool(name, arguments)}
        return {"error": _error(NO_SUCH_METHOD, "this server offers no such method")}


def _introduction(proposed: Any) -> Message:
    return {
        "protocolVersion": proposed if proposed in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "memory", "version": __version__},
    }


def _error(code: int, message: str) -> Message:
    return {"code": code, "message": message}


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=encode(value), status=status, content_type="application/json")
