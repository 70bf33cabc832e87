"""Operations on a memory that happened elsewhere, as traces recorded them."""

from __future__ import annotations

from datetime import datetime

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
