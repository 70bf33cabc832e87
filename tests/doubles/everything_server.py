"""An MCP server on the official SDK that uses every part of the protocol. Run as a program, it serves standard streams.

Options: --dead (exits at once), --garbage (writes lines that are not messages before it starts).
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ToolsListChanged
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

INSTRUCTIONS = "Search before you write."
TOOLS = ["add", "blob", "wait", "steps", "ask", "log", "change", "who", "die", "note_1", "note_2", "note_3"]
RESOURCES = ["note://1", "note://2"]
TEMPLATES = ["note://{number}", "page://{number}"]
PROMPTS = ["sum-up", "translate"]
PAGE = 5
FLOOD = 40 * 2**20
Context = Any


class Everything:
    """The handlers, and what they saw."""

    def __init__(self) -> None:
        self.running = 0
        self.most_running = 0
        self.cancelled: list[str] = []
        self.subscribed: list[str] = []
        self.level = ""
        self.started = asyncio.Event()
        self.stopped = asyncio.Event()
        self.bus = InMemorySubscriptionBus()

    async def list_tools(self, _context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        names, more = _page(TOOLS, params, PAGE)
        tools = [types.Tool(name=name, description=f"Tool {name}", input_schema={"type": "object"}) for name in names]
        return types.ListToolsResult(tools=tools, next_cursor=more)

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            return await self._call(context, params.name, params.arguments or {})
        except asyncio.CancelledError:
            self.cancelled.append(params.name)
            self.stopped.set()
            raise
        finally:
            self.running -= 1

    async def _call(self, context: Context, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        session, related = context.session, context.request_id
        match name:
            case "add":
                return _result({"sum": arguments["a"] + arguments["b"]})
            case "blob":
                return _text("x" * arguments["size"])
            case "wait":
                self.started.set()
                await asyncio.Event().wait()
            case "meet":
                if self.running == arguments["people"]:
                    self.started.set()
                await self.started.wait()
                return _text("met")
            case "length":
                return _text(str(len(arguments["text"])))
            case "refuse":
                raise MCPError(-32099, "no", {"why": "late"})
            case "steps":
                for step in range(1, 4):
                    await session.report_progress(step, 3, f"step {step}")
                return _text("done")
            case "ask":
                return _text(await _ask(session, related, arguments["what"]))
            case "log":
                if context.protocol_version in MODERN_PROTOCOL_VERSIONS and types.LOG_LEVEL_META_KEY not in (
                    context.meta or {}
                ):
                    return _text("logs were not asked for")
                params = types.LoggingMessageNotificationParams(level="warning", data="the disk is full", logger="disk")
                await session.send_notification(types.LoggingMessageNotification(params=params), related)
                return _text("logged")
            case "change":
                await session.send_tool_list_changed()
                await session.send_resource_updated("note://1")
                await self.bus.publish(ToolsListChanged())
                await self.bus.publish(ResourceUpdated("note://1"))
                return _text("changed")
            case "who":
                info = session.client_params
                able = session.client_capabilities
                abilities = able.model_dump(exclude_none=True) if able else {}
                return _result({"name": info.client_info.name if info else None, "abilities": sorted(abilities)})
            case "die":
                os._exit(7)
            case "note_1":
                error = types.TextContent(type="text", text="the note is locked")
                return types.CallToolResult(content=[error], is_error=True)
        raise ValueError(f"unknown tool {name}")

    async def list_resources(
        self, _context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        uris, more = _page(RESOURCES, params, 1)
        resources = [types.Resource(name="note", uri=uri, mime_type="text/plain") for uri in uris]
        return types.ListResourcesResult(resources=resources, next_cursor=more)

    async def list_templates(
        self, _context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        uris, more = _page(TEMPLATES, params, 1)
        templates = [types.ResourceTemplate(name="any", uri_template=uri) for uri in uris]
        return types.ListResourceTemplatesResult(resource_templates=templates, next_cursor=more)

    async def read_resource(
        self, _context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        contents = types.TextResourceContents(uri=params.uri, text=f"text of {params.uri}")
        return types.ReadResourceResult(contents=[contents])

    async def subscribe(self, _context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        self.subscribed.append(str(params.uri))
        return types.EmptyResult()

    async def unsubscribe(self, _context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self.subscribed.remove(str(params.uri))
        return types.EmptyResult()

    async def list_prompts(
        self, _context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        argument = types.PromptArgument(name="topic", required=True)
        names, more = _page(PROMPTS, params, 1)
        prompts = [types.Prompt(name=name, arguments=[argument]) for name in names]
        return types.ListPromptsResult(prompts=prompts, next_cursor=more)

    async def get_prompt(self, _context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        text = types.TextContent(type="text", text=f"Sum up {(params.arguments or {})['topic']}")
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text)])

    async def complete(self, _context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        return types.CompleteResult(completion=types.Completion(values=[params.argument.value + "ea"]))

    async def set_level(self, _context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        self.level = params.level
        return types.EmptyResult()

    def server(self) -> Server[Any]:
        server = _AnnouncingServer(
            "everything",
            version="1.2.3",
            title="Everything",
            instructions=INSTRUCTIONS,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
            on_subscribe_resource=self.subscribe,
            on_unsubscribe_resource=self.unsubscribe,
            on_subscriptions_listen=ListenHandler(self.bus),
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
            on_completion=self.complete,
        )
        # the argument of the constructor is deprecated, the method is not
        server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self.set_level)
        return server


class _AnnouncingServer(Server[Any]):
    def get_capabilities(self, _options: Any = None, *others: Any, **more: Any) -> types.ServerCapabilities:
        return super().get_capabilities(NotificationOptions(True, True, True), *others, **more)


async def _ask(session: Any, related: Any, what: str) -> str:
    metadata = ServerMessageMetadata(related_request_id=related)
    if what == "model":
        message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Which tea?"))
        params = types.CreateMessageRequestParams(messages=[message], max_tokens=9)
        result = await session.send_request(
            types.CreateMessageRequest(params=params), types.CreateMessageResult, metadata=metadata
        )
        return str(result.content.text)
    if what == "roots":
        roots = await session.send_request(types.ListRootsRequest(), types.ListRootsResult, metadata=metadata)
        return str(roots.roots[0].uri)
    answer = await session.elicit_form("Which?", {"type": "object", "properties": {}}, related_request_id=related)
    return str(answer.action)


def _page(items: list[str], params: types.PaginatedRequestParams | None, size: int) -> tuple[list[str], str | None]:
    """Return a page, and the cursor of the next one."""
    start = int((params and params.cursor) or 0)
    return items[start : start + size], str(start + size) if start + size < len(items) else None


def _text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


def _result(value: dict[str, Any]) -> types.CallToolResult:
    return types.CallToolResult(content=[], structured_content=value)


async def main(options: list[str]) -> None:
    if "--dead" in options:
        sys.exit("no disk")
    if "--garbage" in options:
        print("starting up…\n{not json\n[1, 2]", flush=True)
    if "--flood" in options:
        sys.stdout.write("x" * FLOOD)
        sys.stdout.flush()
        await asyncio.Event().wait()
    server = Everything().server()
    async with stdio_server() as (from_client, to_client):
        await server.run(from_client, to_client, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
