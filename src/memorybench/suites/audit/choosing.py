"""Chooses, for each fact, the best question that passes every gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memorybench.datasets.audit import AuditFact

from .askable import Askable
from .evidence import IndexedConversation
from .gates import asked_key, empty_context, leaks, no_value, rivals, vague
from .history import History, history
from .reading import ways_to_ask
from .wellformed import malformed

NO_SHAPE = "no shape fits"


@dataclass(frozen=True, slots=True)
class AskableFact:
    """A fact with its question and the places of the turns that state it."""

    fact: AuditFact
    askable: Askable
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Study:
    """The data from which the probes of one conversation are generated."""

    indexed: IndexedConversation
    history: History
    ways: Mapping[str, tuple[Askable, ...]]
    """Fact id -> all its questions."""
    openings: Mapping[str, Sequence[Askable]]
    """First word -> all questions about current facts that begin with it."""
    dropped: Counter[str]

    def gate(
        self, askable: Askable, fact: AuditFact, *, others: Sequence[str] = (), kin: Sequence[str] = ()
    ) -> tuple[str | None, tuple[int, ...]]:
        """Return the first gate that drops the question, or None and the places of the turns that answer it.

        The question must not contain the values `others` either; the facts `kin` do not count as other answers.
        """
        reason = _check_wording(askable, others)
        if reason is None and askable.value.removesuffix("'s") in self.indexed.speakers:
            reason = "empty context"  # the speakers are easy to guess
        if reason is not None:
            return reason, ()
        places = self.indexed.gold(fact, askable.value)
        if not places:
            return "unanswerable", ()
        asked = self.openings.get(asked_key(askable.question)[0], ())
        competing = (way for way in asked if way.fact not in kin)
        return ("not unique", ()) if rivals(askable, competing) else (None, places)

    def choose(self, fact: AuditFact) -> AskableFact | str:
        """Return the first question that passes, or else the gate that dropped the best one."""
        first = NO_SHAPE
        for number, askable in enumerate(self.ways[fact.id]):
            reason, places = self.gate(askable, fact)
            if reason is None:
                return AskableFact(fact, askable, places)
            self.dropped[reason] += 1
            first = reason if number == 0 else first
        if first == NO_SHAPE:
            self.dropped[NO_SHAPE] += 1
        return first


def _check_wording(askable: Askable, others: Sequence[str]) -> str | None:
    """Return the first gate that drops the wording, or None."""
    if no_value(askable.value):
        return "no value"
    if leaks(askable.question, (askable.value, *others)):
        return "leak"
    if askable.origin != "given" and malformed(askable.question, askable.value):
        return "malformed"
    if vague(askable.question):
        return "vague"
    return "empty context" if empty_context(askable.question, askable.value) else None


def study(indexed: IndexedConversation) -> Study:
    ways = {fact.id: tuple(ways_to_ask(fact)) for fact in indexed.conversation.facts}
    past = history(indexed)
    openings: dict[str, list[Askable]] = {}
    for fact in past.current:
        for way in ways[fact.id]:
            openings.setdefault(asked_key(way.question)[0], []).append(way)
    return Study(indexed, past, ways, openings, Counter())
