"""List and call the tools of one MCP server, over any transport of the SDK."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NoReturn, TypedDict, TypeVar, cast

import mcp_types as types
from mcp import Client, MCPError
from mcp.client import Transport
from mcp.client.session import ElicitationFnT, ListRootsFnT, MessageHandlerFnT, SamplingFnT
from mcp.shared.dispatcher import ProgressFnT
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec import Struct, field
from pydantic import BaseModel, TypeAdapter, ValidationError

from memorybench import __version__
from memorybench.core.errors import BadInput, Malformed, MemorybenchError, ServiceError, Transient
from memorybench.files.json_text import decode
from memorybench.secrets.redaction import Redactor
from memorybench.text.sanitize import EXCERPT, preview, printable, sanitize
from memorybench.text.spelling import join_names, suggestion

DEADLINE = 60.0
MESSAGE_CAP = 32 * 2**20
MAX_PAGES = 1_000
"""The most pages of a list of tools; with more, Malformed is raised."""

R = TypeVar("R", bound=BaseModel)
_ANY_RESULT: TypeAdapter[Any] = TypeAdapter(dict[str, Any])
FindFailure = Callable[[MCPError], Awaitable[MemorybenchError | None]]
"""A function that returns the transport's error behind an error of the SDK; None if there is none."""

# without a handler, Python prints warnings of the SDK to stderr, and they may quote secrets
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


class ToolError(ServiceError):
    """Raised if a tool was called and reported a failure."""


class Tool(Struct, frozen=True):
    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)


class ToolResult(Struct, frozen=True):
    text: str
    """All text parts, joined by newlines."""
    structured: Any = None
    """The structured content; None if the server sent none."""

    def value(self) -> Any:
        """Return the structured content; without it, the text parsed as JSON; if it is not JSON, the text."""
        if self.structured is not None:
            return self.structured
        try:
            return decode(self.text, "result")
        except BadInput:
            return self.text


class ClientRole(TypedDict, total=False):
    """The name and abilities that the client sends to the server, and the callbacks for the server's messages.

    The keys are arguments of the SDK's Client.
    """

    client_info: types.Implementation
    sampling_callback: SamplingFnT
    sampling_capabilities: types.SamplingCapability | None
    elicitation_callback: ElicitationFnT
    list_roots_callback: ListRootsFnT
    message_handler: MessageHandlerFnT
    mode: str
    """`legacy`: connect with a handshake; `auto`, the default: without one if the server supports that."""


class McpClient:
    """Calls tools of one server; calls may run concurrently. Opened by `open_mcp_stdio` and `open_mcp_http`.

    A call that times out is cancelled and raises Transient; the server may still have done the work.
    """

    def __init__(
        self, client: Client, where: str, redactor: Redactor, deadline: float | None, find_failure: FindFailure
    ) -> None:
        self.sdk_client = client
        self._session = client.session
        self._where = where
        self._redactor = redactor
        self._deadline = deadline
        self._find_failure = find_failure
        info = client.server_info
        self.server_info = info.model_dump(by_alias=True, exclude_none=True) if info else {}
        """Name and version of the server."""
        self.instructions = client.session.instructions or ""
        """The server's instructions for agents that use it."""

    async def list_tools(self) -> Sequence[Tool]:
        tools: list[Tool] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            request = types.ListToolsRequest(params=types.PaginatedRequestParams(cursor=cursor))
            page = await self._send(request, types.ListToolsResult, "tools/list")
            tools += [Tool(tool.name, tool.description or "", tool.input_schema) for tool in page.tools]
            cursor = page.next_cursor
            if not cursor:
                return tools
        raise Malformed(f"{self._where}: the list of tools has more than {MAX_PAGES:,} pages")

    async def require_tools(self, names: Iterable[str], where: str) -> None:
        """Raise BadInput if the server lacks one of these tools. `where` is the place in the config that names them."""
        offered = [tool.name for tool in await self.list_tools()]
        for name in names:
            if name not in offered:
                raise BadInput(
                    where,
                    f"the MCP server has no tool {preview(name)}",
                    expected=f"one of {sanitize(join_names(offered))}",
                    remedy=suggestion(name, offered),
                )

    async def call_tool(self, name: str, arguments: Mapping[str, Any], *, deadline: float | None = None) -> ToolResult:
        """Call a tool and return its result. Raise ToolError if the tool reports a failure. `deadline`: seconds."""
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=name, arguments=dict(arguments)))
        # not session.call_tool, which may list the tools first to validate the result
        result = await self._send(request, types.CallToolResult, f"tools/call {name}", deadline)
        text = "\n".join(part.text for part in result.content if isinstance(part, types.TextContent))
        if result.is_error:
            raise ToolError(
                f"{self._where}: {name}: {clean_excerpt(text, self._redactor) or 'failed with no error message'}"
            )
        return ToolResult(text, result.structured_content)

    @property
    def is_modern(self) -> bool:
        """Whether the connection has no handshake, as in protocol revisions since 2026-07-28."""
        return self._session.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def forward(
        self, method: str, params: Mapping[str, Any] | None, on_progress: ProgressFnT | None = None
    ) -> dict[str, Any]:
        """Send any request and return its result unchanged.

        Raise MCPError if the server replies with an error, or if the connection fails.
        """
        request = types.Request[Any, str](method=method, params=None if params is None else dict(params))
        try:
            result: dict[str, Any] = await self._session.send_request(
                request, _ANY_RESULT, progress_callback=on_progress
            )
        except ValidationError:
            raise MCPError(types.INTERNAL_ERROR, f"{self._where}: {method}: invalid result") from None
        except MCPError as error:
            if (failure := await self._find_failure(error)) is None:
                raise
            raise MCPError(types.INTERNAL_ERROR, str(failure)) from None
        return result

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        await self._session.send_notification(
            cast("types.ClientNotification", types.Notification[Any, str](method=method, params=params))
        )

    async def _send(
        self, request: types.ClientRequest, result_type: type[R], name: str, deadline: float | None = None
    ) -> R:
        seconds = deadline or self._deadline
        try:
            return await self._session.send_request(request, result_type, request_read_timeout_seconds=seconds)
        except (MCPError, ValidationError) as error:
            await raise_service_error(error, f"{self._where}: {name}", self._redactor, seconds, self._find_failure)


