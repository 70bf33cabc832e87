"""Protocols for memory extractors and for sources of their traces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, runtime_checkable

from .conversation import Turn
from .records import Record
from .trials import Subject

MemoryState = Any
"""The content of a memory as JSON: an object (which may be nested), a list of texts, or one text. Each innermost value
is a fact."""


class MemoryInText(NamedTuple):
    """A memory that was found as JSON inside a longer text, such as a model's reply that begins with a sentence."""

    memory: MemoryState


@runtime_checkable
class Extractor(Protocol):
    """Updates a memory from a conversation. It does not see the expected memory.

    `extract` returns the updated memory, as MemoryInText if it was JSON inside a longer text.
    """

    @property
    def subject(self) -> Subject: ...

    async def extract(self, existing: MemoryState, conversation: Sequence[Turn]) -> MemoryState: ...


class Trace(Record):
    """One recorded extraction: input and output."""

    id: str
    conversation: tuple[Turn, ...]
    existing: Any = None
    output: Any = None
    at: datetime | None = None


class UnusableTrace(Trace):
    """A trace that cannot be judged, because of `problem`. Its trial fails; the run continues with the other traces."""

    problem: str
    missing: str = ""
    """The command-line option, such as `--output-path`, whose JSONPath finds nothing in the trace; "" if every JSONPath
    finds something, but a value is invalid."""


class TraceSource(Protocol):
    @property
    def subject(self) -> Subject: ...

    def traces(self) -> AsyncIterator[Trace]:
        """Yield all traces, oldest first if the source can sort. A page is requested only when it is needed."""
        ...


class FeedbackSink(Protocol):
    """Sends scores back to the source of a trace."""

    async def post(self, trace: str, name: str, value: float, counts: Mapping[str, float], comment: str) -> None:
        """Send one score of a trace, with counts that explain it.

        The id of the score is derived from `trace` and `name`, so that a repeated call creates no second score.
        """
        ...
