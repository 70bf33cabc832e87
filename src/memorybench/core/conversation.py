"""Conversations, and the memories and facts made from them."""

from __future__ import annotations

from datetime import datetime

from .records import Record


class Turn(Record):
    role: str
    content: str
    speaker: str | None = None
    at: datetime | None = None
    id: str | None = None


class Session(Record):
    id: str
    turns: tuple[Turn, ...]
    at: datetime | None = None
    text: str | None = None
    """The text for providers that take text, if the benchmark defines it; None means lines of `speaker: text`."""


class Haystack(Record):
    """The conversation history of one memory scope."""

    id: str
    sessions: tuple[Session, ...]


class Memory(Record):
    """One item returned by a memory system."""

    id: str
    content: str
    score: float | None = None
    sources: tuple[str, ...] | None = None
    """Ids of the sessions and turns it came from; None if unknown."""
    chunks: tuple[str, ...] = ()


class Fact(Record):
    id: str
    content: str
    at: datetime | None = None
    supersedes: str | None = None
    category: str | None = None
    subject: str | None = None
    attribute: str | None = None
    value: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    question: str | None = None
    """A question that asks for the value, if the dataset has one. It must pass the same checks as generated ones."""
