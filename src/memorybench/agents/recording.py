"""Any program behind the recorder, as its user would run it, to see what it does with a memory."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from memorybench.core.agents import Serve, Served, ToolCall
from memorybench.core.errors import BadInput, ServiceError
from memorybench.files.templates import Template
from memorybench.processes.programs import ended

VARIABLES = frozenset({"serverUrl", "serverCommand", "mcpConfig"})
URL, COMMAND = "MEMORYBENCH_MCP_URL", "MEMORYBENCH_MCP_COMMAND"


async def watch(
    command: Sequence[str], serve: Serve, store: Path, *, folder: Path, environment: Mapping[str, str]
) -> tuple[ToolCall, ...]:
    """What `command` does with the memory in `store`. It runs in `folder`, with our streams and all of `environment`.

    Where the memory is, it is told by `${serverUrl}`, `${serverCommand}` and `${mcpConfig}` (JSON) in its arguments,
    and by environment variables.
    """
    templates = [Template.parse(word, VARIABLES, "COMMAND") for word in command]
    async with serve(store, 1) as served:
        values = _values(served)
        told = {URL: served.url, COMMAND: shlex.join(served.command)}
        status = await _run([one.render(values) for one in templates], folder, {**environment, **told})
        if status != 0:
            raise ServiceError(f"{command[0]}: ended with status {status}; nothing is written")
        if not served.connected:
            raise ServiceError(
                f"{command[0]}: it never connected to the memory; tell it by ${{serverUrl}}, ${{mcpConfig}} or ${URL}"
            )
        return tuple(served.calls)


def _values(served: Served) -> dict[str, str]:
    servers = {"mcpServers": {"memory": {"type": "http", "url": served.url}}}
    return {
        "serverUrl": served.url,
        "serverCommand": shlex.join(served.command),
        "mcpConfig": json.dumps(servers),
    }


async def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> int:
    try:
        process = await asyncio.create_subprocess_exec(*command, cwd=folder, env=dict(environment))
    except OSError as error:
        raise BadInput(f'"{command[0]}"', f"can not be started: {error.strerror}") from None
    try:
        return await process.wait()
    finally:
        # not a group of its own: it has the user's terminal, and hears the user's Ctrl-C by itself
        if process.returncode is None:
            process.terminate()
            try:
                await ended(process)
            finally:
                if process.returncode is None:
                    process.kill()
            await process.wait()
