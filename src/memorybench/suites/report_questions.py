"""The questions of a run for its HTML report: each provider's results and memories, disagreements and failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from msgspec import Struct, field

from memorybench.core.report_sections import Cell, Column, Row, Table, text_column
from memorybench.core.trials import Outcome
from memorybench.text.sanitize import shorten

from .case_view import CaseTrial, hit_level, memories_of
from .failures import FAILURE_REASONS, failure_reason, outcome_mark, question_type
from .registry import suite_of
from .report_parts import shorten_line
from .stored_run import StoredRun

_MOST_TRIALS = 10_000
"""The HTML report lists no questions of a run with more trials than this; the viewer shows them."""
_LONGEST_TEXT = 600
_LONGEST_MEMORY = 200
_MOST_TEXT = 1_200_000
"""The most bytes of all questions together, so that the file of a run with long answers stays below 3 MB."""
_MOST_MEMORY_TEXT = 1_200_000
"""The most bytes of all memories together. When they are used up, further questions get no memories."""
_MARKUP = 120
"""Bytes of HTML that are counted for each text, in addition to the text."""
_RANKS = 5
"""The number of memories of each provider that are listed; those from a gold turn are listed at any rank."""
_MOST_MEMORIES = 15
"""The most memories that are listed for one question."""
_MOST_PAIRS = 15


class Mark(Struct, frozen=True):
    subject: str
    role: str
    variant: str
    repeat: int
    mark: str
    reason: str
    got: str
    expected: str

    @property
    def names(self) -> tuple[str, ...]:
        """The words by which a filter finds this mark: the reason of the failure, and the result."""
        return tuple(dict.fromkeys(name for name in (self.reason, self.mark) if name))


class FoundMemory(Struct, frozen=True):
    content: str
    hit_level: str
    """Which gold evidence the memory comes from: `turn`, `session`, or "" for none."""
    ranks: dict[str, int] = field(default_factory=dict)
    """By provider: the rank at which it returned the memory."""

    @property
    def found_by(self) -> str:
        return ", ".join(f"{name} {rank}" for name, rank in self.ranks.items())


class Question(Struct):
    benchmark: str
    case_id: str
    type: str
    asked: str
    expected: str
    marks: dict[str, list[Mark]] = field(default_factory=dict)
    """By provider: the result of each variant and repeat."""
    memories: Sequence[FoundMemory] = ()
    """The memories that providers found, best ranks first. Those of baselines are left out."""
    memory_outcomes: dict[str, Outcome] = field(default_factory=dict)
    """By provider: its first outcome on this question. The memories are read from its steps."""


class QuestionList(Struct, frozen=True):
    """The questions that the HTML report lists, in the order of the plan, with tables about all questions."""

    questions: Sequence[Question]
    total: int
    tables: Sequence[Table] = ()
    """Two tables: where providers disagree, and failures by reason. Empty tables are left out."""
    with_memories: int = 0
    """The number of questions, counted from the first, whose memories are included."""


def list_questions(stored: StoredRun) -> QuestionList:
    """Read the questions of a run; only their number if the run has more than _MOST_TRIALS trials."""
    if sum(run.planned for run in stored.runs) > _MOST_TRIALS:
        return QuestionList((), len({case for reader, run in stored.parts for case in reader.case_ids(run.id)}))
    found: dict[tuple[str, str], Question] = {}
    suite = suite_of(stored.run)
    for outcome in map(suite.named_as_in_reports, stored.outcomes()):
        trial, shown = outcome.trial, outcome.shown
        expected, got = shorten(shown.expected, _LONGEST_TEXT), shorten(shown.got, _LONGEST_TEXT)
        question = found.setdefault(
            (trial.benchmark, trial.case_id),
            Question(
                trial.benchmark, trial.case_id, question_type(trial), shorten(shown.asked, _LONGEST_TEXT), expected
            ),
        )
        reason = failure_reason(outcome) or ""
        name, role = trial.subject.name, trial.subject.role
        mark = Mark(name, role, trial.variant, trial.repeat, outcome_mark(outcome), reason, got, expected)
        question.marks.setdefault(name, []).append(mark)
        if role == "provider":
            question.memory_outcomes.setdefault(name, outcome)
    for question in found.values():
        if len({mark.expected for marks in question.marks.values() for mark in marks}) > 1:
            question.expected = ""  # each variant has its own
    listed, room = [], _MOST_TEXT
    for question in found.values():
        texts = [question.asked, question.expected, *(mark.got for marks in question.marks.values() for mark in marks)]
        room -= sum(map(_size, texts))
        if room < 0:
            break
        listed.append(question)
    tables = [_disagreements(found.values()), failure_table(*_failures(found.values()))]
    return QuestionList(listed, len(found), [one for one in tables if one is not None], _add_memories(stored, listed))


def _add_memories(stored: StoredRun, questions: Sequence[Question]) -> int:
    """Read the memories of the questions until the size limit is reached; return how many questions got theirs."""
    room = _MOST_MEMORY_TEXT
    for number, question in enumerate(questions):
        question.memories = _memories(stored, question)
        room -= sum(_size(one.content) for one in question.memories)
        if room < 0:
            question.memories = ()
            return number
    return len(questions)


def _memories(stored: StoredRun, question: Question) -> list[FoundMemory]:
    found: dict[tuple[str, ...], FoundMemory] = {}
    case: Mapping[str, Any] = {}
    outcomes = question.memory_outcomes
    keys = [key for outcome in outcomes.values() for key in outcome.steps]
    parts = [reader.steps_by_key(run.id, keys) for reader, run in stored.parts]
    for name, outcome in outcomes.items():
        case = case or stored.case(outcome)
        steps = (step for steps in parts for key in dict.fromkeys(outcome.steps) for step in steps[key])
        trial = CaseTrial(outcome, case, tuple(steps))
        own = filter(trial.is_own_search, trial.named("search"))
        for memory in (memory for step in own for memory in memories_of(trial, step)):
            level = hit_level(memory["hits"], case)
            if memory["rank"] <= _RANKS or level == "turn":
                content = str(memory["content"])
                key = (*map(str, memory.get("sources") or ()), content)
                one = found.setdefault(key, FoundMemory(shorten_line(content, _LONGEST_MEMORY), level))
                one.ranks.setdefault(name, memory["rank"])
    return sorted(found.values(), key=lambda one: min(one.ranks.values()))[:_MOST_MEMORIES]


def _disagreements(questions: Collection[Question]) -> Table | None:
    """Return a table of how many questions one, both or neither of two providers got right; None for one provider."""
    roles = {name: marks[0].role for question in questions for name, marks in question.marks.items()}
    names = [name for name, role in roles.items() if role != "baseline"] or list(roles)
    rows: list[Row] = []
    for first, second in list(combinations(names, 2))[:_MOST_PAIRS]:
        counts: Counter[tuple[bool, bool]] = Counter()
        for question in questions:
            counts.update(_agreement(question.marks.get(first, ()), question.marks.get(second, ())))
        if counts:
            found = [counts[one] for one in ((True, False), (False, True), (True, True), (False, False))]
            rows.append((f"{first} and {second}", *found))
    columns = map(Column, ("only the first is right", "only the second", "both", "neither"))
    return Table("Where they disagree", (text_column("pair"), *columns), tuple(rows)) if rows else None


def _agreement(first: Iterable[Mark], second: Iterable[Mark]) -> set[tuple[bool, bool]]:
    """Return whether each of two providers is right, as pairs; more than one pair if repeats or variants differ."""
    others = {(mark.variant, mark.repeat): mark.mark for mark in second}
    pairs = ((mark.mark, others.get((mark.variant, mark.repeat), "")) for mark in first)
    return {(one == "right", other == "right") for one, other in pairs if {one, other} <= {"right", "wrong"}}


def _failures(questions: Collection[Question]) -> tuple[Mapping[tuple[str, str], int], Sequence[str]]:
    """Count the questions with a failure by provider and reason; also return the providers, baselines last."""
    counts: Counter[tuple[str, str]] = Counter()
    roles: dict[str, str] = {}
    for question in questions:
        marks = [mark for own in question.marks.values() for mark in own]
        roles |= {mark.subject: mark.role for mark in marks}
        counts.update({(mark.subject, mark.reason) for mark in marks if mark.reason})
    return counts, sorted(roles, key=lambda name: roles[name] == "baseline")


def failure_table(counts: Mapping[tuple[str, str], int], subjects: Sequence[str]) -> Table | None:
    """Return a table of failures by provider and reason. A skipped trial does not count as a failure."""
    counts = {key: count for key, count in counts.items() if key[1] != "skipped"}
    reasons = [reason for reason in FAILURE_REASONS if any(found == reason for _, found in counts)]
    shown = [name for name in subjects if any(subject == name for subject, _ in counts)]
    rows: list[tuple[Cell, ...]] = [(name, *(counts.get((name, reason), 0) for reason in reasons)) for name in shown]
    return Table("Failures by reason", (text_column("provider"), *map(Column, reasons)), tuple(rows)) if rows else None


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace")) + _MARKUP
