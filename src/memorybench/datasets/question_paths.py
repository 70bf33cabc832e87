"""The paths of a config that lead to questions and to their fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from memorybench.files.jsonpaths import Path

from .config import Questions, SchemaMapping
from .paths import OTHERS, parse_path, uses_marks

ROWS = "@rows"
"""Name of the field with the questions that are made from `questions.columns`."""


@dataclass(frozen=True, slots=True)
class QuestionPaths:
    """The paths to the questions of an item and to the fields of a question."""

    question: Path
    answer: Path | None
    rubric: Path | None
    must_contain: Path | None
    must_not_contain: Path | None
    forbidden: Path | None
    evidence: Path | None
    choices: Path | None
    forbids_others: bool
    """Whether all sessions or turns that are not evidence are forbidden."""
    kind: Path | None = None
    date: Path | None = None
    id: Path | None = None
    after: Path | None = None
    """Path to the number of sessions or turns of the history after which the question is asked."""
    questions: Path | None = None
    """Path to the questions of an item; None if an item is a question."""
    columns: Mapping[str, Path] = field(default_factory=dict)
    labels: Mapping[str, Path] = field(default_factory=dict)

    @property
    def uses_marks(self) -> bool:
        """Whether a path within a question begins with a name such as `@key`."""
        return any(map(uses_marks, (*self._fields(), *self.labels.values())))

    def _fields(self) -> Iterator[Path | None]:
        yield from (self.question, self.answer, self.rubric, self.must_contain, self.must_not_contain, self.forbidden)
        yield from (self.evidence, self.choices, self.kind, self.date, self.id, self.after)

    def optional(self) -> dict[str, Path]:
        """Return the paths to fields that a question need not have, by their names in keys such as `answerField`."""
        named = {
            "answer": self.answer,
            "mustContain": self.must_contain,
            "mustNotContain": self.must_not_contain,
            "forbidden": self.forbidden,
            "choices": self.choices,
            "category": self.kind,
            "date": self.date,
        }
        return {name: path for name, path in named.items() if path is not None}


def parse_question_paths(mapping: SchemaMapping, where: str) -> QuestionPaths:
    """Parse the paths of a config, which is named `where` in error messages."""
    if mapping.questions is not None:
        return _of_many(mapping.questions, where)
    assert mapping.question is not None
    forbids_others = mapping.forbidden == OTHERS
    return QuestionPaths(
        question=parse_path(mapping.question, where),
        answer=_optional(mapping.answer, where),
        rubric=_optional(mapping.rubric, where),
        must_contain=_optional(mapping.must_contain, where),
        must_not_contain=_optional(mapping.must_not_contain, where),
        forbidden=None if forbids_others else _optional(mapping.forbidden, where),
        evidence=_optional(mapping.evidence, where),
        choices=_optional(mapping.choices, where),
        forbids_others=forbids_others,
    )


def _of_many(many: Questions, where: str) -> QuestionPaths:
    forbids_others = many.forbidden_field == OTHERS
    columns = {name: parse_path(text, where) for name, text in many.columns.items()}
    return QuestionPaths(
        question=parse_path(many.question_field, where),
        answer=_optional(many.answer_field, where),
        rubric=_optional(many.rubric_field, where),
        must_contain=_optional(many.must_contain_field, where),
        must_not_contain=_optional(many.must_not_contain_field, where),
        forbidden=None if forbids_others else _optional(many.forbidden_field, where),
        evidence=_optional(many.evidence_field, where),
        choices=_optional(many.choices_field, where),
        forbids_others=forbids_others,
        kind=_optional(many.category_field, where),
        date=_optional(many.date_field, where),
        id=_optional(many.id_field, where),
        after=_optional(many.prefix_field, where),
        questions=Path.parse(f'$["{ROWS}"]', where) if columns else _optional(many.field, where),
        columns=columns,
        labels={name: parse_path(text, where) for name, text in many.labels.items()},
    )


def _optional(text: str | None, where: str) -> Path | None:
    return None if text is None else parse_path(text, where)
