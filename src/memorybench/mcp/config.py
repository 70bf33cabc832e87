"""The part of an `mcp` config section that providers and stores share: how the server is reached.

Field docstrings are the user's documentation: docs/config-keys.md and the JSON Schema show them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.files.located import Document
from memorybench.http.config import Headers
from memorybench.processes.programs import check_no_private_folder


class ToolCall(Record):
    """A call of a tool. Variables: `${name}` inside text, `$.name` for a whole value that keeps its type."""

    tool: str
    """The tool's name."""
    arguments: Mapping[str, Any] = Field(default_factory=dict)
    """Its arguments. A key whose variable has no value is left out."""


class ServerConnection(Record):
    """How an MCP server is started or reached."""

    command: tuple[str, ...] = ()
    """The program and its arguments."""
    env: Mapping[str, str] = Field(default_factory=dict)
    """Environment variables of the program. It also gets PATH and a few others, but none of your keys. HOME, TMPDIR and
    the XDG folders are private folders, which are deleted afterwards."""
    install: str = ""
    """How to install the program; shown if it is missing."""
    url: str | None = None
    """Instead of `command`: the URL of a server (streamable HTTP)."""
    headers: Headers = Field(default_factory=dict)
    """Headers of every request to `url`, such as `Authorization: Bearer ${MY_KEY}`."""
    timeout: int = Field(default=60_000, ge=1)
    """Timeout of a call, in milliseconds."""


def check_connection(connection: ServerConnection, part: Document) -> None:
    """Raise BadInput unless the section has either a command or a URL, and only the keys for that."""
    if bool(connection.command) == bool(connection.url):
        raise BadInput(part.where(), "expected exactly one of command and url", remedy="write one of the two")
    check_no_private_folder(connection.env, lambda name: part.where("env", name))
    for name in ("env", "install") if connection.url else ("headers",):
        if getattr(connection, name):
            raise BadInput(
                part.where(name),
                f"{name} has no effect with {'url' if connection.url else 'command'}",
                remedy="remove it",
            )
