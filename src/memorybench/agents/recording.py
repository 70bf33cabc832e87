"""Runs any program together with a memory server that records the program's tool calls."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from memorybench.core.agents import Serve, ToolCall
from memorybench.core.errors import BadInput, ServiceError
from memorybench.files.templates import Template
from memorybench.processes.programs import GRACE, describe_exit

VARIABLES = frozenset({"serverUrl", "serverCommand", "mcpConfig"})
URL, COMMAND = "MEMORYBENCH_MCP_URL", "MEMORYBENCH_MCP_COMMAND"

STDERR = 2
"""The file descriptor of standard error."""


async def watch(
    command: Sequence[str],
    serve: Serve,
    store: Path,
    *,
    folder: Path,
    environment: Mapping[str, str],
    quiet: bool = False,
) -> tuple[ToolCall, ...]:
    """Run `command` together with a memory server for the store in the folder `store`; return its tool calls.

    The command runs in `folder`, with the standard streams of this process and all of `environment`; with `quiet`, its
    output goes to standard error. `${serverUrl}`, `${serverCommand}` and `${mcpConfig}` (JSON) in its arguments, and
    the environment variables whose names are URL and COMMAND, tell it how to connect to the server.
    """
    templates = [Template.parse(word, VARIABLES, "COMMAND") for word in command]
    async with serve(store, 1) as served:
        server_command = shlex.join(served.command)
        servers = {"mcpServers": {"memory": {"type": "http", "url": served.url}}}
        values = {"serverUrl": served.url, "serverCommand": server_command, "mcpConfig": json.dumps(servers)}
        status = await _run(
            [template.render(values) for template in templates],
            folder,
            {**environment, URL: served.url, COMMAND: server_command},
            quiet=quiet,
        )
        if status != 0:
            raise ServiceError(f"{command[0]}: {describe_exit(status)}; no draft was written")
        if not served.connected:
            raise ServiceError(
                f"{command[0]}: the agent did not connect to the memory server; write ${{serverUrl}},"
                f" ${{serverCommand}} or ${{mcpConfig}} in the command after --,"
                f" or let the agent read ${URL} or ${COMMAND}"
            )
        return tuple(served.calls)


async def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str], *, quiet: bool) -> int:
    # not by `run_program`: it keeps the user's terminal, so it also receives the user's Ctrl-C itself
    try:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=folder, env=dict(environment), stdout=STDERR if quiet else None
        )
    except OSError as error:
        raise BadInput(
            f'"{command[0]}"', f"the program cannot be started: {error.strerror}", remedy="check the command after --"
        ) from None
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                with suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), GRACE)
            finally:
                if process.returncode is None:
                    process.kill()
            await process.wait()
