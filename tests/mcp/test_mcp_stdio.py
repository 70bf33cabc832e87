from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.errors import BadInput, Malformed, ServiceError, Transient
from memorybench.processes import programs
from memorybench.processes.programs import PRIVATE_FOLDERS, child_environment
from memorybench.secrets.redaction import Redactor
from tests.doubles.mcp_server import FLOOD, MORE_TOOLS, TOOLS

pytest.importorskip("mcp")

from memorybench.mcp.client import McpClient, ToolError
from memorybench.mcp.stdio import open_mcp_stdio

DOUBLE = Path(__file__).parents[1] / "doubles" / "mcp_server.py"
SECRET = "sentinel-key-4711"


@asynccontextmanager
async def server(
    folder: Path, *options: str, env: dict[str, str] | None = None, **more: Any
) -> AsyncIterator[McpClient]:
    command = [sys.executable, str(DOUBLE), str(folder / "kept.json"), *options]
    async with open_mcp_stdio(command, env or {}, folder, Redactor([SECRET]), **more) as client:
        yield client


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_all_pages_of_tools_are_listed(tmp_path: Path) -> None:
    async def listed() -> list[str]:
        async with server(tmp_path) as client:
            assert client.server_info["name"] == "double"
            return [tool.name for tool in await client.list_tools()]

    assert asyncio.run(listed()) == TOOLS + MORE_TOOLS


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
def test_every_protocol_revision_of_the_sdk_is_accepted(tmp_path: Path, version: str) -> None:
    async def called() -> Any:
        async with server(tmp_path, f"--version={version}") as client:
            return (await client.call_tool("unstructured", {})).value()

    assert asyncio.run(called()) == {"plain": True}


def test_an_unknown_protocol_revision_is_an_error(tmp_path: Path) -> None:
    async def connect() -> None:
        async with server(tmp_path, "--version=2031-01-01"):
            pytest.fail("an unknown revision was accepted")

    with pytest.raises(ServiceError, match="2031-01-01"):
        asyncio.run(connect())


def test_stored_text_is_returned_unchanged(tmp_path: Path) -> None:
    text = "two\nlines, a “quote” and 🪁"

    async def stored() -> Any:
        async with server(tmp_path) as client:
            await client.call_tool("remember", {"scope": "s", "id": "1", "text": text, "sources": []})
        async with server(tmp_path) as client:
            return (await client.call_tool("everything", {"scope": "s"})).value()

    assert asyncio.run(stored())["found"][0]["text"] == text


def test_a_slow_call_does_not_block_others(tmp_path: Path) -> None:
    async def answered() -> list[Any]:
        async with server(tmp_path) as client:
            slow = asyncio.create_task(client.call_tool("hang", {}))
            asked = [{"scope": "s", "id": str(n), "text": f"fact {n}", "sources": []} for n in range(20)]
            await asyncio.gather(*(client.call_tool("remember", one) for one in asked))
            greps = [client.call_tool("grep", {"scope": "s", "word": f"fact {n}"}) for n in range(10, 20)]
            found = [result.value()["found"] for result in await asyncio.gather(*greps)]
            assert not slow.done()
            slow.cancel()
            return found

    assert [[one["id"] for one in found] for found in asyncio.run(answered())] == [[str(n)] for n in range(10, 20)]


def test_the_error_of_a_crashed_server_quotes_its_error_output_without_secrets(tmp_path: Path) -> None:
    async def die() -> None:
        async with server(tmp_path) as client:
            with pytest.raises(ServiceError, match=r"status 7.*something broke") as first:
                await asyncio.gather(client.call_tool("die", {"saying": f"key {SECRET}"}), client.call_tool("hang", {}))
            assert not isinstance(first.value, Transient)
            assert SECRET not in str(first.value)
            with pytest.raises(ServiceError, match="status 7"):
                await client.call_tool("cancelled", {})

    asyncio.run(die())


def test_killing_the_server_fails_the_pending_calls(tmp_path: Path) -> None:
    async def kill() -> None:
        async with server(tmp_path) as client:
            pid = (await client.call_tool("environment", {})).value()["pid"]
            waiting = asyncio.create_task(client.call_tool("hang", {}))
            await client.call_tool("cancelled", {})
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(ServiceError, match="signal 9"):
                await waiting

    asyncio.run(kill())


def test_a_call_that_times_out_is_cancelled_and_uncertain(tmp_path: Path) -> None:
    async def hang() -> list[int]:
        async with server(tmp_path) as client:
            with pytest.raises(Transient) as raised:
                await client.call_tool("hang", {}, deadline=0.05)
            assert raised.value.uncertain
            cancelled: list[int] = (await client.call_tool("cancelled", {})).value()["ids"]
            return cancelled

    assert len(asyncio.run(hang())) == 1


