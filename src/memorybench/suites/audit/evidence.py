"""Finds the turns of a conversation that state a fact."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import islice

from msgspec import Struct

from memorybench.core.conversation import Turn
from memorybench.datasets.audit import AuditConversation, AuditFact
from memorybench.text.languages import is_english, language_of, likelier

from .answers import MONTHS, content, occurs, stems

_SAMPLE, _LONGEST = 50, 200
"""The number of texts from which a language is identified, and how many characters of each are used."""

_QUESTION_MARKS = ("?", "？", "؟")


class IndexedConversation(Struct, frozen=True, dict=True):
    """A conversation with an index of its words."""

    conversation: AuditConversation

    @cached_property
    def _turns_by_stem(self) -> dict[str, set[int]]:
        index: dict[str, set[int]] = {}
        for place in range(len(self.conversation.turns)):
            for stem in self._stems(place).split():
                index.setdefault(stem, set()).add(place)
        return index

    def _stems(self, place: int) -> str:
        return _spaced_stems(self.conversation.turns[place].content)

    @cached_property
    def now(self) -> datetime | None:
        """The end of the conversation: the date of its last dated turn, else of its last dated fact."""
        turns = [turn.at for turn in self.conversation.turns if turn.at is not None]
        return max(turns or [fact.at for fact in self.conversation.facts if fact.at is not None], default=None)

    @cached_property
    def is_english(self) -> bool:
        """Whether turns and facts are certainly in English."""
        turns, facts = self.conversation.turns, self.conversation.facts
        return is_english(_sample(turn.content for turn in turns), _sample(fact.content for fact in facts))

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """English, and the language of the turns if that is not English."""
        if self.is_english:
            return ("en",)
        return tuple(dict.fromkeys(("en", language_of(_sample(turn.content for turn in self.conversation.turns)))))

    def question_language(self, question: str) -> str:
        """Return the language of a question of the dataset: English, or the language of the turns."""
        return likelier(question, self.languages) if len(self.languages) > 1 else self.languages[0]

    @cached_property
    def speakers(self) -> frozenset[str]:
        return frozenset(turn.speaker for turn in self.conversation.turns if turn.speaker)

    @cached_property
    def _places(self) -> dict[str, int]:
        turns = reversed(tuple(enumerate(self.conversation.turns)))  # the first turn of a repeated id counts
        return {turn.id: place for place, turn in turns if turn.id is not None}

    def place(self, turn_id: str | None) -> int | None:
        return None if turn_id is None else self._places.get(turn_id)

    def told(self, fact: AuditFact) -> datetime | None:
        """Return when a fact was stated: the date of its turn, else the date of the fact; None if there is none."""
        place = self.place(fact.turn)
        at = None if place is None else self.conversation.turns[place].at
        return at or fact.at

    def turns(self, places: Iterable[int]) -> tuple[Turn, ...]:
        return tuple(self.conversation.turns[place] for place in places)

    def tells_day(self, place: int, at: datetime) -> bool:
        """Return whether a turn was written on this day, or names its day and month."""
        turn = self.conversation.turns[place]
        is_today = turn.at is not None and turn.at.date() == at.date()
        return is_today or occurs(f"{at.day} {MONTHS[at.month - 1]}", turn.content)

    def find(self, fact: AuditFact, value: str) -> tuple[int, ...]:
        """Return the indexes of the turns that state this value of the fact; empty if there are none.

        If the dataset names a turn, the value must occur in it, or in the next one if the named turn asks a question.
        Otherwise it is the turn that has the value and shares most other words with the fact. The turn before it is
        included if it asks the question that the turn answers.
        """
        rest = content(fact.content) - content(value)
        named = self.place(fact.turn)
        if named is not None:
            if self._states(named, value):
                return self._with_question(named, rest)
            is_answered = self._asks(named) and self._states(named + 1, value)
            return (named, named + 1) if is_answered else ()
        best: tuple[int, ...] = ()
        most = 0 if rest else -1
        for place in sorted(self._with_words(value)):
            span = self._with_question(place, rest)
            shared = self._shared(span, rest)
            if shared > most and self._states(place, value):
                best, most = span, shared
        return best

    def _with_question(self, place: int, rest: frozenset[str]) -> tuple[int, ...]:
        """Return the index of a turn; before it that of the previous turn, if that asks and only it mentions the topic.

        `rest` are the words of the topic: those of the fact, without its value.
        """
        asks = place > 0 and any(mark in self.conversation.turns[place - 1].content for mark in _QUESTION_MARKS)
        alone = not asks or self._shared((place,), rest)
        return (place,) if alone or not self._shared((place - 1,), rest) else (place - 1, place)

    def _asks(self, place: int) -> bool:
        return self.conversation.turns[place].content.rstrip(" \n\"'”’»」』)").endswith(_QUESTION_MARKS)

    def _shared(self, span: Iterable[int], rest: frozenset[str]) -> int:
        texts = [self._stems(place) for place in span]
        return sum(any(f" {word} " in text for text in texts) for word in rest)

    def _with_words(self, value: str) -> set[int]:
        found = [self._turns_by_stem.get(word, set()) for word in stems(value)]
        return set.intersection(*found) if found else set()

    def _states(self, place: int, value: str) -> bool:
        return place < len(self.conversation.turns) and _spaced_stems(value) in self._stems(place)


@lru_cache(maxsize=4096)
def _spaced_stems(text: str) -> str:
    """Return the stems of a text with a space before and after each."""
    return f" {' '.join(stems(text))} "


def _sample(texts: Iterable[str]) -> str:
    return "\n".join(text[:_LONGEST] for text in islice(texts, _SAMPLE))
