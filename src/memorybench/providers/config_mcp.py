"""The part of a provider config that speaks of an MCP server: how it is reached, and which tools do what.

Field docstrings are the user's documentation, as in config_requests.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from .config.requests import Response, Section


class ToolCall(Section):
    """One call of a tool, in templates: `${name}` inside text, `$.name` for a whole value that keeps its type."""

    tool: str
    """The tool's name."""
    arguments: Mapping[str, Any] = Field(default_factory=dict)
    """Its arguments. A key whose variable has no value is left out."""


class AddTool(ToolCall):
    unit: Literal["session", "message"] = "session"
    """What a document is: a whole session, or one message of it."""
    document: Any = None
    """The template of one document, for a tool that takes many: `$.documents` in the arguments is the list of those of
    one session. Without it, the tool is called for each document."""


class SearchTool(ToolCall):
    query_words: bool = False
    """For a search that finds only what holds the query as it stands: the tool is called for each telling word of the
    query, which is then `query`, and what more of the words have found comes first; what as many have found is ordered
    by its text. The score is the number of words."""
    response: Response
    """How memories are read from the structured content of the result, else from its text, which must be JSON."""


class ListTool(ToolCall):
    response: Response
    """How memories are read from the result, as in a search."""


class Tools(Section):
    add: AddTool
    """Stores a session."""
    search: SearchTool
    """Finds memories."""
    clear: ToolCall | None = None
    """Forgets a scope; needed unless each scope has a process of its own, whose folder is deleted."""
    list: ListTool | None = None
    """Gives all that a scope holds."""


class Mcp(Section):
    """An MCP server, which is started for the run or asked over HTTP."""

    command: tuple[str, ...] = ()
    """The program and its arguments. Where `${scopeFolder}` stands in them or in `env`, each scope gets a process and a
    folder of its own; else one process serves all scopes, and may keep its data in `${dataFolder}`."""
    env: Mapping[str, str] = Field(default_factory=dict)
    """Environment variables of the program. Beside these it sees PATH, HOME and the like, and none of your keys."""
    install: str = ""
    """How the program is installed; shown where it is missing."""
    processes: int = Field(default=8, ge=1)
    """Processes that run at once, where each scope has one."""
    url: str | None = None
    """In the place of `command`: where a server answers over HTTP (streamable HTTP)."""
    headers: Mapping[str, str] = Field(default_factory=dict)
    """Headers of every request to `url`, such as `Authorization: Bearer ${MY_KEY}`."""
    timeout: int = Field(default=60_000, ge=1)
    """Milliseconds that a call may take."""
    tools: Tools
    """Which tool does what."""