def test_cancelling_the_task_cancels_the_call(tmp_path: Path) -> None:
    async def leave() -> list[int]:
        async with server(tmp_path) as client:
            call = asyncio.create_task(client.call_tool("hang", {}))
            await client.call_tool("cancelled", {})
            call.cancel()
            await asyncio.wait([call])
            cancelled: list[int] = (await client.call_tool("cancelled", {})).value()["ids"]
            return cancelled

    assert len(asyncio.run(leave())) == 1


def test_lines_that_are_not_messages_are_skipped(tmp_path: Path) -> None:
    async def garble() -> Any:
        async with server(tmp_path) as client:
            return (await client.call_tool("garble", {})).value()

    assert asyncio.run(garble()) == {"ok": True}


def test_a_reply_with_an_unknown_id_is_ignored(tmp_path: Path) -> None:
    async def mistake() -> None:
        async with server(tmp_path) as client:
            with pytest.raises(Transient):
                await client.call_tool("mistake", {}, deadline=0.05)
            await client.call_tool("cancelled", {})

    asyncio.run(mistake())


def test_a_message_above_the_cap_closes_the_connection(tmp_path: Path) -> None:
    async def flood() -> None:
        async with server(tmp_path, message_cap=FLOOD // 2) as client:
            for _ in range(2):
                with pytest.raises(Malformed):
                    await client.call_tool("flood", {})

    asyncio.run(flood())


def test_errors_of_tools_are_redacted(tmp_path: Path) -> None:
    async def fail() -> None:
        async with server(tmp_path) as client:
            with pytest.raises(ToolError, match=r"it failed: key \[redacted\]"):
                await client.call_tool("fail", {"saying": f"key {SECRET}"})
            with pytest.raises(ServiceError, match=r"-32602.*\[redacted\]") as raised:
                await client.call_tool("refuse", {"saying": SECRET})
            assert not isinstance(raised.value, ToolError)

    asyncio.run(fail())


def test_a_ping_of_the_server_is_answered(tmp_path: Path) -> None:
    async def ping_back() -> Any:
        async with server(tmp_path) as client:
            return (await client.call_tool("ping_back", {})).value()

    assert asyncio.run(ping_back()) == {"answered": True}


def test_the_server_gets_exactly_the_given_environment(tmp_path: Path) -> None:
    ours = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": SECRET}

    async def seen() -> Any:
        environment = child_environment(ours, {"MEMORY_FILE": "x"}, tmp_path / "home")
        async with server(tmp_path, env=environment) as client:
            return (await client.call_tool("environment", {})).value()

    saw = asyncio.run(seen())
    # Python itself may set LC_CTYPE
    assert set(saw["environment"]) - {"LC_CTYPE"} == {"PATH", "MEMORY_FILE", *PRIVATE_FOLDERS}
    assert saw["environment"]["MEMORY_FILE"] == "x"
    assert saw["environment"]["PATH"] == os.environ["PATH"]
    assert saw["cwd"] == str(tmp_path.resolve())


def test_the_server_ends_with_the_connection_even_if_it_ignores_the_end_of_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "GRACE", 0.05)

    async def pid_of(*options: str) -> int:
        async with server(tmp_path, *options) as client:
            pid: int = (await client.call_tool("environment", {})).value()["pid"]
            assert alive(pid)
            return pid

    for options in ((), ("--stubborn",)):
        assert not alive(asyncio.run(pid_of(*options)))


def test_abandon_all_kills_the_server(tmp_path: Path) -> None:
    async def leave() -> None:
        async with server(tmp_path) as client:
            programs.abandon_all()
            with pytest.raises(ServiceError, match="signal 9"):
                await client.call_tool("environment", {})

    asyncio.run(leave())


def test_a_missing_program_is_bad_input(tmp_path: Path) -> None:
    async def connect() -> None:
        async with open_mcp_stdio(["no-such-server"], {"PATH": "/nowhere"}, tmp_path, Redactor([])):
            pytest.fail("it was opened")

    with pytest.raises(BadInput) as raised:
        asyncio.run(connect())
    assert raised.value.where == '"no-such-server"'


def test_the_error_output_of_a_program_that_is_not_a_server_is_quoted(tmp_path: Path) -> None:
    async def connect() -> None:
        command = [sys.executable, "-c", "import sys; sys.exit('usage: wants a flag')"]
        async with open_mcp_stdio(command, {}, tmp_path, Redactor([])):
            pytest.fail("it was opened")

    with pytest.raises(ServiceError, match=r"status 1.*usage: wants a flag"):
        asyncio.run(connect())
