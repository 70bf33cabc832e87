"""The paths of a config that lead to questions and to their fields."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from memorybench.files.jsonpaths import Path
from memorybench.text.spelling import camel

from .config import SchemaMapping
from .paths import OTHERS, parse_path, uses_marks

ROWS = "@rows"
"""Name of the field with the questions that are made from `questions.columns`."""
_SAME_KEYS = ("question", "answer", "rubric", "must_contain", "must_not_contain", "forbidden", "evidence", "choices")
"""Keys of `schema` for a field of a question; in `schema.questions`, they end with `Field`."""
_OWN_KEYS = ("category", "date", "id", "prefix")
"""Further keys of `schema.questions`, without their ending `Field`."""
_OPTIONAL = ("answer", "must_contain", "must_not_contain", "forbidden", "choices", "category", "date")
"""Keys for fields that a question need not have."""


class QuestionPaths(Struct, frozen=True):
    """The paths to the questions of an item and to the fields of a question."""

    question: Path
    answer: Path | None = None
    rubric: Path | None = None
    must_contain: Path | None = None
    must_not_contain: Path | None = None
    forbidden: Path | None = None
    evidence: Path | None = None
    choices: Path | None = None
    category: Path | None = None
    date: Path | None = None
    id: Path | None = None
    prefix: Path | None = None
    """Path to the number of sessions or turns of the history after which the question is asked."""
    questions: Path | None = None
    """Path to the questions of an item; None if an item is a question."""
    forbids_others: bool = False
    """Whether all sessions or turns that are not evidence are forbidden."""
    columns: Mapping[str, Path] = field(default_factory=dict)
    labels: Mapping[str, Path] = field(default_factory=dict)

    @property
    def uses_marks(self) -> bool:
        """Whether a path within a question begins with a name such as `@key`."""
        fields = [getattr(self, name) for name in (*_SAME_KEYS, *_OWN_KEYS)]
        return any(map(uses_marks, (*fields, *self.labels.values())))

    def optional(self) -> dict[str, Path]:
        """Return the given paths to fields that a question need not have, by name, such as `mustContain`."""
        return {camel(name): path for name in _OPTIONAL if (path := getattr(self, name)) is not None}


def parse_question_paths(mapping: SchemaMapping, where: str) -> QuestionPaths:
    """Parse the paths of a config, which is named `where` in error messages."""
    many = mapping.questions
    texts = {name: mapping.question_path(name) for name in _SAME_KEYS}
    if many is not None:
        texts |= {name: getattr(many, f"{name}_field") for name in _OWN_KEYS}
        texts["questions"] = f'$["{ROWS}"]' if many.columns else many.field
    forbids_others = texts["forbidden"] == OTHERS
    if forbids_others:
        del texts["forbidden"]
    return QuestionPaths(
        **{name: parse_path(text, where) for name, text in texts.items() if text is not None},
        forbids_others=forbids_others,
        columns={name: parse_path(text, where) for name, text in many.columns.items()} if many else {},
        labels={name: parse_path(text, where) for name, text in many.labels.items()} if many else {},
    )
