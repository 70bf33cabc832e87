"""Protocols for agents that use a memory, and the record of their tool calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal, Protocol

from .records import Record
from .spending import Spending
from .trials import Subject

Operation = Literal["remember", "update", "forget", "recall", "list", "curate"]

ToolSurface = Literal["ours", "server"]
"""Which tools an agent gets. ours: memorybench's tools, the same for every store. server: those of the store's MCP
server."""


class MemoryOperation(Record):
    """A memory operation that a tool of the store's MCP server performed, named as memorybench's own tool is named.

    The store's config says which operation a tool performs, such as `remember` for a tool `add_memories`.
    """

    operation: Operation
    user: str
    arguments: Mapping[str, Any] = {}
    ids: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


class ToolCall(Record):
    """One tool call, recorded by the proxy between an agent and a store."""

    session: int
    tool: str
    operation: Operation | None = None
    """The memory operation, if one of memorybench's own tools was called; None for any other tool (see `parts`)."""
    user: str
    arguments: Mapping[str, Any] = {}
    result: str = ""
    """The text that the tool returned to the agent."""
    ids: tuple[str, ...] = ()
    """The ids of facts that were written or found, best first; for a curation, of facts that were removed."""
    texts: tuple[str, ...] = ()
    """The contents of the facts that were found."""
    refused: str | None = None
    """The store's message if it refused the call; None if it did not."""
    error: str | None = None
    """The error message if the call, the store or the connection failed; None if nothing failed."""
    seconds: float = 0.0
    parts: tuple[MemoryOperation, ...] = ()
    """The memory operations that a tool of the store's MCP server performed, according to the store's config. Empty for
    memorybench's tools, and for tools that the config does not name."""

    def as_operations(self) -> tuple[ToolCall, ...]:
        """Return one ToolCall per memory operation in `parts`; if `parts` is empty, return only this call."""
        if not self.parts:
            return (self,)
        return tuple(self.model_copy(update={**dict(part), "parts": ()}) for part in self.parts)


class Served(Protocol):
    """A running MCP server that passes the tool calls of one agent session to a store, and records them."""

    @property
    def url(self) -> str:
        """The address for MCP over Streamable HTTP.

        It needs no password: any program that knows it can use the store.
        """
        ...

    @property
    def command(self) -> tuple[str, ...]:
        """The command line of a program that offers the same server over stdio, for agents that do not support HTTP."""
        ...

    @property
    def connected(self) -> bool:
        """Whether the agent has listed the tools or called one."""
        ...

    @property
    def calls(self) -> Sequence[ToolCall]:
        """The agent's tool calls so far, in order."""
        ...


Serve = Callable[[Path, int], AbstractAsyncContextManager[Served]]
"""A function that serves a store to one session of an agent. Its arguments are the store's folder and the number of the
session."""


class Workplace(Record):
    """What a turn of an agent may use: a working folder, a home folder, and a memory server."""

    folder: Path
    """The working folder."""
    home: Path
    """A temporary home folder, so that the user's files are not touched."""
    server_url: str = ""
    """The address of the memory server; empty if the agent uses its own memory files, which are in `home`."""
    server_command: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    """Environment variables in addition to those of the agent's config."""


class AgentReply(Record):
    text: str
    transcript: str = ""
    """The raw output of the agent."""
    ended: Literal["answered", "max_turns"] = "answered"
    spent: Spending = Spending()
    tool_calls: tuple[str, ...] = ()
    """The names of all tools that the agent's output says it called, not only memory tools."""
    memory_writes: tuple[Any, ...] = ()
    """The arguments of each call in the agent's output that writes to a memory: to the store, or to the agent's own."""


class Agent(Protocol):
    """A program that acts on prompts and may call tools. It does not see which result the scenario expects."""

    @property
    def subject(self) -> Subject: ...

    async def turn(self, prompt: str, place: Workplace, *, session: int, max_turns: int) -> AgentReply:
        """Send one prompt to the agent and return its reply. Raise ServiceError if the agent fails.

        The cost is charged with `spending.charge`.
        """
        ...
