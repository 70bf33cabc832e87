"""The recorder between agents and stores, by real clients over loopback."""

from __future__ import annotations

import asyncio
import io
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
import pytest

from memorybench.core.errors import Malformed
from memorybench.core.stores import Capability
from memorybench.mcp.bridge import carry
from memorybench.mcp.client import McpClient
from memorybench.mcp.http_transport import open_mcp_http
from memorybench.mcp.messages import ToolError, decode, encode
from memorybench.mcp.proxy import Answer, ClientTools, Proxy, open_proxy
from memorybench.mcp.stdio_transport import open_mcp_stdio
from memorybench.mcp.store_server import StoreTools
from memorybench.secrets.redaction import Redactor
from memorybench.stores.reference import open_reference
from tests.doubles.mcp_server import McpHttpServer

NOBODY = Redactor([])
KEY = "sk-proj-" + "a1B2" * 10


@asynccontextmanager
async def client_of(url: str) -> AsyncIterator[McpClient]:
    async with open_mcp_http(url, {}, NOBODY) as client:
        yield client


@asynccontextmanager
async def recorded(folder: Path, session: int = 1) -> AsyncIterator[tuple[Proxy, McpClient]]:
    async with (
        open_reference(folder) as store,
        open_proxy(StoreTools(store), session=session) as proxy,
        client_of(proxy.url) as client,
    ):
        yield proxy, client


def test_a_store_is_six_tools_and_each_does_what_it_says(tmp_path: Path) -> None:
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


def test_descriptions_say_how_to_call_and_not_how_to_behave(tmp_path: Path) -> None:
    async def tools() -> str:
        async with recorded(tmp_path) as (_, client):
            return " ".join(f"{tool.description} {tool.input_schema}" for tool in await client.list_tools()).lower()

    preached = re.findall(
        r"secret|password|sensitive|duplicate|never|avoid|only when|important|do not", asyncio.run(tools())
    )
    assert preached == []


def test_a_refusal_is_told_apart_from_a_mistake(tmp_path: Path) -> None:
    async def use() -> None:
        async with recorded(tmp_path) as (proxy, client):
            with pytest.raises(ToolError, match="refused: "):
                await client.call_tool("remember", {"content": f"the key is {KEY}"})
            with pytest.raises(ToolError, match="arguments do not fit: content: Field required"):
                await client.call_tool("remember", {"text": "Ana likes tea"})
            with pytest.raises(ToolError, match="no fact has the id 99"):
                await client.call_tool("forget", {"id": "99"})
            with pytest.raises(ToolError, match="there is no tool 'store'"):
                await client.call_tool("store", {"content": "Ana likes tea"})
            assert [(call.operation, call.refused is None, call.error is None) for call in proxy.calls] == [
                ("remember", False, True),
                ("remember", True, False),
                ("forget", True, False),
                (None, True, False),
            ]

    asyncio.run(use())


def test_what_a_store_can_not_do_is_not_offered(tmp_path: Path) -> None:
    async def names() -> list[str]:
        async with open_reference(tmp_path) as store:
            poor = _WithLess(store, frozenset({"recall"}))
            return [tool["name"] for tool in await StoreTools(poor).list_tools()]  # type: ignore[arg-type]

    assert asyncio.run(names()) == ["remember", "recall"]


class _WithLess:
    def __init__(self, store: Any, capabilities: frozenset[Capability]) -> None:
        self.store, self.capabilities = store, capabilities


def test_without_the_token_nobody_is_let_in(tmp_path: Path) -> None:
    async def ask() -> list[int]:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        async with recorded(tmp_path) as (proxy, _), aiohttp.ClientSession() as session:
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


def test_an_agent_that_knows_its_tools_beforehand_has_connected_too(tmp_path: Path) -> None:
    async def call() -> None:
        async with recorded(tmp_path) as (proxy, client):
            assert not proxy.connected
            await client.call_tool("remember", {"content": "Ana likes tea"})
            assert proxy.connected

    asyncio.run(call())


def test_requests_that_are_none_are_answered_and_break_nothing(tmp_path: Path) -> None:
    bad: list[tuple[bytes, int, int]] = [
        (b"{not json", 400, -32700),
        (b'"hello"', 400, -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "resources/list"}', 200, -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 3}}', 200, -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": [1]}', 200, -32602),
    ]

    async def ask() -> None:
        async with recorded(tmp_path) as (proxy, client), aiohttp.ClientSession() as session:
            for body, status, code in bad:
                async with session.post(proxy.url, data=body) as reply:
                    assert (reply.status, decode(await reply.read())["error"]["code"]) == (status, code), body
            async with session.post(proxy.url, data=b'{"jsonrpc": "2.0", "method": "notifications/x"}') as reply:
                assert (reply.status, await reply.read()) == (202, b"")
            both = b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]'
            async with session.post(proxy.url, data=both) as reply:
                assert [one["id"] for one in decode(await reply.read())] == [1, 2]
            async with session.get(proxy.url) as reply:
                assert reply.status == 405
            await client.ping()
            assert proxy.calls == []

    asyncio.run(ask())


def test_proxies_side_by_side_do_not_mix(tmp_path: Path) -> None:
    async def use(name: str) -> tuple[list[str], list[str]]:
        async with recorded(tmp_path / name, session=int(name)) as (proxy, client):
            await asyncio.gather(*(client.call_tool("remember", {"content": f"fact {n} of {name}"}) for n in range(5)))
            held = (await client.call_tool("list", {})).structured["facts"]
            assert {call.session for call in proxy.calls} == {int(name)}
            return [call.arguments["content"] for call in proxy.calls[:-1]], [fact["content"] for fact in held]

    async def all_of_them() -> list[tuple[list[str], list[str]]]:
        return await asyncio.gather(*(use(str(n)) for n in range(1, 5)))

    for number, (told, held) in enumerate(asyncio.run(all_of_them()), 1):
        assert sorted(told) == sorted(held) == [f"fact {n} of {number}" for n in range(5)]
        assert told == held, "what is recorded first was stored first"


