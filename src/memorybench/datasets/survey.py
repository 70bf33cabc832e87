"""What was read from a dataset: counts, samples, and what was left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic.alias_generators import to_camel

from memorybench.core.conversation import Haystack
from memorybench.core.questions import Dataset, Question
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Place
from memorybench.text.quantities import quantity
from memorybench.text.sanitize import preview

from .config import BenchmarkConfig, Context
from .item_context import ItemContext
from .paths import NEIGHBOURS, OTHERS, parse_path

_LONGEST = 100
_MOST_TYPES = 12
_MOST_NAMES = 20
_OPTIONAL = ("role", "speaker", "dialog_id", "caption", "image", "date")
"""Keys of `itemSchema` for fields that a turn need not have."""
_OF_ITEMS = (
    "question", "answer", "rubric", "must_contain", "must_not_contain", "forbidden", "evidence", "choices",
    "cluster",
)  # fmt: skip
"""Keys of `schema` that are paths within an item."""
_IN_FILTER = re.compile(r"""[@$](?:\.([^\W\d]\w*)|\[['"]([^'"]+)['"]\])""")
"""A name within a filter, such as `@.lang == 'en'`."""
_NAME = re.compile(r"\w+")
_LAST_NAME = re.compile(r"(\w+)['\"\]]*$")


@dataclass
class Survey:
    """Collects counts and field names while a dataset is read."""

    items: int = 0
    histories: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Number of sessions and of turns, by history. A history with questions about several of its parts counts once."""
    item_fields: dict[str, None] = field(default_factory=dict)
    question_fields: dict[str, None] = field(default_factory=dict)
    session_fields: dict[str, None] = field(default_factory=dict)
    turn_fields: dict[str, None] = field(default_factory=dict)
    history_keys: dict[str, None] = field(default_factory=dict)
    """Keys of histories that are neither sessions nor dates."""
    speakers: dict[str, None] = field(default_factory=dict)
    """Names of speakers with which the texts of turns begin."""
    skipped_files: Sequence[str] = ()
    """Files that are not data files, or in subfolders that the config does not name."""
    unmatched_paths: dict[str, Path] = field(default_factory=dict)
    """Paths within turns that have matched nothing so far, by their config keys."""

    @classmethod
    def of(cls, config: BenchmarkConfig) -> Survey:
        """Return an empty survey for the data of a config."""
        if config.mapping is None:
            return cls()
        schema = config.mapping.context.turn_schema
        paths = {to_camel(name): getattr(schema, name) for name in _OPTIONAL}
        where = "schema.context.itemSchema"
        named = {f"{where}.{name}": parse_path(path, where) for name, path in paths.items() if path is not None}
        return cls(unmatched_paths=named)

    def add_item(self, value: Mapping[str, Any]) -> None:
        self.items += 1
        self.item_fields |= _names(value)

    def add_question(self, value: Any) -> None:
        self.question_fields |= _names(value)

    def add_history(self, name: str, context: ItemContext) -> None:
        """Add the counts of a history; they replace those of a shorter part of it."""
        self.histories[name] = len(context.kept), context.turn_count

    def add_histories(self, questions: Sequence[Question], haystack: Callable[[str], Haystack]) -> None:
        """Add the histories that code builds instead of reading them from items; each question counts as an item."""
        for question in questions:
            sessions = haystack(question.haystack).sessions
            self.items += 1
            self.histories[question.memory] = len(sessions), sum(len(session.turns) for session in sessions)

    def add_turn(self, fields: Any) -> None:
        self.turn_fields |= _names(fields)
        for key, path in list(self.unmatched_paths.items()):
            if any(match is not None for match in path.all(fields)):
                del self.unmatched_paths[key]


class _ReadDataset(Dataset, Protocol):
    @property
    def notes(self) -> Sequence[str]: ...


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
        "left_out": [*dataset.notes, *_unmatched(survey), *_unremoved(config, survey), *_unread(config, survey)],
    }


_NOUNS = {
    "items": ("item",),
    "questions": ("question",),
    "histories": ("history", "histories"),
    "sessions": ("session",),
    "turns": ("turn",),
    "gold_answers": ("gold answer",),
    "gold_ids": ("gold id",),
    "rubric_items": ("rubric item",),
}
"""By name of a count: the arguments of `quantity` that name it."""


def summary_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    counts = summary["counts"]
    shown = [name for name in counts if counts[name] or name != "rubric_items"]
    yield ", ".join(quantity(counts[name], *_NOUNS[name]) for name in shown)
    kinds = list(summary["question_types"].items())
    if kinds:
        more = f" and {len(kinds) - _MOST_TYPES} more" if len(kinds) > _MOST_TYPES else ""
        yield "types: " + ", ".join(f"{name} {n:,}" for name, n in kinds[:_MOST_TYPES]) + more
    for sample in summary["samples"]:
        yield f"sample {preview(sample['id'], _LONGEST)}:"
        for name in ("question", "type", "labels", "answers", "rubric", "evidence", "first_turn", "last_turn"):
            if sample[name] or name not in ("type", "labels", "rubric"):
                yield f"  {name.replace('_', ' ')}: {preview(sample[name], _LONGEST)}"
        yield f"  history: {quantity(sample['sessions'], 'session')}, {quantity(sample['turns'], 'turn')}"
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


