from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.errors import Malformed, ServiceError, Transient
from memorybench.mcp.client import McpClient
from memorybench.mcp.http_transport import open_mcp_http
from memorybench.mcp.messages import ToolError
from memorybench.secrets.redaction import Redactor
from tests.doubles.mcp_server import MORE_TOOLS, SESSION, TOOLS, McpHttpServer
from tests.doubles.stub import Stub, reply, status

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


def test_session_version_and_own_headers_go_with_every_request(tmp_path: Path) -> None:
    async def talk(url: str) -> None:
        async with client_of(url, {"Authorization": f"Bearer {SECRET}"}) as client:
            await client.ping()

    with McpHttpServer(tmp_path / "kept.json") as server:
        asyncio.run(talk(server.url))
    first, *others = [headers for _, headers, _ in server.requests]
    assert "Mcp-Session-Id" not in first
    assert all(headers["Authorization"] == f"Bearer {SECRET}" for headers in (first, *others))
    assert all(headers["Mcp-Session-Id"] == SESSION for headers in others)
    assert all(headers["MCP-Protocol-Version"] == "2025-06-18" for headers in others)
    assert [(method, message.get("method")) for method, _, message in server.requests] == [
        ("POST", "initialize"),
        ("POST", "notifications/initialized"),
        ("POST", "ping"),
        ("DELETE", None),
    ]


def test_a_call_that_takes_too_long_is_cancelled(tmp_path: Path) -> None:
    async def hang(url: str) -> Any:
        async with client_of(url) as client:
            with pytest.raises(Transient, match="tools/call hang: no reply within") as raised:
                await client.call_tool("hang", {}, deadline=0.1)
            assert raised.value.uncertain
            return (await client.call_tool("cancelled", {})).value()["ids"]

    with McpHttpServer(tmp_path / "kept.json") as server:
        assert len(asyncio.run(hang(server.url))) == 1


def test_a_tool_that_fails_says_so(tmp_path: Path) -> None:
    async def fail(url: str) -> None:
        async with client_of(url) as client:
            with pytest.raises(ToolError, match=r"it failed: \[redacted\]"):
                await client.call_tool("fail", {"saying": SECRET})
            with pytest.raises(Malformed, match="does not answer the request"):
                await client.call_tool("mistake", {})

    with McpHttpServer(tmp_path / "kept.json") as server:
        asyncio.run(fail(server.url))


def test_a_web_server_that_speaks_no_mcp_is_named() -> None:
    async def connect(url: str) -> None:
        async with client_of(url):
            pytest.fail("it was opened")

    with Stub() as stub:
        stub.next(status(404), reply({"hello": "world"}))
        with pytest.raises(ServiceError, match=r"POST .*: HTTP 404"):
            asyncio.run(connect(stub.url))
        with pytest.raises(Malformed, match="does not answer the request"):
            asyncio.run(connect(stub.url))
