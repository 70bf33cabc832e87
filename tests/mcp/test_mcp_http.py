from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.errors import BadInput, Malformed, ServiceError, Transient
from memorybench.secrets.redaction import Redactor
from tests.doubles.mcp_server import MORE_TOOLS, SESSION, TOOLS, McpHttpServer
from tests.doubles.stub import Stub, reply, status

pytest.importorskip("mcp")

from memorybench.mcp.client import McpClient, ToolError
from memorybench.mcp.http import open_mcp_http

SECRET = "sentinel-key-4711"


@asynccontextmanager
async def client_of(url: str, headers: dict[str, str] | None = None) -> AsyncIterator[McpClient]:
    redactor = Redactor([SECRET])
    async with open_mcp_http(url, headers or {}, redactor) as client:
        yield client


@pytest.mark.parametrize("events", [False, True], ids=["json", "events"])
def test_tools_are_listed_and_called(tmp_path: Path, events: bool) -> None:
    async def talk(url: str) -> tuple[list[str], Any]:
        async with client_of(url) as client:
            await client.call_tool("remember", {"scope": "s", "id": "1", "text": "a\nb 🪁", "sources": []})
            found = (await client.call_tool("everything", {"scope": "s"})).value()
            return [tool.name for tool in await client.list_tools()], found["found"][0]["text"]

    with McpHttpServer(tmp_path / "kept.json", events=events) as server:
        assert asyncio.run(talk(server.url)) == (TOOLS + MORE_TOOLS, "a\nb 🪁")


def test_session_revision_and_own_headers_go_with_every_request(tmp_path: Path) -> None:
    async def talk(url: str) -> None:
        async with client_of(url, {"Authorization": f"Bearer {SECRET}"}) as client:
            await client.call_tool("cancelled", {})

    with McpHttpServer(tmp_path / "kept.json") as server:
        asyncio.run(talk(server.url))
    requests = [
        (method, {name.lower(): value for name, value in headers.items()}, message.get("method"))
        for method, headers, message in server.requests
    ]
    assert all(headers["authorization"] == f"Bearer {SECRET}" for _, headers, _ in requests)
    begin = next(index for index, request in enumerate(requests) if request[2] == "initialize")
    later = requests[begin + 1 :]
    assert [(method, name) for method, _, name in later] == [
        ("POST", "notifications/initialized"),
        ("POST", "tools/call"),
        ("DELETE", None),
    ]
    assert all(headers["mcp-session-id"] == SESSION for _, headers, _ in later)
    assert all(headers["mcp-protocol-version"] == "2025-11-25" for _, headers, _ in later)


def test_a_call_that_times_out_is_cancelled(tmp_path: Path) -> None:
    async def hang(url: str) -> Any:
        async with client_of(url) as client:
            with pytest.raises(Transient) as raised:
                await client.call_tool("hang", {}, deadline=0.1)
            assert raised.value.uncertain
            return (await client.call_tool("cancelled", {})).value()["ids"]

    with McpHttpServer(tmp_path / "kept.json") as server:
        assert len(asyncio.run(hang(server.url))) == 1


def test_errors_of_tools_are_redacted(tmp_path: Path) -> None:
    async def fail(url: str) -> None:
        async with client_of(url) as client:
            with pytest.raises(ToolError, match=r"it failed: \[redacted\]"):
                await client.call_tool("fail", {"saying": SECRET})

    with McpHttpServer(tmp_path / "kept.json") as server:
        asyncio.run(fail(server.url))


def test_a_web_server_without_mcp_is_an_error() -> None:
    async def connect(url: str) -> None:
        async with client_of(url):
            pytest.fail("it was opened")

    with Stub() as stub:
        stub.next(status(404), status(404))
        with pytest.raises(ServiceError, match="404"):
            asyncio.run(connect(stub.url))
        stub.next(reply({"hello": "world"}), reply({"hello": "world"}))
        with pytest.raises(Malformed):
            asyncio.run(connect(stub.url))


def test_a_failed_request_fails_one_call_and_keeps_its_retry_hint(tmp_path: Path) -> None:
    async def call(url: str, server: McpHttpServer) -> Any:
        async with client_of(url) as client:
            server.failures.append((503, {"Retry-After": "7"}))
            with pytest.raises(Transient) as raised:
                await client.call_tool("cancelled", {})
            assert raised.value.retry_after == 7
            return (await client.call_tool("cancelled", {})).value()

    with McpHttpServer(tmp_path / "kept.json") as server:
        assert asyncio.run(call(server.url, server)) == {"ids": []}


@pytest.mark.parametrize("url", ["http://169.254.169.254/mcp", "http://192.0.2.7/mcp", "ftp://127.0.0.1/mcp"])
def test_forbidden_addresses_are_not_connected_to(url: str) -> None:
    async def connect() -> None:
        async with client_of(url):
            pytest.fail("it was opened")

    with pytest.raises((BadInput, ServiceError)):
        asyncio.run(connect())
