"""An MCP server that forwards everything to another server, in both directions.

The agent talks to the `ForwardingServer`, which talks to the real server as the agent would: with the agent's name and
abilities. Each side negotiates its own protocol revision; the SDK translates between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, get_args

import mcp_types as types
from mcp import MCPError
from mcp.client.session import ClientRequestContext
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import HandlerEntry
from mcp.server.subscriptions import ListenHandler
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ConfigDict

from memorybench.core.errors import MemorybenchError

from .agent_side import AgentSide, Context
from .client import ClientRole, McpClient

MAX_INPUT_ROUNDS = 10
"""The most times that a server may ask for input during one request; then the request fails."""

Connect = Callable[[ClientRole], AbstractAsyncContextManager[McpClient]]
"""Connects to the real server."""
Send = Callable[[], Awaitable[dict[str, Any]]]
Observe = Callable[[str, Mapping[str, Any], Send], Awaitable[dict[str, Any]]]
"""Called for each request of the agent, with its method, its params and a function that sends it; returns the
result."""

_ENVELOPE = frozenset(
    {
        "progressToken",
        types.PROTOCOL_VERSION_META_KEY,
        types.CLIENT_INFO_META_KEY,
        types.CLIENT_CAPABILITIES_META_KEY,
    }
)
"""Keys of `_meta` that are valid for one connection only. They are not forwarded; the SDK adds new ones."""
_ANSWERED_HERE = frozenset({"initialize", "server/discover", "subscriptions/listen"})


class _AnyParams(BaseModel):
    model_config = ConfigDict(extra="allow")


async def send_directly(_method: str, _params: Mapping[str, Any], send: Send) -> dict[str, Any]:
    return await send()


@asynccontextmanager
async def open_forwarding(
    connect: Connect, observe: Observe = send_directly, *, same_revision: bool = False
) -> AsyncIterator[ForwardingServer]:
    """Yield a server that connects to the real server at the agent's first request, and disconnects at the end.

    With `same_revision`, it connects with a handshake if the agent did, so that no message must be translated.
    """
    server = ForwardingServer(connect, observe, same_revision=same_revision)
    try:
        yield server
    finally:
        await server.disconnect()


class ForwardingServer(Server[Any]):
    """A server that forwards requests and notifications to the real server. Opened by `open_forwarding`."""

    def __init__(self, connect: Connect, observe: Observe, *, same_revision: bool) -> None:
        self._agent = AgentSide()
        self._listen = ListenHandler(self._agent.bus)
        super().__init__(
            "memory",
            on_subscriptions_listen=self._serve_subscription,
            # an older server says nothing about caching, but the newest revision requires it
            cache_hints=dict.fromkeys(get_args(CacheableMethod), CacheHint(ttl_ms=0, scope="private")),
            # the real server checks the headers of its tools itself
            get_tool_input_schema=lambda _name: None,
        )
        self.middleware.append(self._connect_first)
        self.failure: MemorybenchError | None = None
        """Why the real server could not be reached; None if it could, or there was no request yet."""
        self._connect = connect
        self._observe = observe
        self._same_revision = same_revision
        self._client: asyncio.Future[McpClient] | None = None
        self._holder: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._capabilities = types.ServerCapabilities()
        self._subscriptions: dict[str, asyncio.Task[None]] = {}
        """The tasks that listen to notifications of a real server without handshake, by name."""
        self._log_level = "debug"

    async def _connect_first(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Middleware: connect to the real server before a request is handled, because the answer may depend on it."""
        if ctx.request_id is not None:
            await self._connected(ctx)
        result = await call_next(ctx)
        if ctx.method == "initialize":
            self._agent.sessions.append(ctx.session)
        return result

    def get_request_handler(self, method: str) -> HandlerEntry[Any] | None:
        own = super().get_request_handler(method)
        return own if method in _ANSWERED_HERE else HandlerEntry(_AnyParams, self._forward)

    def get_notification_handler(self, method: str) -> HandlerEntry[Any] | None:
        return HandlerEntry(_AnyParams, self._forward_notification)

    def get_capabilities(self, *_: Any, **__: Any) -> types.ServerCapabilities:
        return self._capabilities

    async def _forward(self, context: Context, _params: Any) -> dict[str, Any]:
        client = await self._connected(context)
        params = _without_envelope(context.params)
        has_handshake = context.protocol_version not in MODERN_PROTOCOL_VERSIONS
        if client.is_modern and has_handshake:
            if (result := await self._translate(client, context.method, params)) is not None:
                return result
            # a server without handshake sends log messages only for requests that ask for them
            params.setdefault("_meta", {}).setdefault(types.LOG_LEVEL_META_KEY, self._log_level)
        token = (context.meta or {}).get("progress_token")
        on_progress = context.session.report_progress if token is not None else None

        async def send() -> dict[str, Any]:
            result = await client.forward(context.method, params or None, on_progress)
            if not has_handshake:
                return {"resultType": "complete", **result}
            return await _answer_input_requests(client, context.method, params, result)

        with self._agent.request(context):
            return await self._observe(context.method, params, send)

    async def _translate(self, client: McpClient, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a request that only servers with a handshake support; None for other requests."""
        match method:
            case "ping":
                pass
            case "logging/setLevel":
                if self._capabilities.logging is None:
                    raise MCPError(types.METHOD_NOT_FOUND, "Method not found", method)
                self._log_level = str(params.get("level"))
            case "resources/subscribe":
                await self._subscribe(client, str(params.get("uri")))
            case "resources/unsubscribe":
                if (task := self._subscriptions.pop(str(params.get("uri")), None)) is not None:
                    task.cancel()
            case _:
                return None
        return {}

    async def _forward_notification(self, context: Context, _params: Any) -> None:
        # the SDK itself passes on cancellation and progress, whose ids differ on both sides
        if context.method not in ("notifications/initialized", "notifications/cancelled", "notifications/progress"):
            client = await self._connected(context)
            if not client.is_modern:
                await client.notify(context.method, context.params)

    async def _serve_subscription(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        client = await self._connected(context)
        for uri in params.notifications.resource_subscriptions or ():
            await self._subscribe(client, uri)
        return await self._listen(context, params)

    async def _subscribe(self, client: McpClient, uri: str) -> None:
        if not client.is_modern:
            await client.forward("resources/subscribe", {"uri": uri})
        elif uri not in self._subscriptions:
            await self._start_listening(client, uri, resource_subscriptions=[uri])

    async def _start_listening(self, client: McpClient, name: str, **wanted: Any) -> None:
        """Subscribe to notifications of a server without handshake. They arrive at the message handler."""
        started = asyncio.Event()

        async def listen() -> None:
            with suppress(MCPError, TimeoutError):
                async with client.sdk_client.listen(**wanted) as events:
                    started.set()
                    async for _ in events:
                        pass

        task = self._subscriptions[name] = asyncio.create_task(listen())
        waiting = asyncio.create_task(started.wait())
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()

    async def _connected(self, context: Context) -> McpClient:
        """Return the client of the real server. The first call connects, with the name and abilities of its caller."""
        if self._client is None:
            self._client = asyncio.get_running_loop().create_future()
            role = self._agent.role_of(context)
            if self._same_revision and context.method == "initialize":
                role["mode"] = "legacy"
            self._holder = asyncio.create_task(self._hold_connection(self._client, role))
        try:
            return await asyncio.shield(self._client)
        except MemorybenchError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from None

    async def _hold_connection(self, connected: asyncio.Future[McpClient], role: ClientRole) -> None:
        try:
            async with self._connect(role) as client:
                await self._adopt(client)
                connected.set_result(client)
                await self._closing.wait()
                for task in self._subscriptions.values():
                    task.cancel()
                await asyncio.gather(*self._subscriptions.values(), return_exceptions=True)
        except MemorybenchError as error:
            self.failure = error
            if not connected.done():
                connected.set_exception(error)
                connected.exception()  # the agent may have gone

    async def disconnect(self) -> None:
        self._closing.set()
        self._listen.close()
        if self._holder is not None:
            if self._client is not None and not self._client.done():
                self._holder.cancel()
            await asyncio.gather(self._holder, return_exceptions=True)

    async def _adopt(self, client: McpClient) -> None:
        """Copy name, capabilities and instructions of the real server, which the agent then sees."""
        session = client.sdk_client.session
        self._capabilities = session.server_capabilities or self._capabilities
        self.instructions = session.instructions
        if (info := session.server_info) is not None:
            self.name, self.version, self.title = info.name, info.version, info.title
            self.description, self.website_url, self.icons = info.description, info.website_url, info.icons
        able = self._capabilities
        kinds = {"tools": able.tools, "prompts": able.prompts, "resources": able.resources}
        wanted = {f"{name}_list_changed": True for name, one in kinds.items() if one and one.list_changed}
        if wanted and client.is_modern:
            await self._start_listening(client, "", **wanted)


async def _answer_input_requests(
    client: McpClient, method: str, params: Mapping[str, Any], result: dict[str, Any]
) -> dict[str, Any]:
    """Return the final result of a request. While a result asks for input, ask the agent and send its answers.

    Needed for agents whose protocol revision has no results that ask for input.
    """
    for _ in range(MAX_INPUT_ROUNDS):
        if result.get("resultType") != "input_required":
            return result
        asked = types.InputRequiredResult.model_validate(result, by_name=False)
        session, answers = client.sdk_client.session, {}
        for key, request in (asked.input_requests or {}).items():
            context = ClientRequestContext(session=session, request_id=key)
            answer = await session.dispatch_input_request(context, request)
            if isinstance(answer, types.ErrorData):
                raise MCPError.from_error_data(answer)
            answers[key] = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        more = {"inputResponses": answers, "requestState": asked.request_state}
        result = await client.forward(method, {**params, **{key: value for key, value in more.items() if value}})
    raise MCPError(types.INTERNAL_ERROR, f"{method}: the server asked for input {MAX_INPUT_ROUNDS} times")


def _without_envelope(params: Mapping[str, Any] | None) -> dict[str, Any]:
    kept = dict(params or {})
    meta = {key: value for key, value in kept.pop("_meta", {}).items() if key not in _ENVELOPE}
    return {**kept, "_meta": meta} if meta else kept