def _unmatched(survey: Survey) -> Iterator[str]:
    """Yield notes on files, keys and paths from which nothing was read."""
    if survey.skipped_files:
        yield f"files that are not read (of another type, or in a subfolder): {list_names(survey.skipped_files)}"
    if survey.history_keys:
        yield f"keys of histories that sessionPattern does not fit: {list_names(list(survey.history_keys))}"
    if survey.speakers:  # so that a word before another colon is seen
        yield f"speakers at the beginning of turns: {list_names(list(survey.speakers))}"
    for key, path in survey.unmatched_paths.items():
        yield f"no turn has a value at {preview(path.text)} ({key})"


def _unremoved(config: BenchmarkConfig, survey: Survey) -> Iterator[str]:
    """Yield a note for each field in `removeFields` that no turn has."""
    for name in config.ingestion.preprocessing.remove_fields if config.mapping is not None else ():
        if name not in survey.turn_fields:
            yield f"no turn has the field {preview(name)} (ingestion.preprocessing.removeFields)"


def _unread(config: BenchmarkConfig, survey: Survey) -> Iterator[str]:
    """Yield notes on the fields of items, questions, sessions and turns that no path of the config reads."""
    mapping = config.mapping
    if mapping is None:
        return
    context, many = mapping.context, mapping.questions
    item_paths: list[str | None] = [getattr(mapping, name) for name in _OF_ITEMS]
    item_paths += [*mapping.item_id_paths, *mapping.metadata.values(), *mapping.parse]
    item_paths += [context.field, context.date_field, context.id_field, context.prefix]
    item_paths += [join.by for join in config.data.join.values()]
    question_paths: list[str | None] = [*mapping.parse]
    if many is not None:
        item_paths += [many.field, *many.columns.values()]
        question_paths += [*many.labels.values(), *many.model_dump(exclude={"field", "columns", "labels"}).values()]
    turn_paths: list[str | None] = list(context.turn_schema.model_dump().values())
    turn_paths += config.ingestion.preprocessing.remove_fields
    per_session: set[str] = set()
    if context.turns_field is None:  # a session may be one turn
        turn_paths += context.session_schema.model_dump().values()
        listed = (context.id_field, context.date_field)
        per_session = {match[1] for text in listed if text and (match := _LAST_NAME.search(text))}
    question_steps = _first_steps(question_paths)
    nearby = [steps[1:2] for steps in question_steps if steps[:1] in tuple((name,) for name in NEIGHBOURS)]
    around = {steps[1:2] for steps in question_steps if steps[:1] in (("@item",), ("@parent",))}
    texts = [*item_paths, *question_paths, *turn_paths, context.turns_field, config.data.items]
    filters = [config.data.where or "", *(text for text in texts if text and "?" in text)]
    in_filters = {plain or quoted for text in filters for plain, quoted in _IN_FILTER.findall(text)}
    for noun, paths, fields in (
        ("items", [*_first_steps(item_paths), *around], survey.item_fields),
        ("questions", [*question_steps, *nearby], survey.question_fields if many else {}),
        ("sessions", [*_steps_within(context, item_paths), *around], survey.session_fields),
        ("turns", [*_first_steps(turn_paths), *((name,) for name in per_session), *nearby], survey.turn_fields),
    ):
        read = {steps[0] for steps in paths if steps} | in_filters
        unread = [name for name in fields if name not in read]
        if unread and () not in paths:  # a path such as $.* reads every field
            yield f"fields of {noun} that no path reads: {list_names(unread)}"


def _first_steps(paths: Sequence[str | None]) -> list[Place]:
    """Return the first two steps of each path; the second is needed if the first is `@item`."""
    routes = (route for path in paths if path and path != OTHERS for route in parse_path(path, "schema").routes)
    return [route.steps[:2] for route in routes]


def _steps_within(context: Context, item_paths: Sequence[str | None]) -> list[Place]:
    """Return the names of fields that the config reads in sessions.

    They are those of paths within a session, and all names in paths of the item that lead into the history. The latter
    may also be fields of turns.
    """
    own = (context.turns_field, context.session_schema.id, context.session_schema.date)
    history = _first_segment(context.field)
    paths = (text for text in item_paths if text and text != OTHERS)
    to_history = (text for text in paths if not history or _first_segment(text) in (history, []))
    return [*_first_steps(own), *((name,) for text in to_history for name in _NAME.findall(text))]


def _first_segment(path: str) -> list[str]:
    """Return the first segment of a path in a list; an empty list if the path has alternatives or begins with `..`."""
    return parse_path(path, "schema").segments()[:1]


def list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(map(preview, names[:_MOST_NAMES])) + more


def _names(value: Any) -> dict[str, None]:
    return dict.fromkeys(value) if isinstance(value, dict) else {}
