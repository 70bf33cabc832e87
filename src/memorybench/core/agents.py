"""Contracts for agents that use a memory, and the record of their calls."""

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
"""Which tools an agent gets: ours for every store, or those of the MCP server itself."""


class MemoryOperation(Record):
    """One operation that a call of a server's own tool performs, in the terms of our tools."""

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
    """The memory operation; None for any other tool."""
    user: str
    arguments: Mapping[str, Any] = {}
    result: str = ""
    """The text returned to the agent."""
    ids: tuple[str, ...] = ()
    """Ids written or found, best first; for a curation, ids removed."""
    texts: tuple[str, ...] = ()
    """Contents of the facts found."""
    refused: str | None = None
    """The store's message, if it refused the call."""
    error: str | None = None
    """The error, if the call, the store or the transport failed."""
    seconds: float = 0.0
    parts: tuple[MemoryOperation, ...] = ()
    """What a call of a server's own tool does, by the store's binding. Empty for our tools and unknown tools."""

    def as_operations(self) -> tuple[ToolCall, ...]:
        """Return one call per memory operation, with the arguments that our own tool would have."""
        if not self.parts:
            return (self,)
        return tuple(self.model_copy(update={**dict(part), "parts": ()}) for part in self.parts)


class Served(Protocol):
    """A store behind a recording MCP proxy, for one session."""

    @property
    def url(self) -> str:
        """Streamable HTTP address; anyone who knows it can use it."""
        ...

    @property
    def command(self) -> tuple[str, ...]:
        """A program that connects to it over stdio."""
        ...

    @property
    def connected(self) -> bool:
        """Whether its tools were listed or called."""
        ...

    @property
    def calls(self) -> Sequence[ToolCall]:
        """The agent's tool calls so far, in order."""
        ...


Serve = Callable[[Path, int], AbstractAsyncContextManager[Served]]
"""Opens the store in a folder for the n-th session."""


class Workplace(Record):
    """What an agent gets: a working folder, a home folder, and a memory server."""

    folder: Path
    """The working folder."""
    home: Path
    """A temporary home folder, so that the user's files are not touched."""
    server_url: str = ""
    """"": the agent uses its own memory files, which are in `home`."""
    server_command: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    """Environment variables in addition to those of its config."""


class AgentReply(Record):
    text: str
    transcript: str = ""
    """The raw output."""
    ended: Literal["answered", "max_turns"] = "answered"
    spent: Spending = Spending()
    tool_calls: tuple[str, ...] = ()
    """Tools that the agent reports as called, including its own."""
    memory_writes: tuple[Any, ...] = ()
    """Arguments of the calls by which the agent reports to write to a memory, including its own."""


class Agent(Protocol):
    """Acts on a prompt and may use tools. It does not see the assertions."""

    @property
    def subject(self) -> Subject: ...

    async def turn(self, prompt: str, place: Workplace, *, session: int, max_turns: int) -> AgentReply:
        """Perform one prompt. A broken agent raises ServiceError. Charges its cost with `spending.charge`."""
        ...
