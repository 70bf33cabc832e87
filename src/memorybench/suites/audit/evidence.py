"""Which turns of a conversation tell a fact, and what stands in it anywhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from memorybench.core.conversation import Turn
from memorybench.datasets.audit import AuditConversation, AuditFact

from .words import MONTHS, WEEKDAYS, akin, content, keys


@dataclass(frozen=True)
class Heard:
    """A conversation with its words looked up once."""

    conversation: AuditConversation
    turn_keys: tuple[frozenset[str], ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "turn_keys", tuple(frozenset(keys(turn.content)) for turn in self.conversation.turns))

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Every word of every turn, speaker and fact, by key."""
        said = frozenset().union(*self.turn_keys) if self.turn_keys else frozenset()
        speakers = (turn.speaker or "" for turn in self.conversation.turns)
        facts = (
            " ".join(filter(None, (fact.content, fact.subject, fact.attribute, fact.value)))
            for fact in self.conversation.facts
        )
        return said | frozenset(key for text in (*speakers, *facts) for key in keys(text))

    @cached_property
    def speakers(self) -> frozenset[str]:
        return frozenset(turn.speaker for turn in self.conversation.turns if turn.speaker)

    def without_speakers(self, text: str) -> frozenset[str]:
        """Its content but for the names of who speaks: these stand everywhere."""
        return content(text) - frozenset(keys(" ".join(self.speakers)))

    @cached_property
    def now(self) -> datetime | None:
        """When the conversation ends: the date of its last dated turn, else of its last dated fact."""
        turns = [turn.at for turn in self.conversation.turns if turn.at is not None]
        return max(turns or [fact.at for fact in self.conversation.facts if fact.at is not None], default=None)

    def has_any(self, texts: Iterable[str]) -> bool:
        """Whether a content word of these stands anywhere, in any inflection or at the beginning of a longer word."""
        wanted = frozenset().union(*(content(text) for text in texts))
        longer = tuple(one for one in wanted if len(one) >= 5)
        return bool(wanted & self.vocabulary) or any(key.startswith(longer) for key in self.vocabulary if longer)

    def place(self, turn_id: str) -> int | None:
        return self._places.get(turn_id)

    @cached_property
    def _places(self) -> dict[str, int]:
        turns = reversed(tuple(enumerate(self.conversation.turns)))  # of a repeated id the first counts
        return {turn.id: place for place, turn in turns if turn.id is not None}

    def gold(self, fact: AuditFact, value: str) -> tuple[int, ...]:
        """Places of the turns that tell this value of this fact; empty: none do.

        Where the dataset names the turn it is that one, with its neighbours where a question and its answer only
        together tell it. Else the turn that shares most with the fact among those that hold every content word of
        the value, and something else of the fact: a value alone may stand for anything.
        """
        wanted = content(value)
        if not wanted:
            return ()
        if fact.turn is not None and (named := self.place(fact.turn)) is not None:
            spans = [(named,), (named - 1, named), (named, named + 1), (named - 1, named, named + 1)]
            return next((span for span in map(self._within, spans) if self._tells(span, wanted, value)), ())
        rest = content(fact.content) - wanted
        best: tuple[int, ...] = ()
        most = 0 if rest else -1
        for spans in (self._single, self._pairs):
            for span in spans:
                overlap = len(rest & self._keys(span))
                if overlap > most and self._tells(span, wanted, value):
                    best, most = span, overlap
            if best:
                return best
        return ()

    @cached_property
    def _single(self) -> list[tuple[int, ...]]:
        return [(place,) for place in range(len(self.turn_keys))]

    @cached_property
    def _pairs(self) -> list[tuple[int, ...]]:
        return [(place, place + 1) for place in range(len(self.turn_keys) - 1)]

    def _within(self, span: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(place for place in span if 0 <= place < len(self.turn_keys))

    def _keys(self, span: tuple[int, ...]) -> frozenset[str]:
        return frozenset().union(*(self.turn_keys[place] for place in span))

    def _tells(self, span: tuple[int, ...], wanted: frozenset[str], value: str) -> bool:
        held = self._keys(span)
        if is_date(value):
            held |= frozenset().union(*(_date_keys(self.conversation.turns[place].at) for place in span))
        return all(one in held or any(akin(one, key) for key in held if len(key) > 3) for one in wanted)

    def turns(self, places: Iterable[int]) -> tuple[Turn, ...]:
        return tuple(self.conversation.turns[place] for place in places)


_DATE_WORDS = frozenset(key for name in (*MONTHS, *WEEKDAYS) for key in keys(name))


def is_date(value: str) -> bool:
    """Whether nothing but a date is said: `12 June`, `March 2022`. A turn tells the date it has."""
    told = content(value)
    return bool(told & _DATE_WORDS or {one for one in told if len(one) == 4 and one.isdigit()}) and all(
        one.isdigit() or one in _DATE_WORDS for one in told
    )


def _date_keys(at: datetime | None) -> frozenset[str]:
    return frozenset() if at is None else frozenset(keys(f"{at.day} {MONTHS[at.month - 1]} {at.year} {at:%A}"))
