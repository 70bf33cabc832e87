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
"""Which tools an agent gets: `ours`, the same for every store, or those of the MCP `server` itself."""


class MemoryOperation(Record):
    """One memory operation of a call of a server's own tool, described as a call of our tools."""

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
    """The memory operation that the tool performs; None for other tools."""
    user: str
    arguments: Mapping[str, Any] = {}
    result: str = ""
    """The text that the tool returned to the agent."""
    ids: tuple[str, ...] = ()
    """The ids of facts that were written or found, best first; for a curation, of facts that were removed."""
    texts: tuple[str, ...] = ()
    """The contents of the facts that were found."""
    refused: str | None = None
    """The message of the store if it refused the call; otherwise None."""
    error: str | None = None
    """The error if the call, the store or the connection failed; otherwise None."""
    seconds: float = 0.0
    parts: tuple[MemoryOperation, ...] = ()
    """The memory operations of a call of a server's own tool, as the store's binding maps them. Empty for our tools and
    for unknown tools."""

    def as_operations(self) -> tuple[ToolCall, ...]:
        """Return one call per memory operation, with the arguments that our own tool would have."""
        if not self.parts:
            return (self,)
        return tuple(self.model_copy(update={**dict(part), "parts": ()}) for part in self.parts)


class Served(Protocol):
    """A store behind an MCP proxy that records the calls of one session."""

    @property
    def url(self) -> str:
        """The Streamable HTTP address. Anyone who knows it can use it."""
        ...

    @property
    def command(self) -> tuple[str, ...]:
        """The command line of a program that connects to the server over stdio."""
        ...

    @property
    def connected(self) -> bool:
        """Whether a client has listed or called the tools."""
        ...

    @property
    def calls(self) -> Sequence[ToolCall]:
        """The agent's tool calls so far, in order."""
        ...


Serve = Callable[[Path, int], AbstractAsyncContextManager[Served]]
"""Serves the store in a folder to one session of an agent. The arguments are the folder and the session's number."""


class Workplace(Record):
    """What an agent gets for a run: a working folder, a home folder, and a memory server."""

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
    """The names of the tools that the agent reports to have called, including its own tools."""
    memory_writes: tuple[Any, ...] = ()
    """The arguments of reported calls that write to a memory, including the agent's own memory."""


class Agent(Protocol):
    """Acts on a prompt and may use tools. It does not see the assertions of a scenario."""

    @property
    def subject(self) -> Subject: ...

    async def turn(self, prompt: str, place: Workplace, *, session: int, max_turns: int) -> AgentReply:
        """Perform one prompt and return the reply. Raise ServiceError if the agent fails.

        The cost is charged with `spending.charge`.
        """
        ...
