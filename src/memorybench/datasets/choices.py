"""Reads the choices of a multiple-choice question, and which of them are right."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce
from operator import getitem
from string import ascii_lowercase
from typing import Any

from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.core.questions import Choice, Question
from memorybench.files.located import Place
from memorybench.text.sanitize import preview

from .gold import answer_text

_LABELLED = re.compile(
    r"(?P<open>\()?(?P<label>[A-Za-z]|[0-9]{1,2})(?P<close>(?(open)\)|[).:]))\s+(?P<text>\S.*)", re.DOTALL
)
_DECORATION = " ().:"


class Choices(Struct, frozen=True):
    """The choices of a question, and how the question shows them."""

    choices: tuple[Choice, ...]
    lines: tuple[str, ...]
    """One line per choice: as in the data if the choice has a label there, otherwise with the label a, b, c …"""
    are_labels_unclear: bool = False
    """Whether the data labels the choices, but in another order than the labels a, b, c … that are shown. A gold answer
    that is only a label is then refused, because it may be a label of the data or a label that is shown."""
    are_labels_own: bool = False
    """Whether the labels come from the data; otherwise they are a, b, c …"""

    def right(self, answer: Any, first: int | None, where: Callable[[], str]) -> tuple[str, ...]:
        """Return the accepted spellings of the choice that a gold answer means, such as `(b) Rome`, `Rome` and `(b)`.

        Raise BadInput if the gold answer is none of the choices.
        If `first`, the index of the first choice, is not None, a gold answer that is a number is an index.
        """
        right = self._places(answer, first)
        if not right:
            raise BadInput(
                where(),
                f"{preview(answer)} is not one of the choices",
                expected=self._expected(first),
                remedy=self._remedy(answer, first),
            )
        forms = (
            (str(self.choices[n]), self.choices[n].text, f"({self.choices[n].label})", self.lines[n]) for n in right
        )
        return tuple(dict.fromkeys(form for choice in forms for form in choice))

    def _places(self, answer: Any, first: int | None) -> list[int]:
        text, count = answer_text(answer).strip(), len(self.choices)
        if first is not None and _is_number(text):
            return [int(text) - first] if 0 <= int(text) - first < count else []
        labels, label = tuple(choice.label for choice in self.choices), text.strip(_DECORATION)
        # the whole choice before its text: "B. Jones" may be a name, or the label B and the name Jones
        candidates = [self.lines, tuple(map(str, self.choices)), self._texts]
        if self.are_labels_own:  # {"1": "2", "2": "1"}: the gold 1 is the label
            candidates.insert(2, labels)
        for texts in candidates:
            if text in texts:
                return [place for place, other in enumerate(texts) if other == text]
        if self.are_labels_unclear:
            return []
        return [place for place, other in enumerate(labels) if other.lower() == label.lower()]

    @property
    def _texts(self) -> tuple[str, ...]:
        return tuple(choice.text for choice in self.choices)

    def is_label_or_text(self, answer: Any, first: int | None) -> bool:
        """Return whether a gold answer is both the label of one choice and the text of another."""
        text = answer_text(answer).strip()
        if not self.are_labels_own or text not in self._texts:
            return False
        return self._places(answer, first) != [place for place, other in enumerate(self._texts) if other == text]

    def _expected(self, first: int | None) -> str:
        index = "" if first is None else f", or its index from {first}"
        label = "" if self.are_labels_unclear else ", its text without the label, or its label"
        return f"a choice as it is written{label}{index}"

    def _remedy(self, answer: Any, first: int | None) -> str:
        text = answer_text(answer).strip()
        if first is None and _is_number(text) and 0 <= int(text) <= len(self.choices):
            return "if it is an index, set schema.choiceIndex to that of the first choice: 0 or 1"
        if self.are_labels_unclear:
            return (
                "if it is a label, write a path to the object of label and text, or a path to the text of the right "
                "choice, such as options[?@.label == $.answer].text"
            )
        return "correct it" if first is None else "correct it or schema.choiceIndex"


def has_other_labels(matches: Sequence[tuple[Place, Any]], part: Any) -> bool:
    """Return whether the data labels the choices with letters in another order than a, b, c ….

    Labels are the keys of the choices (`options.*`), or another field of the objects that contain them
    (`options[*].text`).
    """
    if not all(place and isinstance(place[-1], str) for place, _ in matches):
        return False
    parents = [reduce(getitem, place[:-1], part) for place, _ in matches]
    own = [place[-1] for place, _ in matches]
    columns = [own] if len(set(own)) > 1 else [[parent.get(name) for parent in parents] for name in parents[0]]
    return any(_are_letters_in_other_order(column) for column in columns)


def _are_letters_in_other_order(values: Sequence[Any]) -> bool:
    """Return whether the values are distinct single letters in another order than a, b, c …."""
    letters = [str(value).strip(_DECORATION).lower() for value in values]
    if len(set(letters)) < len(letters) or any(len(letter) != 1 or not letter.isalpha() for letter in letters):
        return False
    return not ascii_lowercase.startswith("".join(letters))


def read_choices(value: Any, where: Callable[[], str], key: str, *, have_other_labels: bool = False) -> Choices:
    """Read choices from an array of texts, or from an object of label and text. Errors name the config key `key`.

    The beginnings of texts in an array are labels only if all texts begin with one, in one spelling and in order from
    A, a or 1. Otherwise, `B. Jones` is a name and `11: 30` a time.
    """
    if isinstance(value, dict) and value:
        named = tuple(Choice(str(label).strip(_DECORATION), _text(text, where)) for label, text in value.items())
        return Choices(named, tuple(map(str, named)), are_labels_own=True)
    if not isinstance(value, list) or not 2 <= len(value) <= len(ascii_lowercase):
        raise BadInput(
            where(),
            f"invalid choices {preview(value)}",
            expected=f"2 to {len(ascii_lowercase)} choices",
            remedy=f"correct the data or {key}",
        )
    texts = tuple(_text(text, where) for text in value)
    labelled = [match for text in texts if (match := _LABELLED.fullmatch(text))]
    if len(labelled) == len(texts) and _is_in_order(labelled):
        named = tuple(Choice(match["label"], match["text"]) for match in labelled)
        return Choices(named, texts, have_other_labels, are_labels_own=True)
    choices = tuple(Choice(label, text) for label, text in zip(ascii_lowercase, texts, strict=False))
    return Choices(choices, tuple(map(str, choices)), have_other_labels or len(labelled) == len(texts))


def choices_of(question: Question) -> Choices:
    """Return the choices of a question, with the lines in which the question's text shows them."""
    lines = question.question.removeprefix(f"{question.without_choices}\n").split("\n")
    if len(lines) != len(question.choices):  # a choice has several lines
        lines = list(map(str, question.choices))
    return Choices(question.choices, tuple(lines), are_labels_own=True)


def _is_in_order(labelled: list[re.Match[str]]) -> bool:
    """Return whether the labels are A, B, C …, a, b, c … or 1, 2, 3 …, all in one spelling."""
    if len({(match["open"], match["close"]) for match in labelled}) > 1:
        return False
    labels, first = [match["label"] for match in labelled], labelled[0]
    if first["label"] == "1":
        # 1: 30 is a time
        return first["close"] != ":" and labels == [str(number) for number in range(1, len(labels) + 1)]
    letters = ascii_lowercase if first["label"].islower() else ascii_lowercase.upper()
    return "".join(labels) == letters[: len(labels)]


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?[0-9]{1,9}", text) is not None


def _text(value: Any, where: Callable[[], str]) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadInput(where(), f"invalid choice {preview(value)}", expected="a text or a number")
    return answer_text(value).strip()