@asynccontextmanager
async def open_client(
    transport: Transport,
    where: str,
    redactor: Redactor,
    deadline: float | None,
    find_failure: FindFailure,
    role: ClientRole | None = None,
) -> AsyncIterator[McpClient]:
    """Connect to a server. `where` names it in errors.

    A separate task holds the connection, because the SDK requires the same task to open and close it.
    """
    connected: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
    closing = asyncio.Event()

    async def hold_connection() -> None:
        client_role: ClientRole = {"client_info": types.Implementation(name="memorybench", version=__version__)}
        client_role.update(role or {})
        async with Client(transport, read_timeout_seconds=deadline, cache=None, **client_role) as client:
            connected.set_result(client)
            await closing.wait()

    holder = asyncio.create_task(hold_connection())
    waiting: list[asyncio.Future[Any]] = [holder, connected]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if not connected.done():
            error = holder.exception() or ConnectionError("closed")
            await raise_service_error(error, f"{where}: connect", redactor, deadline, find_failure)
        yield McpClient(connected.result(), where, redactor, deadline, find_failure)
    finally:
        closing.set()
        if not connected.done():
            holder.cancel()
        await asyncio.gather(holder, return_exceptions=True)


async def raise_service_error(
    error: BaseException, where: str, redactor: Redactor, deadline: float | None, find_failure: FindFailure
) -> NoReturn:
    """Raise the ServiceError that corresponds to an error of the SDK."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MemorybenchError):
        raise error
    if isinstance(error, ValidationError):
        raise Malformed(f"{where}: the result does not match the MCP protocol") from None
    if not isinstance(error, MCPError):
        raise ServiceError(f"{where}: {clean_excerpt(str(error), redactor)}") from None
    if (failure := await find_failure(error)) is not None:
        raise failure from None
    if error.code == types.REQUEST_TIMEOUT:
        limit = "" if deadline is None else f" after {deadline:g} s"
        raise Transient(f"{where}: timed out{limit}", uncertain=True) from None
    if error.code == types.PARSE_ERROR:
        raise Malformed(f"{where}: {clean_excerpt(error.message, redactor)}") from None
    raise ServiceError(f"{where}: error {error.code}: {clean_excerpt(error.message, redactor)}") from None


def clean_excerpt(text: str, redactor: Redactor) -> str:
    """Return the beginning of a server's text without secrets. They are removed before the text is cut."""
    text = printable(redactor.clean(text))
    return text if len(text) <= EXCERPT else f"{text[:EXCERPT]}…"
