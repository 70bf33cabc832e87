"""An agent's memory searches and memory writes, read from the traces that the agent's program exported."""

from __future__ import annotations

from datetime import datetime

from .extraction import Trace
from .records import Record


class MemorySearch(Record):
    """One search of an agent in its memory, and the agent's reply after it."""

    id: str
    trace: str
    store: str = ""
    query: str = ""
    records: tuple[str, ...] | None = None
    """The texts of the memories that were found, best first; None if the trace does not contain them."""
    count: int | None = None
    """The number of memories that were found; None if unknown."""
    reply: str | None = None
    """The agent's reply after the search; None if there was none, or the trace does not contain it."""
    is_error: bool = False
    at: datetime | None = None


class MemoryWrite(Record):
    """What an agent wrote into its memory from one conversation."""

    id: str
    trace: str
    store: str = ""
    extraction: Trace | None = None
    """The conversation and the memories written from it; None if the write cannot be judged."""
    problem: str = ""
    """Why the write cannot be judged; empty if it can."""
    count: int | None = None
    """The number of memories that were written; None if unknown."""
    is_error: bool = False
    """Whether at least one of the agent's write operations failed."""
    at: datetime | None = None
