"""The recording proxy between agents and stores, used by real clients over loopback."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from memorybench.core.stores import Capability, NewFact
from memorybench.secrets.redaction import Redactor
from memorybench.stores.reference import ReferenceStore, open_reference

pytest.importorskip("mcp")

from memorybench.mcp import bridge
from memorybench.mcp.client import McpClient, ToolError
from memorybench.mcp.http import open_mcp_http
from memorybench.mcp.proxy import Proxy
from memorybench.mcp.stdio import open_mcp_stdio
from memorybench.mcp.store_server import StoreProxy, open_store_proxy

NO_SECRETS = Redactor([])
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
KEY = "sk-proj-" + "a1B2" * 10


@asynccontextmanager
async def client_of(url: str) -> AsyncIterator[McpClient]:
    async with open_mcp_http(url, {}, NO_SECRETS) as client:
        yield client


@asynccontextmanager
async def recorded(folder: Path, session: int = 1) -> AsyncIterator[tuple[Proxy, McpClient]]:
    async with (
        open_reference(folder) as store,
        open_store_proxy(store, session=session) as proxy,
        client_of(proxy.url) as client,
    ):
        yield proxy, client


def test_a_store_is_offered_as_six_tools(tmp_path: Path) -> None:
    async def use() -> None:
        async with recorded(tmp_path) as (proxy, client):
            assert [tool.name for tool in await client.list_tools()] == [
                "remember", "update", "forget", "recall", "list", "curate",
            ]  # fmt: skip
            id = (await client.call_tool("remember", {"content": "Ana likes tea"})).structured["id"]
            found = (await client.call_tool("recall", {"query": "tea"})).structured["facts"]
            assert found == [{"id": id, "content": "Ana likes tea"}]
            await client.call_tool("update", {"id": id, "content": "Ana likes coffee"})
            held = (await client.call_tool("list", {})).structured["facts"]
            assert [fact["content"] for fact in held] == ["Ana likes coffee"]
            assert (await client.call_tool("curate", {})).structured == {"applied": False, "proposals": []}
            await client.call_tool("forget", {"id": id})
            assert (await client.call_tool("list", {})).structured == {"facts": []}
            assert [(call.tool, call.operation, call.session, call.user) for call in proxy.calls] == [
                (tool, tool, 1, "user") for tool in ("remember", "recall", "update", "list", "curate", "forget", "list")
            ]
            assert proxy.calls[1].texts == ("Ana likes tea",)
            assert proxy.calls[1].arguments == {"query": "tea"}
            assert all(call.seconds >= 0 and call.error is None for call in proxy.calls)

    asyncio.run(use())


def test_tool_descriptions_do_not_tell_the_agent_how_to_behave(tmp_path: Path) -> None:
    async def tools() -> str:
        async with recorded(tmp_path) as (_, client):
            return " ".join(f"{tool.description} {tool.input_schema}" for tool in await client.list_tools()).lower()

    advice = re.findall(
        r"secret|password|sensitive|duplicate|never|avoid|only when|important|do not", asyncio.run(tools())
    )
    assert advice == []


def test_refusals_and_errors_are_recorded_separately(tmp_path: Path) -> None:
    async def use() -> None:
        async with recorded(tmp_path) as (proxy, client):
            with pytest.raises(ToolError, match="refused: "):
                await client.call_tool("remember", {"content": f"the key is {KEY}"})
            with pytest.raises(ToolError, match="content"):
                await client.call_tool("remember", {"text": "Ana likes tea"})
            with pytest.raises(ToolError, match="99"):
                await client.call_tool("forget", {"id": "99"})
            with pytest.raises(ToolError, match="store"):
                await client.call_tool("store", {"content": "Ana likes tea"})
            assert [(call.operation, call.refused is None, call.error is None) for call in proxy.calls] == [
                ("remember", False, True),
                ("remember", True, False),
                ("forget", True, False),
                (None, True, False),
            ]

    asyncio.run(use())


def test_a_call_does_not_list_the_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listings: list[StoreProxy] = []
    list_tools = StoreProxy.list_tools

    async def count_listing(self: StoreProxy, context: Any, params: Any) -> Any:
        listings.append(self)
        return await list_tools(self, context, params)

    async def use() -> None:
        async with recorded(tmp_path) as (_, client):
            for _ in range(3):
                await client.call_tool("recall", {"query": "tea"})

    monkeypatch.setattr(StoreProxy, "list_tools", count_listing)
    asyncio.run(use())
    assert listings == []


def test_replies_are_sent_without_delay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listeners: list[socket.socket] = []
    create_server = socket.create_server

    def keep_listener(*arguments: Any) -> socket.socket:
        listeners.append(create_server(*arguments))
        return listeners[-1]

    async def use() -> None:
        async with recorded(tmp_path):
            [listener] = listeners
            assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0

    monkeypatch.setattr(socket, "create_server", keep_listener)
    asyncio.run(use())


def test_operations_that_a_store_lacks_are_not_offered(tmp_path: Path) -> None:
    async def names() -> list[str]:
        async with (
            open_reference(tmp_path, kind=_SearchingStore) as store,
            open_store_proxy(store) as proxy,
            client_of(proxy.url) as client,
        ):
            return [tool.name for tool in await client.list_tools()]

    assert asyncio.run(names()) == ["remember", "recall"]


class _SearchingStore(ReferenceStore):
    capabilities: frozenset[Capability] = frozenset({"recall"})


def test_requests_without_the_token_are_rejected(tmp_path: Path) -> None:
    async def ask() -> list[int]:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        async with recorded(tmp_path) as (proxy, _), aiohttp.ClientSession(headers=ACCEPT) as session:
            origin = proxy.url.split("/", 3)
            token = origin[3].split("/")[0]
            guesses = ["/mcp", "/", f"/{token[:-1]}{'y' if token.endswith('x') else 'x'}/mcp"]
            statuses = []
            for guess in guesses:
                async with session.post(f"http://{origin[2]}{guess}", json=message) as reply:
                    statuses.append(reply.status)
            assert not proxy.connected
            async with session.post(proxy.url, json=message) as reply:
                statuses.append(reply.status)
            assert proxy.connected
            return statuses

    assert asyncio.run(ask()) == [404, 404, 404, 200]


def test_a_call_without_listing_tools_counts_as_connected(tmp_path: Path) -> None:
    async def call() -> None:
        async with recorded(tmp_path) as (proxy, client):
            assert not proxy.connected
            await client.call_tool("remember", {"content": "Ana likes tea"})
            assert proxy.connected

    asyncio.run(call())


def test_an_invalid_request_is_rejected_and_breaks_nothing(tmp_path: Path) -> None:
    async def send() -> None:
        async with recorded(tmp_path) as (proxy, client), aiohttp.ClientSession(headers=ACCEPT) as session:
            for body in (b"{not json", b'"hello"', b'{"jsonrpc": "2.0", "id": 1, "method": "resources/list"}'):
                async with session.post(proxy.url, data=body) as reply:
                    assert "error" in json.loads(await reply.read()), body
            async with session.get(proxy.url) as reply:
                assert reply.status == 405
            assert len(await client.list_tools()) == 6
            assert proxy.calls == []

    asyncio.run(send())


@pytest.mark.slow
def test_concurrent_proxies_record_separately(tmp_path: Path) -> None:
    async def use(name: str) -> tuple[list[str], list[str]]:
        async with recorded(tmp_path / name, session=int(name)) as (proxy, client):
            await asyncio.gather(*(client.call_tool("remember", {"content": f"fact {n} of {name}"}) for n in range(5)))
            held = (await client.call_tool("list", {})).structured["facts"]
            assert {call.session for call in proxy.calls} == {int(name)}
            return [call.arguments["content"] for call in proxy.calls[:-1]], [fact["content"] for fact in held]

    async def all_of_them() -> list[tuple[list[str], list[str]]]:
        return await asyncio.gather(*(use(str(n)) for n in range(1, 5)))

    for number, (recorded_facts, held) in enumerate(asyncio.run(all_of_them()), 1):
        assert sorted(recorded_facts) == sorted(held) == [f"fact {n} of {number}" for n in range(5)]
        assert recorded_facts == held, "calls are recorded in the order in which they were stored"


def test_an_unexpected_exception_of_a_store_is_recorded(tmp_path: Path) -> None:
    class Broken(ReferenceStore):
        async def remember(self, user: str, fact: NewFact) -> str:
            raise KeyError("row 7")

    async def use() -> None:
        async with (
            open_reference(tmp_path, kind=Broken) as store,
            open_store_proxy(store) as proxy,
            client_of(proxy.url) as client,
        ):
            with pytest.raises(ToolError, match="KeyError: 'row 7'"):
                await client.call_tool("remember", {"content": "x"})
            assert [call.error for call in proxy.calls] == ["KeyError: 'row 7'"]

    asyncio.run(use())


@pytest.mark.slow
def test_the_bridge_connects_standard_streams_to_the_proxy(tmp_path: Path) -> None:
    async def use() -> None:
        async with recorded(tmp_path / "store") as (proxy, _):
            (tmp_path / "json.py").write_text("raise SystemExit('a module of the workspace was imported')")
            async with open_mcp_stdio(proxy.command, {}, tmp_path, NO_SECRETS) as client:
                assert len(await client.list_tools()) == 6
                await client.call_tool("remember", {"content": "line one\nline two"})
                with pytest.raises(ToolError, match="refused"):
                    await client.call_tool("remember", {"content": f"the key is {KEY}"})
            assert [call.tool for call in proxy.calls] == ["remember", "remember"]

    asyncio.run(use())


@pytest.mark.slow
def test_the_bridge_answers_every_request_before_it_exits(tmp_path: Path) -> None:
    async def pipe() -> list[Any]:
        async with recorded(tmp_path) as (proxy, _):
            hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
            requests = [
                {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
                {"jsonrpc": "2.0", "method": "notifications/initialized"},
                *({"jsonrpc": "2.0", "id": id, "method": "tools/list"} for id in (1, 2)),
            ]
            lines = b"".join(json.dumps(request).encode() + b"\n" for request in requests)
            process = await asyncio.create_subprocess_exec(
                *proxy.command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
            output, _ = await process.communicate(lines)
            assert process.returncode == 0
            return [json.loads(line) for line in output.splitlines()]

    replies = asyncio.run(pipe())
    assert sorted(reply["id"] for reply in replies) == [0, 1, 2]
    assert all(len(reply["result"]["tools"]) == 6 for reply in replies if reply["id"] > 0)


@pytest.mark.slow
def test_the_bridge_exits_with_an_error_if_the_server_is_gone(tmp_path: Path) -> None:
    async def closed_url() -> str:
        async with recorded(tmp_path) as (proxy, _):
            return proxy.url

    command = [sys.executable, "-m", "memorybench.mcp.bridge", asyncio.run(closed_url())]
    line = b'{"jsonrpc": "2.0", "id": 5, "method": "tools/list"}\n'
    completed = subprocess.run(command, input=line, capture_output=True, check=False)
    assert completed.returncode == 1
    assert completed.stderr.startswith(b"mcp.bridge: ")


@pytest.mark.parametrize("arguments", [["http://192.0.2.7/mcp"], ["https://127.0.0.1/mcp"], []])
def test_the_bridge_connects_to_loopback_only(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        bridge.main(arguments)
    assert "mcp.bridge" in str(raised.value.code), "a text exits with status 1"
