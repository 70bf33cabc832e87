"""What an extractor is given, and where its traces come from."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from .conversation import Turn
from .records import Record
from .trials import Subject

MemoryState = Any
"""A memory as JSON: blocks of any nesting, lists of texts, or plain text. Its leaves are what it says."""


@runtime_checkable
class Extractor(Protocol):
    """Reads a conversation and gives back the memory as it should be afterwards. It sees no gold."""

    @property
    def subject(self) -> Subject: ...

    async def extract(self, existing: MemoryState, conversation: Sequence[Turn]) -> MemoryState: ...


class Trace(Record):
    """One extraction that happened somewhere: what went in, and what came out."""

    id: str
    conversation: tuple[Turn, ...]
    existing: Any = None
    output: Any = None
    at: datetime | None = None


class TraceSource(Protocol):
    @property
    def subject(self) -> Subject: ...

    def traces(self) -> AsyncIterator[Trace]:
        """Page by page, oldest first where the source can sort."""
        ...


class FeedbackSink(Protocol):
    """Takes scores back to where a trace came from."""

    async def post(self, trace: str, scores: Mapping[str, float], comment: str) -> None:
        """Safe to repeat: the same trace and score get the same id."""
        ...
