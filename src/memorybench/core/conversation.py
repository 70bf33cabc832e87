"""Conversations, and the memories made from them."""

from collections.abc import Callable, Iterable, Iterator
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
    """A function that returns `text`; None if the benchmark defines no text. Called only when a provider reads `text`,
    because many do not."""

    @property
    def text(self) -> str | None:
        """The session as one text, for providers that take text. None: the provider joins the turns itself."""
        return None if self.render_text is None else self.render_text()

    def named_turns(self) -> Iterator[tuple[str, Turn]]:
        """Yield the turns with their ids; the id of one without is made of its place in the session: `s1:3`."""
        for place, turn in enumerate(self.turns, start=1):
            yield (turn.id if turn.id is not None else f"{self.id}:{place}"), turn

    def plain(self) -> dict[str, Any]:
        """Return JSON-compatible data."""
        turns = [turn.plain() for turn in self.turns]
        return {"id": self.id, "turns": turns, "at": iso_date(self.at), "text": self.text}


@dataclass(frozen=True, slots=True)
class Haystack:
    """The sessions that are added to a memory before questions about them are asked."""

    id: str
    sessions: tuple[Session, ...]
    fingerprint: str | None = field(default=None, compare=False)
    """A digest of the data that the haystack was made from, if it is quicker to compute than a digest of the sessions;
    otherwise None."""

    def plain(self) -> dict[str, Any]:
        """Return JSON-compatible data."""
        return {"id": self.id, "sessions": [session.plain() for session in self.sessions]}


class Memory(Record):
    """One item that a memory system returns from a search or a listing."""

    id: str
    content: str
    score: float | None = None
    sources: tuple[str, ...] | None = None
    """The ids of the sessions and turns that the memory comes from; None if unknown."""
    chunks: tuple[str, ...] = ()


class Found(list[Memory]):
    """A list of found memories that is incomplete, because a limit of the provider ended the search early."""

    def __init__(self, memories: Iterable[Memory], shortfall: str) -> None:
        super().__init__(memories)
        self.shortfall = shortfall
        """Which limit ended the search; the report shows it as a warning."""
