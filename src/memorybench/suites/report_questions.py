"""The questions of a run for its HTML report: marks of each provider, memories found, disagreements and failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from memorybench.core.report_sections import Cell, Column, Row, Table, text_column
from memorybench.core.trials import Outcome
from memorybench.text.sanitize import shorten

from .case_view import CaseTrial, hit_level, memories_of
from .failures import FAILURE_REASONS, failure_reason, outcome_mark, question_type
from .registry import suite_of
from .report_parts import shorten_line
from .stored_run import StoredRun

_MOST_TRIALS = 10_000
"""Of a run whose questions the file lists; the viewer shows those of larger ones."""
_LONGEST_TEXT = 600
_LONGEST_MEMORY = 200
_MOST_TEXT = 1_200_000
"""Bytes of all questions together: the file of a run with long answers stays below 3 MB."""
_MOST_MEMORY_TEXT = 1_200_000
"""Bytes of all memories together; the last questions have none."""
_MARKUP = 120
"""Bytes around each text."""
_RANKS = 5
"""Memories of each provider that are listed; those from a gold turn are listed at any rank."""
_MOST_MEMORIES = 15
"""Memories of one question."""
_MOST_PAIRS = 15


@dataclass(frozen=True, slots=True)
class Mark:
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
        """What a filter finds it by."""
        return tuple(dict.fromkeys(name for name in (self.reason, self.mark) if name))


@dataclass(frozen=True, slots=True)
class FoundMemory:
    content: str
    hit_level: str
    """`turn`, `session` or "": what gold evidence it comes from."""
    ranks: dict[str, int] = field(default_factory=dict)
    """By provider."""

    @property
    def found_by(self) -> str:
        return ", ".join(f"{name} {rank}" for name, rank in self.ranks.items())


@dataclass(slots=True)
class Question:
    benchmark: str
    case_id: str
    type: str
    asked: str
    expected: str
    marks: dict[str, list[Mark]] = field(default_factory=dict)
    """By provider: one for each variant and repeat."""
    memories: Sequence[FoundMemory] = ()
    """What providers found, the best ranks first. Baselines are left out."""
    memory_outcomes: dict[str, Outcome] = field(default_factory=dict)
    """By provider: the first outcome, whose steps have its memories."""


@dataclass(frozen=True, slots=True)
class QuestionList:
    """The questions that a file lists, in the order of the plan, and what is known about all of them."""

    questions: Sequence[Question]
    total: int
    tables: Sequence[Table] = ()
    """Where providers disagree, and failures by reason."""
    with_memories: int = 0
    """How many of the questions have their memories; the first ones."""


def list_questions(stored: StoredRun) -> QuestionList:
    """Read the questions of a run; of one with very many trials, only their number."""
    if sum(run.planned for run in stored.runs) > _MOST_TRIALS:
        return QuestionList((), len({case for reader, run in stored.parts for case in reader.case_ids(run.id)}))
    found: dict[tuple[str, str], Question] = {}
    result_name = suite_of(stored.run).result_name
    for outcome in stored.outcomes():
        trial, shown = outcome.trial, outcome.shown
        expected, got = (
            shorten(result_name(shown.expected), _LONGEST_TEXT),
            shorten(result_name(shown.got), _LONGEST_TEXT),
        )
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
    """Read the memories of questions until there is no more room; return of how many questions."""
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
        own = (step for step in trial.named("search") if step.inputs.get("query") == outcome.shown.asked)
        for memory in (memory for step in own for memory in memories_of(trial, step)):
            level = hit_level(memory["hits"], case)
            if memory["rank"] <= _RANKS or level == "turn":
                content = str(memory["content"])
                key = (*map(str, memory.get("sources") or ()), content)
                one = found.setdefault(key, FoundMemory(shorten_line(content, _LONGEST_MEMORY), level))
                one.ranks.setdefault(name, memory["rank"])
    return sorted(found.values(), key=lambda one: min(one.ranks.values()))[:_MOST_MEMORIES]


def _disagreements(questions: Collection[Question]) -> Table | None:
    """Pairs of providers with the questions that one, both or neither got right."""
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
    """Whether each of two providers is right; several where repeats differ."""
    others = {(mark.variant, mark.repeat): mark.mark for mark in second}
    pairs = ((mark.mark, others.get((mark.variant, mark.repeat), "")) for mark in first)
    return {(one == "right", other == "right") for one, other in pairs if {one, other} <= {"right", "wrong"}}


def _failures(questions: Collection[Question]) -> tuple[Mapping[tuple[str, str], int], Sequence[str]]:
    """Count the questions of which a trial failed, by provider and reason; and return the providers in order."""
    counts: Counter[tuple[str, str]] = Counter()
    roles: dict[str, str] = {}
    for question in questions:
        marks = [mark for own in question.marks.values() for mark in own]
        roles |= {mark.subject: mark.role for mark in marks}
        counts.update({(mark.subject, mark.reason) for mark in marks if mark.reason})
    return counts, sorted(roles, key=lambda name: roles[name] == "baseline")


def failure_table(counts: Mapping[tuple[str, str], int], subjects: Sequence[str]) -> Table | None:
    """Failures by provider and reason. A skipped trial is not one."""
    counts = {key: count for key, count in counts.items() if key[1] != "skipped"}
    reasons = [reason for reason in FAILURE_REASONS if any(found == reason for _, found in counts)]
    shown = [name for name in subjects if any(subject == name for subject, _ in counts)]
    rows: list[tuple[Cell, ...]] = [(name, *(counts.get((name, reason), 0) for reason in reasons)) for name in shown]
    return Table("Failures by reason", (text_column("provider"), *map(Column, reasons)), tuple(rows)) if rows else None


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace")) + _MARKUP
