"""What was read from a dataset: counts, samples, and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from memorybench.core.conversation import Haystack
from memorybench.core.questions import EvidenceLevel, Question
from memorybench.text.sanitize import preview

from .config import BenchmarkConfig
from .context import ItemContext
from .paths import parse_path

_LONGEST = 100
_MOST_TYPES = 12


@dataclass
class Survey:
    """Counts of one reading, and the names of the fields that the data has."""

    items: int = 0
    histories: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Sessions and turns of each history. Questions about several parts of one history have one."""
    item_fields: dict[str, None] = field(default_factory=dict)
    question_fields: dict[str, None] = field(default_factory=dict)
    turn_fields: dict[str, None] = field(default_factory=dict)

    def add_item(self, value: Mapping[str, Any]) -> None:
        self.items += 1
        self.item_fields |= _names(value)

    def add_question(self, value: Any) -> None:
        self.question_fields |= _names(value)

    def add_history(self, name: str, context: ItemContext) -> None:
        """Add a history, or a longer part of one."""
        self.histories[name] = context.session_count, context.turn_count

    def add_histories(self, questions: Sequence[Question], haystack: Callable[[str], Haystack]) -> None:
        """Add the histories that code builds, one per item."""
        for question in questions:
            sessions = haystack(question.haystack).sessions
            self.items += 1
            self.histories[question.memory] = len(sessions), sum(len(session.turns) for session in sessions)

    def add_turn(self, fields: Any) -> None:
        self.turn_fields |= _names(fields)


class _ReadDataset(Protocol):
    @property
    def evidence(self) -> EvidenceLevel: ...
    @property
    def questions(self) -> Sequence[Question]: ...
    @property
    def notes(self) -> Sequence[str]: ...
    def haystack(self, id: str) -> Haystack: ...


def summarize(config: BenchmarkConfig, dataset: _ReadDataset, survey: Survey, samples: int) -> dict[str, Any]:
    """Return what was read, as JSON data: counts, samples from the beginning, middle and end, and what was left out."""
    questions = dataset.questions
    kinds = Counter(question.kind for question in questions if question.kind)
    places = sorted({round(n * (len(questions) - 1) / max(1, samples - 1)) for n in range(samples)})
    return {
        "benchmark": config.name,
        "counts": {
            "items": survey.items,
            "questions": len(questions),
            "histories": len(survey.histories),
            "sessions": sum(sessions for sessions, _ in survey.histories.values()),
            "turns": sum(turns for _, turns in survey.histories.values()),
            "gold_answers": sum(len(_answers(question)) for question in questions),
            "gold_ids": sum(len(question.gold(dataset.evidence)) for question in questions),
            "rubric_items": sum(len(question.rubric) for question in questions),
        },
        "question_types": dict(kinds.most_common()),
        "samples": [_sample(dataset, questions[place]) for place in places],
        "left_out": [*dataset.notes, *_unread(config, survey)],
    }


def summary_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    counts = summary["counts"]
    shown = [name for name in counts if counts[name] or name != "rubric_items"]
    yield ", ".join(f"{counts[name]:,} {name.replace('_', ' ')}" for name in shown)
    kinds = list(summary["question_types"].items())
    if kinds:
        more = f" and {len(kinds) - _MOST_TYPES} more" if len(kinds) > _MOST_TYPES else ""
        yield "types: " + ", ".join(f"{name} {n:,}" for name, n in kinds[:_MOST_TYPES]) + more
    for sample in summary["samples"]:
        yield f"sample {preview(sample['id'], _LONGEST)}:"
        for name in ("question", "type", "labels", "answers", "rubric", "evidence", "first_turn", "last_turn"):
            if sample[name] or name not in ("type", "labels", "rubric"):
                yield f"  {name.replace('_', ' ')}: {preview(sample[name], _LONGEST)}"
        yield f"  history: {sample['sessions']:,} sessions, {sample['turns']:,} turns"
    for note in summary["left_out"]:
        yield f"left out or notable: {note}"


def _sample(dataset: _ReadDataset, question: Question) -> dict[str, Any]:
    sessions = dataset.haystack(question.haystack).sessions
    turns = [turn for session in sessions for turn in session.turns]
    return {
        "id": question.id,
        "question": question.question,
        "type": question.kind,
        "labels": {name: text for name, text in question.labels.items() if name != "question_type"},
        "answers": _answers(question),
        "rubric": [item.text for item in question.rubric],
        "evidence": list(question.gold(dataset.evidence)),
        "first_turn": turns[0].content,
        "last_turn": turns[-1].content,
        "sessions": len(sessions),
        "turns": len(turns),
    }


def _answers(question: Question) -> list[str]:
    """Return the gold answers. A right choice counts once, although several spellings of it are accepted."""
    if question.choices:
        return [str(choice) for choice in question.choices if str(choice) in question.answers]
    return list(question.answers)


def _unread(config: BenchmarkConfig, survey: Survey) -> Iterator[str]:
    """Yield the fields of items, questions and turns that no path of the config begins with."""
    mapping = config.mapping
    if mapping is None:
        return
    context, many = mapping.context, mapping.questions
    own = mapping.model_dump(include={"question", "answer", "evidence", "choices", "cluster", "item_id"})
    item_paths: list[str | None] = [*own.values(), *mapping.metadata.values(), *mapping.parse]
    item_paths += [context.field, context.date_field, context.id_field, context.prefix]
    item_paths += [join.by for join in config.data.join.values()]
    question_paths: list[str | None] = [*mapping.parse]
    if many is not None:
        item_paths += [many.field, *many.columns.values()]
        question_paths += [*many.labels.values(), *many.model_dump(exclude={"field", "columns", "labels"}).values()]
    turn_paths = list(context.item_schema.model_dump().values())
    removed = [*config.ingestion.preprocessing.remove_fields]
    for noun, paths, fields in (
        ("items", item_paths, survey.item_fields),
        ("questions", question_paths, survey.question_fields if many else {}),
        ("turns", [*turn_paths, *removed], survey.turn_fields),
    ):
        first = [route.steps[:1] for path in paths if path for route in parse_path(path, "schema").routes]
        unread = [name for name in fields if name not in {step for steps in first for step in steps}]
        if unread and () not in first:  # a path such as $.* reads every field
            yield f"fields of {noun} that no path reads: {', '.join(map(preview, unread[:20]))}"


def _names(value: Any) -> dict[str, None]:
    return dict.fromkeys(value) if isinstance(value, dict) else {}
