"""Reads the rubric of a question, and the texts that a right answer must or must not contain."""

from __future__ import annotations

from math import isfinite
from typing import Any

from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.core.questions import RubricItem
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document
from memorybench.text.normalisation import normalise_answer
from memorybench.text.sanitize import preview

from .config import SchemaMapping
from .ids import locate
from .paths import only
from .question_paths import QuestionPaths


class Gold(Struct, frozen=True):
    rubric: tuple[RubricItem, ...] = ()
    must_contain: tuple[str, ...] = ()
    must_not_contain: tuple[str, ...] = ()
    blanks: int = 0
    """Number of empty items and texts, which are skipped."""

    @property
    def is_enough(self) -> bool:
        """Whether answers can be scored without a gold answer, because there is a rubric or a text to check."""
        return bool(self.rubric or self.must_contain or self.must_not_contain)


class GoldReader:
    """Reads the rubric and the required and excluded texts of questions."""

    def __init__(self, mapping: SchemaMapping, paths: QuestionPaths, where: str) -> None:
        self._rubric, self._required, self._excluded = paths.rubric, paths.must_contain, paths.must_not_contain
        self.answers_are_rubric = mapping.answer_mode == "rubric" and paths.rubric is None
        """Whether the gold answers are the items of the rubric."""
        item = mapping.rubric_item
        self._text = None if item.text is None else Path.parse(item.text, where)
        self._weight = None if item.weight is None else Path.parse(item.weight, where)

    def read(self, part: Document) -> Gold:
        """Return the rubric of a question, and the texts that an answer must or must not contain.

        `part` is the question in the data.
        """
        rubric: tuple[RubricItem, ...] = ()
        if self._rubric is not None:
            items = _values(self._rubric, part)
            if not items:
                raise BadInput(
                    part.where(),
                    "the question has no rubric",
                    expected=f"a list at {self._rubric.text}",
                    remedy="add the rubric to the data, or correct the path in the config",
                )
            rubric = tuple(self._item(item, self._rubric, part) for item in items)
        blanks = sum(_count_blanks(path, part) for path in (self._rubric, self._required, self._excluded) if path)
        required, excluded = _texts(self._required, part), _texts(self._excluded, part)
        return Gold(rubric, required, excluded, blanks)

    def _item(self, item: Any, path: Path, part: Document) -> RubricItem:
        where = locate(path, part)()
        text = item if self._text is None else only(self._text, item, lambda: f"{where}: schema.rubricItem.text")
        weight = 1 if self._weight is None else only(self._weight, item, lambda: f"{where}: schema.rubricItem.weight")
        if not isinstance(text, str) or not text.strip():
            raise BadInput(
                where,
                f"the rubric has an invalid item {preview(item)}",
                expected="a text, or an object with a text at the path schema.rubricItem.text",
                remedy="correct schema.rubricItem",
            )
        is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not is_number or not isfinite(weight) or weight <= 0:
            raise BadInput(
                where,
                f"invalid weight {preview(weight)} of the item {preview(text)}",
                expected="a number above 0",
                remedy="correct schema.rubricItem.weight",
            )
        return RubricItem(text.strip(), float(weight))


def _values(path: Path, part: Document) -> list[Any]:
    """Return the matches of a path that are not blank; a match that is a list is replaced by its members."""
    found: list[Any] = []
    for match in path.all(part.value):
        found += match if isinstance(match, list) else [match]
    return [value for value in found if not is_blank(value)]


def _count_blanks(path: Path, part: Document) -> int:
    """Return the number of empty members in the lists at a path; an empty field is not counted."""
    return sum(is_blank(value) for match in path.all(part.value) if isinstance(match, list) for value in match)


def answer_text(value: Any) -> str:
    """Return a value of the data as the text of an answer: yes or no for a boolean, and 10 for the number 10.0.

    With 10.0 as the gold answer, an answer that says 10 would be wrong.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _texts(path: Path | None, part: Document) -> tuple[str, ...]:
    if path is None:
        return ()
    values = _values(path, part)
    for value in values:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise BadInput(
                locate(path, part)(), f"invalid text {preview(value)}", expected="a text, or a list of texts"
            )
        if not normalise_answer(str(value)):
            raise BadInput(
                locate(path, part)(),
                f"no answer can contain {preview(value)}: case, punctuation and articles are ignored",
                expected="a text with a word",
                remedy="correct or remove the text",
            )
    return tuple(dict.fromkeys(map(answer_text, values)))