def test_a_store_that_breaks_unforeseen_is_shown_in_the_record() -> None:
    class Broken:
        async def list_tools(self) -> list[Mapping[str, Any]]:
            return []

        async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Answer:
            raise KeyError("row 7")

    async def use() -> None:
        async with open_proxy(Broken()) as proxy, client_of(proxy.url) as client:
            with pytest.raises(ToolError, match="KeyError: 'row 7'"):
                await client.call_tool("remember", {"content": "x"})
            assert [call.error for call in proxy.calls] == ["KeyError: 'row 7'"]

    asyncio.run(use())


def test_another_server_is_passed_on_as_it_is(tmp_path: Path) -> None:
    """Its own names, its own results, all pages of its tools; calls are labelled by the binding."""

    async def use(url: str) -> None:
        async with client_of(url) as upstream:
            tools = ClientTools(upstream, {"remember": "remember", "recall": "recall"}, re.compile("it failed: no"))
            async with open_proxy(tools) as proxy, client_of(proxy.url) as client:
                names = [tool.name for tool in await client.list_tools()]
                assert names == [tool.name for tool in await upstream.list_tools()]
                memory = {"scope": "s", "id": "m1", "text": "Ana likes tea", "sources": []}
                assert (await client.call_tool("remember", memory)).structured == {"done": "remember"}
                asked = {"scope": "s", "query": "tea", "limit": 3}
                found = (await client.call_tool("recall", asked)).structured["found"]
                assert [one["text"] for one in found] == ["Ana likes tea"]
                for saying in ("no", "out of paper"):
                    with pytest.raises(ToolError, match=f"it failed: {saying}"):
                        await client.call_tool("fail", {"saying": saying})
                with pytest.raises(ToolError, match="-32602: no: such value"):
                    await client.call_tool("refuse", {"saying": "such value"})
                labels = [(call.tool, call.operation) for call in proxy.calls[:2]]
                assert labels == [("remember", "remember"), ("recall", "recall")]
                assert "Ana likes tea" in proxy.calls[1].texts[0]
                assert proxy.calls[2].refused == "it failed: no"
                assert proxy.calls[3].refused is None
                assert proxy.calls[3].error == "it failed: out of paper"
                assert "such value" in (proxy.calls[4].error or "")

    with McpHttpServer(tmp_path / "memories") as server:
        asyncio.run(use(server.url))


def test_a_list_of_tools_without_end_is_an_error() -> None:
    class Endless:
        async def request(self, method: str, params: Any) -> Any:
            return {"tools": [], "nextCursor": "more"}

    with pytest.raises(Malformed, match="goes on after"):
        asyncio.run(ClientTools(Endless(), {}).list_tools())  # type: ignore[arg-type]


def test_the_bridge_leads_programs_there_over_their_streams(tmp_path: Path) -> None:
    async def use() -> None:
        async with recorded(tmp_path / "store") as (proxy, _):
            (tmp_path / "json.py").write_text("raise SystemExit('a module of the workspace was imported')")
            async with open_mcp_stdio(proxy.command, {}, tmp_path, NOBODY) as client:
                assert len(await client.list_tools()) == 6
                await client.call_tool("remember", {"content": "line one\nline two"})
                with pytest.raises(ToolError, match="refused"):
                    await client.call_tool("remember", {"content": f"the key is {KEY}"})
            assert [call.tool for call in proxy.calls] == ["remember", "remember"]

    asyncio.run(use())


def test_the_bridge_answers_for_a_server_that_is_gone(tmp_path: Path) -> None:
    async def gone() -> str:
        async with recorded(tmp_path) as (proxy, _):
            return proxy.url

    lines = [
        {"jsonrpc": "2.0", "id": 5, "method": "tools/list"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    said = io.BytesIO()
    carry(asyncio.run(gone()), io.BytesIO(b"\n".join(map(encode, lines)) + b"\n\n"), said)
    [reply] = said.getvalue().splitlines()
    assert decode(reply)["id"] == 5
    assert "the memory server is gone" in decode(reply)["error"]["message"]


def test_the_bridge_leads_nowhere_else() -> None:
    command = [sys.executable, "-m", "memorybench.mcp.bridge"]
    for rest in (["http://192.0.2.7/mcp"], ["https://127.0.0.1/mcp"], []):
        done = subprocess.run([*command, *rest], input=b"", capture_output=True, check=False)
        assert done.returncode == 1
        assert b"mcp.bridge" in done.stderr


def test_the_time_noted_is_the_store_s_and_the_rest_is_little(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The goal, 5 ms a call, is held in perf/: here the figure is only printed, whatever else the machine does."""

    async def times() -> list[float]:
        async with recorded(tmp_path) as (proxy, client):
            took = []
            for n in range(40):
                begun = time.perf_counter()
                await client.call_tool("recall", {"query": f"tea {n}"})
                took.append(time.perf_counter() - begun - proxy.calls[-1].seconds)
            return took

    took = asyncio.run(times())
    with capsys.disabled():
        print(f"\nproxy overhead: {1000 * median(took):.2f} ms a call")
    assert min(took) > 0
