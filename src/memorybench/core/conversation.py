"""What was said, and what a memory made of it."""

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
    """What a memory that takes text is given, where the benchmark says so; None: lines of `speaker: text`."""


class Haystack(Record):
    """All that one memory scope holds."""

    id: str
    sessions: tuple[Session, ...]


class Memory(Record):
    """One thing a memory system gave back."""

    id: str
    content: str
    score: float | None = None
    sources: tuple[str, ...] | None = None
    """Ids of the sessions and turns it came from; None: the system does not say."""
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
    """How to ask for the value, where the dataset says so; it passes the same gates as a question of ours."""
