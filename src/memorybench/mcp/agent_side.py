"""Sends the requests and notifications of the real server to the agent that uses a `ForwardingServer`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import mcp_types as types
from mcp import MCPError
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.subscriptions import event_from_wire
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from .client import ClientRole

Context = ServerRequestContext[Any, Any]
ResultT = TypeVar("ResultT", bound=types.Result)


class AgentSide:
    def __init__(self) -> None:
        self.sessions: list[ServerSession] = []
        """Connections with a handshake, which accept notifications at any time."""
        self.in_flight: list[Context] = []
        """Requests of the agent that have no result yet, oldest first."""
        self.bus = InMemorySubscriptionBus()
        """Passes on notifications of changes to agents that connected without a handshake and subscribed to them."""

    @contextmanager
    def request(self, context: Context) -> Iterator[None]:
        """Add a request of the agent to `in_flight` while the `with` block runs."""
        self.in_flight.append(context)
        try:
            yield
        finally:
            self.in_flight[:] = [other for other in self.in_flight if other is not context]

    def role_of(self, context: Context) -> ClientRole:
        """Return a client role with the agent's name and abilities; its callbacks send the requests to the agent."""
        params = context.session.client_params
        if context.method == "initialize":
            with suppress(ValidationError):  # the SDK answers with the error
                params = types.InitializeRequestParams.model_validate(context.params or {}, by_name=False)
        able = params.capabilities if params else context.session.client_capabilities
        role: ClientRole = {"message_handler": self._pass_notification}
        if params is not None:
            role["client_info"] = params.client_info
        if able is not None and able.sampling is not None:
            role["sampling_callback"] = self._ask_for_message
            role["sampling_capabilities"] = able.sampling
        if able is not None and able.elicitation is not None:
            role["elicitation_callback"] = self._ask_for_input
        if able is not None and able.roots is not None:
            role["list_roots_callback"] = self._ask_for_roots
        return role

    async def _ask_for_message(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        request = types.CreateMessageRequest(params=params)
        if params.tools or params.tool_choice:
            return await self._ask_agent(request, types.CreateMessageResultWithTools)
        return await self._ask_agent(request, types.CreateMessageResult)

    async def _ask_for_input(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        return await self._ask_agent(types.ElicitRequest(params=params), types.ElicitResult)

    async def _ask_for_roots(self, context: ClientRequestContext) -> types.ListRootsResult | types.ErrorData:
        return await self._ask_agent(types.ListRootsRequest(), types.ListRootsResult)

    async def _ask_agent(self, request: types.ServerRequest, result_type: type[ResultT]) -> ResultT | types.ErrorData:
        """Send a request of the real server to the agent; return the agent's answer, or the error.

        It is sent on the stream of the agent's newest request in flight, if there is one.
        """
        able = [context for context in self.in_flight if context.session.can_send_request]
        sessions = [able[-1].session] if able else self.sessions
        if not sessions:
            return types.ErrorData(code=types.INVALID_REQUEST, message=f"the agent cannot answer {request.method}")
        metadata = ServerMessageMetadata(related_request_id=able[-1].request_id) if able else None
        try:
            return await sessions[-1].send_request(request, result_type, metadata=metadata)
        except MCPError as error:
            return error.error
        except ValidationError:
            return types.ErrorData(
                code=types.INVALID_REQUEST, message=f"{request.method}: the agent's answer is invalid"
            )

    async def _pass_notification(self, message: IncomingMessage) -> None:
        if isinstance(message, Exception | types.ProgressNotification):
            return  # progress is reported by the request that it belongs to
        if isinstance(message, types.LoggingMessageNotification) and self.in_flight:
            newest = self.in_flight[-1]
            has_handshake = newest.protocol_version not in MODERN_PROTOCOL_VERSIONS
            if has_handshake or types.LOG_LEVEL_META_KEY in (newest.meta or {}):  # others did not ask for logs
                await newest.session.send_notification(message, newest.request_id)
            return
        data = message.model_dump(by_alias=True, mode="json", exclude_none=True)
        if (event := event_from_wire(data["method"], data.get("params"))) is not None:
            await self.bus.publish(event)
        for session in list(self.sessions):
            await session.send_notification(message)
