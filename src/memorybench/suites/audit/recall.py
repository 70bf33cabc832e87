"""Recall probes: the question for each fact that structure proves, with the turns that answer it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from memorybench.datasets.audit import AuditFact

from .answers import content, is_same, leaks, normalise, stems
from .cloze import gaps
from .evidence import IndexedConversation
from .history import PLAN, UNDATED, History, history
from .probes import Origin
from .templates import GAP, question_for

_GUESSABLE = frozenset(("yes", "no", "true", "false", "male", "female"))


@dataclass(frozen=True, slots=True)
class Question:
    """A question for a fact, and the value that answers it."""

    text: str
    value: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class AskableFact:
    """A fact with its question and the places of the turns that state it."""

    fact: AuditFact
    question: Question
    places: tuple[int, ...]


@dataclass(frozen=True)
class Material:
    """The data from which the probes of one conversation are generated."""

    indexed: IndexedConversation
    history: History
    gaps: bool = True
    """Whether facts in free text are asked about with a gap."""
    dropped: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, indexed: IndexedConversation, *, gaps: bool) -> Material:
        return cls(indexed, history(indexed), gaps)

    def questions(self, fact: AuditFact) -> Iterator[Question]:
        """Yield the questions of a fact: the dataset's own, by template, or with a gap. Ours are in English."""
        if fact.question and fact.value:
            yield Question(fact.question, fact.value, "given")
        elif not self.indexed.is_english:
            return
        elif fact.attribute and fact.value and (text := question_for(fact.subject, fact.attribute, fact.content)):
            yield Question(text, fact.value, "structured")
        elif not self.gaps:
            return
        elif fact.value:
            if fact.content.count(fact.value) == 1:
                text = fact.content.strip().rstrip(".").replace(fact.value, GAP)
                yield Question(f"Fill the gap: {text}.", fact.value, "cloze")
        else:
            yield from (Question(text, value, "cloze") for text, value in gaps(fact.content))

    def reject(self, question: Question, others: Sequence[str] = ()) -> str | None:
        """Return the check that the wording fails, or None. It must not contain the values `others` either."""
        if normalise(question.value) in _GUESSABLE or question.value in self.indexed.speakers:
            return "guessable"
        if not content(question.value):
            return "no value"
        is_english = self.indexed.is_english
        return "leak" if leaks(question.text, (question.value, *others), is_english=is_english) else None

    def choose(self, fact: AuditFact) -> AskableFact | str:
        """Return the first question that passes, or else the check that the best one fails."""
        first = None
        for question in self.questions(fact):
            reason = self.reject(question)
            places = () if reason else self.indexed.find(fact, question.value)
            if reason is None and places:
                return AskableFact(fact, question, places)
            first = first or reason or "unanswerable"
        return first or ("not English" if not self.indexed.is_english else "no gap" if self.gaps else "free text")


def choose_facts(material: Material) -> tuple[list[AskableFact], dict[str, str]]:
    """Return the current facts that have a question with one answer, and the reasons for the others by id."""
    chosen = {fact.id: material.choose(fact) for fact in material.history.current}
    answers: dict[str, list[AskableFact]] = {}
    for one in chosen.values():
        if isinstance(one, AskableFact):
            answers.setdefault(_question_key(one.question), []).append(one)
    for same in answers.values():
        unique = all(is_same(one.question.value, same[0].question.value) for one in same)
        for one in same[1:] if unique else same:
            chosen[one.fact.id] = "asked already" if unique else "not unique"
    reasons = {id: one for id, one in chosen.items() if isinstance(one, str)}
    material.dropped.update(reasons.values())
    material.dropped.update(reason for _, reason in material.history.past if reason in (PLAN, UNDATED))
    return [one for one in chosen.values() if isinstance(one, AskableFact)], reasons


def _question_key(question: Question) -> str:
    """Return a text that equal questions share; an attribute in singular and in plural is one question."""
    if question.origin != "structured":
        return normalise(question.text)
    return " ".join(stems(question.text))
