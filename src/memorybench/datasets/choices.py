"""Multiple choice: choices are appended to the question; the gold answer is accepted by label or by text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from string import ascii_lowercase
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.core.questions import Choice
from memorybench.text.sanitize import preview

_LABELLED = re.compile(r"\(?(?P<label>[A-Za-z0-9]{1,2})[).:]\s+(?P<text>.+)", re.DOTALL)
_DECORATION = " ().:"


def read_choices(value: Any, where: Callable[[], str]) -> tuple[Choice, ...]:
    """Read choices from an array or from an object of label and text; texts of an array may have their own labels."""
    if isinstance(value, dict) and value:
        return tuple(Choice(str(label).strip(_DECORATION), _text(text, where)) for label, text in value.items())
    if not isinstance(value, list) or not 2 <= len(value) <= len(ascii_lowercase):
        expected = f"2 to {len(ascii_lowercase)} choices"
        raise BadInput(where(), f"invalid choices {preview(value)}", expected=expected, remedy="correct schema.choices")
    texts = [_text(text, where) for text in value]
    labelled = [match for text in texts if (match := _LABELLED.fullmatch(text))]
    if len({match["label"] for match in labelled}) == len(texts):
        return tuple(Choice(match["label"], match["text"]) for match in labelled)
    return tuple(Choice(label, text) for label, text in zip(ascii_lowercase, texts, strict=False))


def gold_answers(answer: Any, choices: Sequence[Choice], where: Callable[[], str]) -> tuple[str, ...]:
    """Return the accepted answers: the whole choice, its text, and its label."""
    choice = _choose(answer, choices)
    if choice is None:
        raise BadInput(
            where(),
            f"{preview(answer)} is not one of the choices",
            expected="a choice's text, its label, or its index from 0",
        )
    return (str(choice), choice.text, f"({choice.label})")


def _choose(answer: Any, choices: Sequence[Choice]) -> Choice | None:
    text = str(answer).strip()
    for choice in choices:
        if text in (choice.text, str(choice)):
            return choice
    label = text.strip(_DECORATION).lower()
    for choice in choices:
        if label == choice.label.lower():
            return choice
    is_index = isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < len(choices)
    return choices[answer] if is_index else None


def _text(value: Any, where: Callable[[], str]) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadInput(where(), f"invalid choice {preview(value)}", expected="a text or a number")
    return str(value).strip()
