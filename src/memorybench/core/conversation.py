"""Conversations, and the memories made from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .records import Record, iso_date

# dataclasses, not Records: a benchmark has millions of turns, and making a Record takes several times as long


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a session."""

    role: str
    content: str
    speaker: str | None = None
    at: datetime | None = None
    id: str | None = None

    def plain(self) -> dict[str, Any]:
        """Return JSON-compatible data."""
        return {
            "role": self.role,
            "content": self.content,
            "speaker": self.speaker,
            "at": iso_date(self.at),
            "id": self.id,
        }


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation: its turns and its date."""

    id: str
    turns: tuple[Turn, ...]
    at: datetime | None = None
    render_text: Callable[[], str] | None = field(default=None, repr=False, compare=False)
    """Returns `text`; None: the benchmark defines no text. Called only when needed, because many providers do not use
    the text."""

    @property
    def text(self) -> str | None:
        """The text for providers that take text, if the benchmark defines one; None: they get `speaker: text` lines."""
        return None if self.render_text is None else self.render_text()

    def plain(self) -> dict[str, Any]:
        """Return JSON-compatible data."""
        turns = [turn.plain() for turn in self.turns]
        return {"id": self.id, "turns": turns, "at": iso_date(self.at), "text": self.text}


@dataclass(frozen=True, slots=True)
class Haystack:
    """The history of one memory scope: all its sessions."""

    id: str
    sessions: tuple[Session, ...]
    fingerprint: str | None = field(default=None, compare=False)
    """A digest of the data that the haystack was made from, if that is faster than a digest of its content; else
    None."""

    def plain(self) -> dict[str, Any]:
        """Return JSON-compatible data."""
        return {"id": self.id, "sessions": [session.plain() for session in self.sessions]}


class Memory(Record):
    """One item returned by a memory system."""

    id: str
    content: str
    score: float | None = None
    sources: tuple[str, ...] | None = None
    """The ids of the sessions and turns that the memory comes from; None if unknown."""
    chunks: tuple[str, ...] = ()


class Found(list[Memory]):
    """The memories of a search that stopped too early, because of a limit of the provider."""

    def __init__(self, memories: Iterable[Memory], shortfall: str) -> None:
        super().__init__(memories)
        self.shortfall = shortfall
        """Which limit, for the warning in the report."""
