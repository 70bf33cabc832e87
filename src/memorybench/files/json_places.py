"""Finds the lines of places in JSON text. Only used to build error messages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cached_property

from memorybench.core.errors import BadInput

from .located import Place, Step

_BLANK = re.compile(r"[ \t\n\r]*")
_STRING_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)
_ESCAPE = re.compile(
    r"\\u[dD][89abAB]..\\u[dD][c-fC-F].."  # two halves that make one character
    r"|(?P<lone>\\u[dD][89a-fA-F]..)"
    r"|\\."
)


class JsonLines:
    """Maps places in a JSON text to lines. The text is loaded on first use."""

    def __init__(self, fetch: Callable[[], str]) -> None:
        self._fetch = fetch
        # an error report asks for many places in the same containers
        self._found: dict[int, dict[Step, tuple[int, int]]] = {}

    def __call__(self, place: Place) -> int | None:
        try:
            offset = self._offset(place)
        except (BadInput, ValueError, IndexError):  # the file was changed or removed after it was read
            return None
        return None if offset is None else line_at(self._text, offset)

    @cached_property
    def _text(self) -> str:
        return self._fetch()

    def _offset(self, place: Place) -> int | None:
        """Return the offset of a place in the text: of the key of a member, of an item, or of the whole value."""
        start = value = skip_blanks(self._text, 0)
        for step in place:
            if value not in self._found:
                self._found[value] = {name: (at, begins) for name, at, begins in members(self._text, value)}
            if step not in self._found[value]:
                return None
            start, value = self._found[value][step]
        return start


def line_at(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def skip_blanks(text: str, offset: int) -> int:
    blanks = _BLANK.match(text, offset)
    assert blanks is not None  # the pattern also matches nothing
    return blanks.end()


def members(text: str, offset: int, decoder: json.JSONDecoder | None = None) -> Iterator[tuple[Step, int, int]]:
    """Yield the name or index of each member of the array or object at `offset`, and where it and its value begin.

    `decoder` parses each value to find its end, but only after the value was yielded; its errors are not caught.
    """
    decoder = decoder or json.JSONDecoder()
    opening, index = text[offset], 0
    if opening not in "[{":
        return
    start = skip_blanks(text, offset + 1)
    while text[start] not in "]}":
        step: Step = index
        value = start
        if opening == "{":
            step, end = decoder.raw_decode(text, start)
            value = skip_blanks(text, skip_blanks(text, end) + len(":"))
        yield step, start, value
        _, end = decoder.raw_decode(text, value)
        start = skip_blanks(text, end)
        if text[start] == ",":
            start = skip_blanks(text, start + 1)
        index += 1


def find_invalid_value(text: str, decoder: json.JSONDecoder) -> tuple[Place, int]:
    """Return place and offset of the innermost value for which `decoder` raises."""
    place: Place = ()
    value = skip_blanks(text, 0)
    while True:
        step: Step | None = None
        inner = value
        try:
            for step, _, inner in members(text, value, decoder):  # noqa: B007 - the last ones given out are the answer
                pass
        except ValueError:
            assert step is not None  # names of members raise nothing
            place, value = (*place, step), inner
        else:
            return place, value


def find_duplicate_key(text: str, offset: int) -> tuple[Step, int]:
    """Return the duplicate key of the object at `offset`, and the offset of its second occurrence."""
    seen = set()
    for step, start, _ in members(text, offset):
        if step in seen:
            return step, start
        seen.add(step)
    raise AssertionError("the object has no duplicate key")


def find_too_deep(text: str, deepest: int) -> int | None:
    """Return the offset at which nesting first exceeds `deepest` levels; None if it does not."""
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        if token[0] in "[{":
            depth += 1
            if depth > deepest:
                return token.start()
        elif token[0] in "]}":
            depth -= 1
    return None


def find_lone_surrogate(text: str) -> int | None:
    """Return the offset of the first escaped lone surrogate; None if there is none."""
    return next((escape.start() for escape in _ESCAPE.finditer(text) if escape["lone"]), None)
