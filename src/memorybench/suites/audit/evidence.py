"""Finds the turns of a conversation that state a fact, and the words that occur in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from memorybench.core.conversation import Turn
from memorybench.datasets.audit import AuditConversation, AuditFact

from .words import MONTHS, WEEKDAYS, akin, content, keys


@dataclass(frozen=True)
class IndexedConversation:
    """A conversation with an index of its words."""

    conversation: AuditConversation
    turn_keys: tuple[frozenset[str], ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "turn_keys", tuple(frozenset(keys(turn.content)) for turn in self.conversation.turns))

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The keys of all words of turns, speakers and facts."""
        spoken = frozenset().union(*self.turn_keys) if self.turn_keys else frozenset()
        speakers = (turn.speaker or "" for turn in self.conversation.turns)
        facts = (
            " ".join(filter(None, (fact.content, fact.subject, fact.attribute, fact.value)))
            for fact in self.conversation.facts
        )
        return spoken | frozenset(key for text in (*speakers, *facts) for key in keys(text))

    @cached_property
    def speakers(self) -> frozenset[str]:
        return frozenset(turn.speaker for turn in self.conversation.turns if turn.speaker)

    def without_speakers(self, text: str) -> frozenset[str]:
        """Return the content words without the names of the speakers, which occur everywhere."""
        return content(text) - frozenset(keys(" ".join(self.speakers)))

    @cached_property
    def now(self) -> datetime | None:
        """When the conversation ends: the date of its last dated turn, else of its last dated fact."""
        turns = [turn.at for turn in self.conversation.turns if turn.at is not None]
        return max(turns or [fact.at for fact in self.conversation.facts if fact.at is not None], default=None)

    def has_any(self, texts: Iterable[str]) -> bool:
        """Return whether a content word of the texts occurs, in any inflection or as the beginning of a longer word."""
        searched = frozenset().union(*(content(text) for text in texts))
        prefixes = tuple(word for word in searched if len(word) >= 5)
        return bool(searched & self.vocabulary) or any(key.startswith(prefixes) for key in self.vocabulary if prefixes)

    def place(self, turn_id: str) -> int | None:
        return self._places.get(turn_id)

    @cached_property
    def _places(self) -> dict[str, int]:
        turns = reversed(tuple(enumerate(self.conversation.turns)))  # the first turn of a repeated id counts
        return {turn.id: place for place, turn in turns if turn.id is not None}

    def gold(self, fact: AuditFact, value: str) -> tuple[int, ...]:
        """Return the places of the turns that state this value of this fact; empty if there are none.

        If the dataset names the turn, it is that one, with its neighbours if a question and its answer state the value
        only together. Otherwise it is the turn that shares most words with the fact among those that contain every
        content word of the value and another word of the fact.
        """
        expected = content(value)
        if not expected:
            return ()
        if fact.turn is not None and (named := self.place(fact.turn)) is not None:
            spans = [(named,), (named - 1, named), (named, named + 1), (named - 1, named, named + 1)]
            inside = (tuple(place for place in span if 0 <= place < len(self.turn_keys)) for span in spans)
            return next((span for span in inside if self._states(span, expected, value)), ())
        rest = content(fact.content) - expected
        best: tuple[int, ...] = ()
        most = 0 if rest else -1
        for spans in (self._singles, self._pairs):
            for span in spans:
                overlap = len(rest & self._keys(span))
                if overlap > most and self._states(span, expected, value):
                    best, most = span, overlap
            if best:
                return best
        return ()

    @cached_property
    def _singles(self) -> list[tuple[int, ...]]:
        return [(place,) for place in range(len(self.turn_keys))]

    @cached_property
    def _pairs(self) -> list[tuple[int, ...]]:
        return [(place, place + 1) for place in range(len(self.turn_keys) - 1)]

    def _keys(self, span: tuple[int, ...]) -> frozenset[str]:
        return frozenset().union(*(self.turn_keys[place] for place in span))

    def _states(self, span: tuple[int, ...], expected: frozenset[str], value: str) -> bool:
        present = self._keys(span)
        if is_date(value):
            present |= frozenset().union(*(_date_keys(self.conversation.turns[place].at) for place in span))
        return all(word in present or any(akin(word, key) for key in present if len(key) > 3) for word in expected)

    def turns(self, places: Iterable[int]) -> tuple[Turn, ...]:
        return tuple(self.conversation.turns[place] for place in places)


_DATE_WORDS = frozenset(key for name in (*MONTHS, *WEEKDAYS) for key in keys(name))


def is_date(value: str) -> bool:
    """Return whether the value is only a date, such as `12 June`. The date of a turn counts as stated in it."""
    parts = content(value)
    has_month_or_year = bool(parts & _DATE_WORDS) or any(len(part) == 4 and part.isdigit() for part in parts)
    return has_month_or_year and all(part.isdigit() or part in _DATE_WORDS for part in parts)


def _date_keys(at: datetime | None) -> frozenset[str]:
    return frozenset() if at is None else frozenset(keys(f"{at.day} {MONTHS[at.month - 1]} {at.year} {at:%A}"))
