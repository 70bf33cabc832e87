"""The `mcp` section of a provider config: how the server is reached, and which tools add, search, clear and list.

Field docstrings are the user's documentation, as in config/requests.py.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from memorybench.core.records import Record
from memorybench.mcp.config import ServerConnection, ToolCall

from .config.requests import Response


class AddTool(ToolCall):
    unit: Literal["session", "message"] = "session"
    """What one document is: a session or a message."""
    document: Any = None
    """The template of one document, for a tool that takes a list: `$.documents` in the arguments is the list for one
    session. Without it, the tool is called once per document."""


class SearchTool(ToolCall):
    query_words: bool = False
    """For a tool that finds only memories that contain the whole query: it is called once per keyword of the query,
    with the keyword as `query`. Memories are ordered by the number of keywords that found them (their score), then by
    text."""
    response: Response
    """How memories are read from the structured content of the result, else from its text, which must be JSON."""


class ListTool(ToolCall):
    response: Response
    """How memories are read from the result, as in a search."""


class Tools(Record):
    add: AddTool
    """Stores a session."""
    search: SearchTool
    """Finds memories."""
    clear: ToolCall | None = None
    """Deletes all memories of a scope. Not needed if each scope has its own process and folder, because then the folder
    is deleted."""
    list: ListTool | None = None
    """Lists all memories of a scope."""


class Mcp(ServerConnection):
    """An MCP server, started for the run or reached over HTTP."""

    command: tuple[str, ...] = ()
    """The program and its arguments. If they or `env` contain `${scopeFolder}`, each scope gets its own process and
    folder; else one process serves all scopes and may store its data in `${dataFolder}`. Requires --allow-code."""
    processes: int = Field(default=8, ge=1)
    """Maximum number of servers that run at the same time, if each scope has its own process."""
    tools: Tools
    """The tools for each operation."""
