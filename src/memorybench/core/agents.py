"""Agents that are given a memory, and what is seen of them using it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal, Protocol

from .records import Record
from .spending import Spending
from .trials import Subject

Operation = Literal["remember", "update", "forget", "recall", "list", "curate"]


class ToolCall(Record):
    """One call of a tool, as seen by the recorder that stands between an agent and a store."""

    session: int
    tool: str
    operation: Operation | None = None
    """What it does to a memory; None: something else."""
    user: str
    arguments: Mapping[str, Any] = {}
    result: str = ""
    """What the agent was told."""
    ids: tuple[str, ...] = ()
    """What it wrote, or found, best first; of a curation: what goes."""
    texts: tuple[str, ...] = ()
    """What was found says."""
    refused: str | None = None
    """Why the store declined, in its own words."""
    error: str | None = None
    """What went wrong: with the call, the store or its transport."""
    seconds: float = 0.0


class Served(Protocol):
    """A store that agents can reach over MCP, for one session, with a recorder before it."""

    @property
    def url(self) -> str:
        """Streamable HTTP; whoever knows the address may use it."""
        ...

    @property
    def command(self) -> tuple[str, ...]:
        """A program that leads there over its standard streams."""
        ...

    @property
    def connected(self) -> bool:
        """Whether anybody has listed or called its tools."""
        ...

    @property
    def calls(self) -> Sequence[ToolCall]:
        """In the order in which they were made."""
        ...


Serve = Callable[[Path, int], AbstractAsyncContextManager[Served]]
"""Opens the store on a folder for the n-th session, and closes both."""


class Workplace(Record):
    """What an agent finds: a folder with files, a home of its own, and a memory."""

    folder: Path
    """Its working folder."""
    home: Path
    """What it keeps at home lies here, and is gone with the attempt: nothing of the user's is touched."""
    server_url: str
    server_command: tuple[str, ...]
    environment: Mapping[str, str] = {}
    """What its process is told beside what its config says."""


class AgentReply(Record):
    text: str
    transcript: str = ""
    """Its output as it came: claims about what it did can be checked there."""
    ended: Literal["answered", "max_turns"] = "answered"
    spent: Spending = Spending()
    tool_calls: tuple[str, ...] = ()
    """Tools that it says it has called, also those that are none of ours."""


class Agent(Protocol):
    """Something that acts on a prompt and may use tools. It does not know what is asserted of it."""

    @property
    def subject(self) -> Subject: ...

    async def turn(self, prompt: str, place: Workplace, *, session: int, max_turns: int) -> AgentReply:
        """What came of one prompt. An agent that breaks raises a ServiceError: it does not pass by doing nothing.

        Charges what it spent (`spending.charge`).
        """
        ...
