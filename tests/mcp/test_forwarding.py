"""The recording proxy in front of a server of the official SDK, used by the official client."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pydantic import FileUrl

from memorybench.core.errors import ServiceError
from memorybench.secrets.redaction import Redactor

pytest.importorskip("mcp")

import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from memorybench.mcp.client import ClientRole, McpClient
from memorybench.mcp.http import open_mcp_http
from memorybench.mcp.proxy import NO_REPLY, Proxy, ReadCall, open_server_proxy, serve_http
from memorybench.mcp.stdio import open_mcp_stdio
from tests.doubles.everything_server import INSTRUCTIONS, PROMPTS, RESOURCES, TEMPLATES, TOOLS, Everything

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parents[1] / "doubles" / "everything_server.py"
NO_SECRETS = Redactor([])
MODES = ["legacy", "auto"]
"""With a handshake, and by the newest revision, which has none."""


def with_mode(role: ClientRole, mode: str) -> ClientRole:
    """The connection to the server is negotiated like this."""
    return {**role, "mode": mode}


def read_nothing(*_: Any) -> ReadCall:
    return ReadCall()


@asynccontextmanager
async def over_http(double: Everything, deadline: float = 60.0, mode: str = "auto") -> AsyncIterator[Proxy]:
    async with serve_http(double.server()) as url:

        @asynccontextmanager
        async def connect(role: ClientRole) -> AsyncIterator[McpClient]:
            async with open_mcp_http(url, {}, NO_SECRETS, deadline=deadline, role=with_mode(role, mode)) as client:
                yield client

        async with open_server_proxy(connect, read_nothing) as proxy:
            yield proxy


@asynccontextmanager
async def over_stdio(folder: Path, *options: str, mode: str = "auto") -> AsyncIterator[Proxy]:
    @asynccontextmanager
    async def connect(role: ClientRole) -> AsyncIterator[McpClient]:
        environment = {"PYTHONPATH": str(PROGRAM.parents[2])}
        command = [sys.executable, str(PROGRAM), *options]
        async with open_mcp_stdio(command, environment, folder, NO_SECRETS, role=with_mode(role, mode)) as client:
            yield client

    async with open_server_proxy(connect, read_nothing) as proxy:
        yield proxy


def without_limit(url: str) -> Any:
    """The official client reads events of at most 1 MB, unless it is told otherwise."""
    return streamable_http_client(url, max_sse_event_size=None)


def text_of(result: types.CallToolResult) -> str:
    [part] = result.content
    assert isinstance(part, types.TextContent)
    return part.text


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28", "auto"])
def test_the_agent_sees_the_server_itself(mode: Any) -> None:
    async def use() -> None:
        async with (
            over_http(Everything()) as proxy,
            Client(proxy.url, mode=mode) as client,
        ):
            names, cursor = [], None
            while True:
                page = await client.list_tools(cursor=cursor)
                names += [tool.name for tool in page.tools]
                cursor = page.next_cursor
                if cursor is None:
                    break
                assert len(page.tools) == 5
            assert names == TOOLS
            if mode != "2026-07-28":  # a pinned version is not negotiated
                assert client.instructions == INSTRUCTIONS
                assert client.server_info is not None
                assert (client.server_info.name, client.server_info.version) == ("everything", "1.2.3")
                assert client.server_capabilities.tools is not None
                assert client.server_capabilities.tools.list_changed
            assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"sum": 3}
            assert proxy.connected
            assert [(call.tool, call.arguments, call.error) for call in proxy.calls] == [
                ("add", {"a": 1, "b": 2}, None)
            ]

    asyncio.run(use())


async def initialize(version: str) -> Any:
    """Return the result of a handshake for this revision."""
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}
    headers = {"Accept": "application/json, text/event-stream"}
    async with (
        over_http(Everything()) as proxy,
        aiohttp.ClientSession(headers=headers) as session,
        session.post(proxy.url, json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) as reply,
    ):
        lines = (await reply.text()).splitlines()
    [data] = [line.removeprefix("data: ") for line in lines if line.startswith("data: {")]
    return json.loads(data)["result"]


@pytest.mark.parametrize("version", HANDSHAKE_PROTOCOL_VERSIONS)
def test_each_revision_with_a_handshake_is_negotiated(version: str) -> None:
    result = asyncio.run(initialize(version))
    assert result["protocolVersion"] == version
    assert result["instructions"] == INSTRUCTIONS
    assert result["serverInfo"]["name"] == "everything"


def test_an_unknown_revision_is_answered_with_a_known_one() -> None:
    assert asyncio.run(initialize("2999-01-01"))["protocolVersion"] in HANDSHAKE_PROTOCOL_VERSIONS


@pytest.mark.parametrize("agent", MODES)
@pytest.mark.parametrize("server", MODES)
def test_lists_pass_page_by_page(agent: Any, server: Any) -> None:
    async def pages(client: Client, what: str) -> list[list[str]]:
        """Follow the cursors; one list of names per page."""
        found, cursor = [], None
        while True:
            page = await getattr(client, f"list_{what}")(cursor=cursor)
            items = getattr(page, what)
            found.append([getattr(one, "uri", None) or getattr(one, "uri_template", None) or one.name for one in items])
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def use() -> None:
        async with over_http(Everything(), mode=server) as proxy, Client(proxy.url, mode=agent) as client:
            assert await pages(client, "tools") == [TOOLS[:5], TOOLS[5:10], TOOLS[10:]]
            assert await pages(client, "resources") == [[uri] for uri in RESOURCES]
            assert await pages(client, "resource_templates") == [[uri] for uri in TEMPLATES]
            assert await pages(client, "prompts") == [[name] for name in PROMPTS]

    asyncio.run(use())


@pytest.mark.parametrize("mode", MODES)
def test_fifty_calls_run_at_once(mode: Any) -> None:
    async def use() -> None:
        double = Everything()
        async with over_http(double) as proxy, Client(proxy.url, mode=mode) as client:
            waiting = [asyncio.create_task(client.call_tool("meet", {"people": 50})) for _ in range(50)]
            assert {text_of(result) for result in await asyncio.gather(*waiting)} == {"met"}
            await client.session.send_request(types.ListToolsRequest(), types.ListToolsResult)
        assert double.most_running == 50
        assert [call.result for call in proxy.calls] == ["met"] * 50

    asyncio.run(use())


@pytest.mark.parametrize("mode", MODES)
def test_cancellation_reaches_the_server(mode: Any) -> None:
    async def use() -> None:
        double = Everything()
        async with over_http(double) as proxy, Client(proxy.url, mode=mode) as client:
            call = asyncio.create_task(client.call_tool("wait", {}))
            await double.started.wait()
            call.cancel()
            await double.stopped.wait()
            assert double.cancelled == ["wait"]
            assert (await client.call_tool("add", {"a": 1, "b": 1})).structured_content == {"sum": 2}
            assert [(one.tool, one.error) for one in proxy.calls] == [("wait", NO_REPLY), ("add", None)]

    asyncio.run(use())


@pytest.mark.parametrize("mode", MODES)
def test_progress_reaches_the_agent(mode: Any) -> None:
    async def reported() -> list[tuple[float, float | None, str | None]]:
        seen = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, total, message))

        async with over_http(Everything()) as proxy, Client(proxy.url, mode=mode) as client:
            assert text_of(await client.call_tool("steps", {}, progress_callback=note)) == "done"
        return seen

    assert asyncio.run(reported()) == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


@pytest.mark.parametrize("mode", MODES)
def test_five_megabytes_pass_in_both_directions(mode: Any) -> None:
    size = 5 * 2**20

    async def use() -> None:
        async with over_http(Everything()) as proxy, Client(without_limit(proxy.url), mode=mode) as client:
            assert len(text_of(await client.call_tool("blob", {"size": size}))) == size
            assert text_of(await client.call_tool("length", {"text": "y" * size})) == str(size)
            assert len(proxy.calls[0].result) == size

    asyncio.run(use())


@pytest.mark.parametrize("agent", MODES)
@pytest.mark.parametrize("server", MODES)
def test_resources_prompts_and_completions_pass(agent: Any, server: Any) -> None:
    async def use() -> None:
        async with over_http(Everything(), mode=server) as proxy, Client(proxy.url, mode=agent) as client:
            assert len((await client.list_tools()).tools) == 5
            [resource] = (await client.list_resources()).resources
            [template] = (await client.list_resource_templates()).resource_templates
            assert (resource.uri, template.uri_template) == ("note://1", "note://{number}")
            [content] = (await client.read_resource("note://1")).contents
            assert isinstance(content, types.TextResourceContents)
            assert content.text == "text of note://1"
            [prompt] = (await client.list_prompts()).prompts
            assert prompt.name == "sum-up"
            [message] = (await client.get_prompt("sum-up", {"topic": "tea"})).messages
            assert isinstance(message.content, types.TextContent)
            assert message.content.text == "Sum up tea"
            reference = types.PromptReference(type="ref/prompt", name="sum-up")
            completed = await client.complete(reference, {"name": "topic", "value": "t"})
            assert completed.completion.values == ["tea"]
            assert [call.tool for call in proxy.calls] == ["resources/read", "prompts/get"]
            assert all(call.operation is None and not call.parts for call in proxy.calls)

    asyncio.run(use())


@pytest.mark.parametrize("mode", MODES)
def test_errors_of_the_server_reach_the_agent_unchanged(mode: Any) -> None:
    async def use() -> None:
        async with over_http(Everything()) as proxy, Client(proxy.url, mode=mode) as client:
            failed = await client.call_tool("note_1", {})
            assert (failed.is_error, text_of(failed)) == (True, "the note is locked")
            with pytest.raises(MCPError) as raised:
                await client.call_tool("refuse", {})
            assert (raised.value.code, raised.value.message, raised.value.data) == (-32099, "no", {"why": "late"})
            assert [call.error for call in proxy.calls] == ["the note is locked", "no"]

    asyncio.run(use())


def test_the_server_learns_who_the_agent_is() -> None:
    async def sample(*_: Any) -> types.ErrorData:
        return types.ErrorData(code=-1, message="no")

    async def use(**abilities: Any) -> Any:
        info = types.Implementation(name="my-agent", version="3")
        async with (
            over_http(Everything()) as proxy,
            Client(proxy.url, mode="legacy", client_info=info, **abilities) as client,
        ):
            return (await client.call_tool("who", {})).structured_content

    assert asyncio.run(use()) == {"name": "my-agent", "abilities": []}
    assert asyncio.run(use(sampling_callback=sample)) == {"name": "my-agent", "abilities": ["sampling"]}


@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_the_server_can_ask_the_agent(tmp_path: Path, transport: str) -> None:
    async def sample(_context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        assert params.max_tokens == 9
        return types.CreateMessageResult(
            role="assistant", content=types.TextContent(type="text", text="green"), model="m"
        )

    async def elicit(_context: Any, _params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="decline")

    async def list_roots(_context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=FileUrl("file:///home"))])

    async def use() -> None:
        callbacks: Any = {
            "sampling_callback": sample, "elicitation_callback": elicit, "list_roots_callback": list_roots,
        }  # fmt: skip
        opened = over_http(Everything(), mode="legacy") if transport == "http" else over_stdio(tmp_path, mode="legacy")
        async with opened as proxy, Client(proxy.url, mode="legacy", **callbacks) as client:
            answers = [text_of(await client.call_tool("ask", {"what": what})) for what in ("model", "roots", "form")]
            assert answers == ["green", "file:///home", "decline"]

    asyncio.run(use())


@pytest.mark.parametrize("agent", MODES)
@pytest.mark.parametrize("server", MODES)
def test_log_messages_reach_the_agent(agent: Any, server: Any) -> None:
    async def use() -> None:
        logged: asyncio.Queue[Any] = asyncio.Queue()

        async def note(params: types.LoggingMessageNotificationParams) -> None:
            logged.put_nowait((params.level, params.data, params.logger))

        async with (
            over_http(Everything(), mode=server) as proxy,
            Client(proxy.url, mode=agent, logging_callback=note, log_level="debug") as client,
        ):
            if agent == "legacy":  # it may ask for a level, but need not
                assert text_of(await client.call_tool("log", {})) == "logged"
                assert (await asyncio.wait_for(logged.get(), 10))[1] == "the disk is full"
                set_level = types.SetLevelRequest(params=types.SetLevelRequestParams(level="debug"))
                await client.session.send_request(set_level, types.EmptyResult)
            assert text_of(await client.call_tool("log", {})) == "logged"
            assert await logged.get() == ("warning", "the disk is full", "disk")

    asyncio.run(use())


@pytest.mark.parametrize("server", MODES)
def test_a_server_without_logs_refuses_a_log_level(server: Any) -> None:
    async def use() -> None:
        async with (
            serve_http(Server("plain")) as url,
            open_server_proxy(
                lambda role: open_mcp_http(url, {}, NO_SECRETS, role=with_mode(role, server)), read_nothing
            ) as proxy,
            Client(proxy.url, mode="legacy") as client,
        ):
            set_level = types.SetLevelRequest(params=types.SetLevelRequestParams(level="debug"))
            with pytest.raises(MCPError, match="Method not found") as raised:
                await client.session.send_request(set_level, types.EmptyResult)
            assert raised.value.code == types.METHOD_NOT_FOUND

    asyncio.run(use())


@pytest.mark.parametrize("server", MODES)
def test_changes_reach_an_agent_with_a_handshake(server: Any) -> None:
    async def use() -> None:
        seen: asyncio.Queue[str] = asyncio.Queue()

        async def note(message: Any) -> None:
            if isinstance(message, types.ToolListChangedNotification | types.ResourceUpdatedNotification):
                seen.put_nowait(message.method)

        async with (
            over_http(Everything(), mode=server) as proxy,
            Client(proxy.url, mode="legacy", message_handler=note) as client,
        ):
            subscription = types.SubscribeRequest(params=types.SubscribeRequestParams(uri="note://1"))
            await client.session.send_request(subscription, types.EmptyResult)
            await client.call_tool("change", {})
            assert {await seen.get(), await seen.get()} == {
                "notifications/tools/list_changed", "notifications/resources/updated",
            }  # fmt: skip

    asyncio.run(use())


@pytest.mark.parametrize("server", MODES)
def test_changes_reach_an_agent_that_listens(server: Any) -> None:
    async def use() -> None:
        async with (
            over_http(Everything(), mode=server) as proxy,
            Client(proxy.url, mode="auto") as client,
            client.listen(tools_list_changed=True, resource_subscriptions=["note://1"]) as events,
        ):
            await client.call_tool("change", {})
            seen = set()
            async for event in events:
                seen.add(type(event).__name__)
                if len(seen) == 2:
                    break
            assert seen == {"ToolsListChanged", "ResourceUpdated"}

    asyncio.run(use())


def test_a_ping_is_answered_while_a_call_waits() -> None:
    async def use() -> None:
        double = Everything()
        async with over_http(double, mode="legacy") as proxy, Client(proxy.url, mode="legacy") as client:
            call = asyncio.create_task(client.call_tool("wait", {}))
            await double.started.wait()
            await client.session.send_request(types.PingRequest(), types.EmptyResult)
            assert not call.done()
            call.cancel()
            await double.stopped.wait()

    asyncio.run(use())


@pytest.mark.parametrize("mode", MODES)
def test_an_agent_on_standard_streams_has_the_same_server(tmp_path: Path, mode: Any) -> None:
    async def use() -> None:
        seen = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            seen.append(progress)

        double = Everything()
        async with over_http(double) as proxy:
            program, *arguments = proxy.command
            bridge = StdioServerParameters(command=program, args=arguments, cwd=tmp_path, env=dict(os.environ))
            async with Client(bridge, mode=mode) as client:
                if mode == "legacy":
                    assert client.instructions == INSTRUCTIONS
                first = await client.list_tools()
                assert [tool.name for tool in first.tools] == TOOLS[:5]
                await client.call_tool("steps", {}, progress_callback=note)
                call = asyncio.create_task(client.call_tool("wait", {}))
                await double.started.wait()
                call.cancel()
                await double.stopped.wait()
                assert len(text_of(await client.call_tool("blob", {"size": 5 * 2**20}))) == 5 * 2**20
        assert seen == [1, 2, 3]
        assert [one.tool for one in proxy.calls] == ["steps", "wait", "blob"]

    asyncio.run(use())


def test_a_server_on_standard_streams_passes_too(tmp_path: Path) -> None:
    async def use() -> None:
        async with over_stdio(tmp_path, "--garbage") as proxy, Client(proxy.url) as client:
            assert client.instructions == INSTRUCTIONS
            results = await asyncio.gather(*(client.call_tool("add", {"a": n, "b": 1}) for n in range(50)))
            assert [result.structured_content for result in results] == [{"sum": n + 1} for n in range(50)]
            [content] = (await client.read_resource("note://1")).contents
            assert content.uri == "note://1"

    asyncio.run(use())


@pytest.mark.parametrize(("option", "problem"), [("--dead", "no disk"), ("--flood", "larger than")])
def test_a_server_that_does_not_start_is_an_error_of_the_server(tmp_path: Path, option: str, problem: str) -> None:
    async def use() -> None:
        async with over_stdio(tmp_path, option) as proxy:
            with pytest.raises(ExceptionGroup) as raised:
                async with Client(proxy.url, mode="legacy"):
                    pytest.fail("it connected")
            assert raised.value.split(MCPError)[1] is None, "the agent gets an answer"
            assert not proxy.connected

    with pytest.raises(ServiceError, match=problem):
        asyncio.run(use())


def test_a_server_that_dies_ends_its_calls(tmp_path: Path) -> None:
    async def use() -> None:
        async with over_stdio(tmp_path) as proxy, Client(proxy.url) as client:
            for _ in range(2):
                with pytest.raises(MCPError, match="status 7"):
                    await client.call_tool("die", {})
            assert ["status 7" in (call.error or "") for call in proxy.calls] == [True, True]

    asyncio.run(use())


def test_a_call_that_takes_too_long_is_an_error() -> None:
    async def use() -> None:
        double = Everything()
        async with over_http(double, deadline=0.3) as proxy, Client(proxy.url) as client:
            with pytest.raises(MCPError):
                await client.call_tool("wait", {})
            await double.stopped.wait()
            [call] = proxy.calls
            assert "timed out" in (call.error or "").lower()

    asyncio.run(use())


RAW_SERVER = r"""
import json, sys

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    request = json.loads(line)
    params = request.get("params", {})
    match request["method"]:
        case "initialize":
            info = {"name": "raw", "version": "1"}
            version = params["protocolVersion"]
            result = {"protocolVersion": version, "capabilities": {"tools": {}, "logging": {}}, "serverInfo": info}
            send(id=request["id"], result=result)
        case "tools/call":
            send(method="notifications/message", params={"level": "info", "data": "called"})
            send(id=request["id"], result={"content": [{"type": "text", "text": "half \ud83d"}], "_meta": {"own": 1}})
        case _ if "id" in request:
            send(id=request["id"], error={"code": -32601, "message": "no such method"})
