"""Operations on a memory that happened elsewhere, as traces recorded them."""

from __future__ import annotations

from datetime import datetime

from .extraction import Trace
from .records import Record


class MemorySearch(Record):
    """One search of an agent in its memory, and what the agent said afterwards."""

    id: str
    trace: str
    store: str = ""
    query: str = ""
    records: tuple[str, ...] | None = None
    """The texts of the memories that were found, best first; None: they were not exported."""
    count: int | None = None
    """How many memories were found; None: unknown."""
    reply: str | None = None
    """None: it was not exported, or there is none."""
    is_error: bool = False
    at: datetime | None = None


class MemoryWrite(Record):
    """What an agent wrote into its memory from one conversation."""

    id: str
    trace: str
    store: str = ""
    extraction: Trace | None = None
    """The conversation and what was written; None: it cannot be judged."""
    problem: str = ""
    """Why it cannot be judged."""
    count: int | None = None
    """How many memories were written; None: unknown."""
    is_error: bool = False
    """Whether one of the writes failed."""
    at: datetime | None = None
