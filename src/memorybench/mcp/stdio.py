"""Connect to an MCP server that is started as a child process.

The SDK's own `stdio_client` adds environment variables, does not limit message sizes and does not keep error output. So
this transport runs the program with `processes`; the SDK handles the messages.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.shared.message import SessionMessage

from memorybench.core.errors import Malformed, MemorybenchError
from memorybench.processes.programs import GRACE, Program, check_program, open_program
from memorybench.secrets.redaction import Redactor

from .client import DEADLINE, MESSAGE_CAP, ClientRole, McpClient, open_client

_SURROGATE = re.compile("[\ud800-\udfff]")


@asynccontextmanager
async def open_mcp_stdio(
    command: Sequence[str],
    env: Mapping[str, str],
    cwd: Path,
    redactor: Redactor,
    *,
    deadline: float = DEADLINE,
    message_cap: int = MESSAGE_CAP,
    role: ClientRole | None = None,
) -> AsyncIterator[McpClient]:
    """Start `command` with exactly the environment `env` and connect to it; on exit, end it with everything it started.

    `deadline` is the default timeout of a call in seconds; `message_cap` is the most bytes of a message.
    """
    where = Path(command[0]).name
    check_program(command[0], f'"{command[0]}"', path=env.get("PATH"))
    async with open_program(command, env=env, cwd=cwd, where=where, line_cap=message_cap) as program:
        failure: asyncio.Future[MemorybenchError] = asyncio.get_running_loop().create_future()

        async def find_failure(error: MCPError) -> MemorybenchError | None:
            if error.code != types.CONNECTION_CLOSED:
                return None
            await asyncio.wait([failure], timeout=2 * GRACE)  # the reader finds out why
            return failure.result() if failure.done() else None

        transport = _open_streams(program, redactor, message_cap, failure)
        async with open_client(transport, where, redactor, deadline, find_failure, role) as client:
            yield client


@asynccontextmanager
async def _open_streams(
    program: Program, redactor: Redactor, message_cap: int, failure: asyncio.Future[MemorybenchError]
) -> AsyncIterator[Any]:
    """Yield the streams of an SDK transport. `failure` is set before the stream of incoming messages ends."""
    incoming_writer, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, outgoing_reader = anyio.create_memory_object_stream[SessionMessage](0)

    async def read_messages() -> None:
        async with incoming_writer:
            try:
                while line := await program.stdout.readline():
                    try:
                        message = _parse_message(line)
                    except ValueError:
                        program.log(line)  # some servers print their log on standard output
                        continue
                    await incoming_writer.send(SessionMessage(message))
            except ValueError:  # the line is longer than the cap
                program.kill()  # it would wait forever for us to read the rest
                failure.set_result(Malformed(f"{program.where}: a message is larger than {message_cap:,} bytes"))
            else:
                failure.set_result(await program.exit_error(redactor))

    async def write_messages() -> None:
        async with outgoing_reader:
            async for item in outgoing_reader:
                try:
                    line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    program.stdin.write(line.encode() + b"\n")
                    await program.stdin.drain()
                except (BrokenPipeError, ConnectionResetError):
                    return

    async with anyio.create_task_group() as tasks, incoming, outgoing:
        tasks.start_soon(read_messages)
        tasks.start_soon(write_messages)
        yield incoming, outgoing
        tasks.cancel_scope.cancel()


def _parse_message(line: bytes) -> types.JSONRPCMessage:
    """Parse a line as a message; raise ValueError if it is none. A lone surrogate becomes U+FFFD."""
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        if b"\\u" not in line:
            raise
    try:
        text = json.dumps(json.loads(line), ensure_ascii=False)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return types.jsonrpc_message_adapter.validate_json(_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text), by_name=False)
