"""The context of an item: sessions and turns, the ids and numbers that evidence refers to, and what is not read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from msgspec import Struct, field

from memorybench.core.conversation import Session

from .turns import KeptSession, MarkedTurn

_NOT_WORDS = re.compile(r"(?:[^\w+#%&@$€£¥°=<>-]|_|-(?!\d)|(?<=\w)-)+")
"""Matches what `words_of` replaces by a blank. Signs that change the meaning are not matched: C++ is not C#, -5 not
5."""


class ItemContext(Struct, eq=False, dict=True):
    """The sessions of an item and the ids that evidence refers to. ContextReader adds the sessions one by one.

    The sessions are created when they are first needed, because reading the questions of a file does not need them.
    """

    make_session: Callable[[KeptSession], Session]
    turn_id: Callable[[KeptSession, int, Any], str]
    """Returns the id of a turn, for its session, its index in the session and its fields."""
    speaker_separator: str | None = None
    kept: list[KeptSession] = field(default_factory=list)
    """The sessions with turns."""
    sessions_named: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The session ids that memorybench assigned, by the id in the data; several if the data repeats the id."""
    marked: dict[str, MarkedTurn] = field(default_factory=dict)
    """The turns that the data marks as evidence, by turn id."""
    turn_count: int = 0
    """Number of turns with content."""
    raw_turn_count: int = 0
    """Number of turns, including empty ones."""
    numbered_sessions: dict[int, str] = field(default_factory=dict)
    """The ids of sessions by their number in the data: counted from 0, or in an object, the number in their key. Empty
    sessions have a number and no id."""
    numbered_session_count: int = 0
    """Number of sessions, including empty ones; in an object, one more than the highest number of a key."""
    first_key: int | None = None
    """Lowest number of a key, if sessions are in an object."""
    irregularities: Counter[str] = field(default_factory=Counter)
    """How often each kind of irregularity occurs; item_reader.py names the kinds and has a note for each."""
    unknown_keys: list[str] = field(default_factory=list)
    """Keys of an object that are neither sessions nor dates."""
    session_fields: dict[str, None] = field(default_factory=dict)
    """All fields of sessions that are objects, whether a path of the config reads them or not."""
    speakers: Counter[str | None] = field(default_factory=Counter)
    """Number of turns by the speaker that their text begins with; None: turns that begin without one."""

    @cached_property
    def sessions(self) -> tuple[Session, ...]:
        return tuple(map(self.make_session, self.kept))

    @cached_property
    def dates(self) -> Sequence[datetime]:
        """The dates of the sessions that have one, in the order of the sessions, with a time zone."""
        return [comparable(session.at) for session in self.kept if session.at is not None]

    @cached_property
    def newest_date(self) -> datetime | None:
        return max(self.dates, default=None)

    @cached_property
    def session_of(self) -> Mapping[str, str]:
        """The id of each turn's session, by turn id."""
        return {turn.id or "": session.id for session in self.sessions for turn in session.turns}

    @cached_property
    def turn_texts(self) -> Mapping[str, str]:
        """The text of each turn, to find evidence that is text; begins with the speaker if it does so in the data."""
        separator = self.speaker_separator
        return {
            turn.id or "": f"{turn.speaker}{separator} {turn.content}".strip()
            if separator and turn.speaker
            else turn.content.strip()
            for session in self.sessions
            for turn in session.turns
        }

    @cached_property
    def turn_words(self) -> Mapping[str, str]:
        return {id: words_of(text) for id, text in self.turn_texts.items()}

    @cached_property
    def numbered_turns(self) -> Mapping[int, str]:
        """The ids of turns by their number in the data, from 0. Empty turns have a number and no id."""
        return {
            session.turns_before + index: self.turn_id(session, index, fields)
            for session in self.kept
            for index, fields in session.turns
        }

    def raw_turns(self) -> Iterator[Any]:
        """Yield the turns as the data has them."""
        return (turn for session in self.kept for turn in session.raw.turns)


def words_of(text: str) -> str:
    """Return the words of a text in lower case, without punctuation, but with signs such as + and %."""
    return _NOT_WORDS.sub(" ", text.casefold()).strip()


def comparable(at: datetime) -> datetime:
    """Return the date with a time zone: UTC if it has none."""
    return at if at.tzinfo else at.replace(tzinfo=UTC)
