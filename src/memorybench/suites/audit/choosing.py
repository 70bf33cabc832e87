"""The best way to ask about each fact that passes every gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memorybench.datasets.audit import AuditFact

from .askable import Askable
from .evidence import Heard
from .gates import asked_key, empty_context, leaks, no_value, rivals, vague
from .history import History, history
from .reading import ways_to_ask
from .wellformed import malformed

NO_SHAPE = "no shape fits"


@dataclass(frozen=True, slots=True)
class Told:
    """A fact with the question that asks for it, and the places of the turns that tell it."""

    fact: AuditFact
    askable: Askable
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Study:
    """All that probes of one conversation are made from."""

    heard: Heard
    history: History
    ways: Mapping[str, tuple[Askable, ...]]
    """Every way to ask about a fact, by its id."""
    openings: Mapping[str, Sequence[Askable]]
    """Every way to ask about a fact that holds, by the word its question opens with."""
    dropped: Counter[str]

    def gate(
        self, askable: Askable, fact: AuditFact, *, others: Sequence[str] = (), kin: Sequence[str] = ()
    ) -> tuple[str | None, tuple[int, ...]]:
        """The first gate that drops it, or None and the places of the turns that answer it.

        `others` are values that the question must not name either; `kin` facts that are no rivals of this one.
        """
        reason = _wording(askable, others)
        if reason is None and askable.value.removesuffix("'s") in self.heard.speakers:
            reason = "empty context"  # who else is there?
        if reason is not None:
            return reason, ()
        places = self.heard.gold(fact, askable.value)
        if not places:
            return "unanswerable", ()
        asked = self.openings.get(asked_key(askable.question)[0], ())
        beside = (way for way in asked if way.fact not in kin)
        return ("not unique", ()) if rivals(askable, beside) else (None, places)

    def choose(self, fact: AuditFact) -> Told | str:
        """The first way to ask that passes; else the gate that dropped the best way."""
        first = NO_SHAPE
        for number, askable in enumerate(self.ways[fact.id]):
            reason, places = self.gate(askable, fact)
            if reason is None:
                return Told(fact, askable, places)
            self.dropped[reason] += 1
            first = reason if number == 0 else first
        if first == NO_SHAPE:
            self.dropped[NO_SHAPE] += 1
        return first


def _wording(askable: Askable, others: Sequence[str]) -> str | None:
    if no_value(askable.value):
        return "no value"
    if leaks(askable.question, (askable.value, *others)):
        return "leak"
    if askable.origin != "given" and malformed(askable.question, askable.value):
        return "malformed"
    if vague(askable.question):
        return "vague"
    return "empty context" if empty_context(askable.question, askable.value) else None


def study(heard: Heard) -> Study:
    ways = {fact.id: tuple(ways_to_ask(fact)) for fact in heard.conversation.facts}
    past = history(heard)
    openings: dict[str, list[Askable]] = {}
    for fact in past.current:
        for way in ways[fact.id]:
            openings.setdefault(asked_key(way.question)[0], []).append(way)
    return Study(heard, past, ways, openings, Counter())