"""


def test_an_agent_with_a_handshake_gets_what_the_server_sends(tmp_path: Path) -> None:
    """Through the program for agents that can only start programs: one more connection."""
    (tmp_path / "server.py").write_text(RAW_SERVER)

    @asynccontextmanager
    async def connect(role: ClientRole) -> AsyncIterator[McpClient]:
        command = [sys.executable, str(tmp_path / "server.py")]
        async with open_mcp_stdio(command, {}, tmp_path, NO_SECRETS, role=role) as client:
            yield client

    async def use() -> list[Any]:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        async with open_server_proxy(connect, read_nothing) as proxy:
            agent = await asyncio.create_subprocess_exec(*proxy.command, stdin=-1, stdout=-1)
            assert agent.stdin is not None
            assert agent.stdout is not None
            received = []
            for message in (
                {"id": 0, "method": "initialize", "params": hello},
                {"method": "notifications/initialized"},
                {"id": 1, "method": "tools/call", "params": {"name": "any", "arguments": {}}},
                {"id": 2, "method": "logging/setLevel", "params": {"level": "debug"}},
            ):
                agent.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
                while "id" in message and (not received or received[-1].get("id") != message["id"]):
                    received.append(json.loads(await asyncio.wait_for(agent.stdout.readline(), 30)))
            agent.stdin.close()
            assert await agent.wait() == 0
        return received[1:]

    logged, result, refusal = asyncio.run(use())
    assert (logged["method"], logged["params"]["data"]) == ("notifications/message", "called")
    assert result["result"] == {
        "content": [{"type": "text", "text": "half \N{REPLACEMENT CHARACTER}"}],
        "_meta": {"own": 1},
    }
    assert refusal["error"] == {"code": -32601, "message": "no such method"}
