"""Finds places in JSON text. Nothing here runs while all is well: lines are looked for when a message needs them."""

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
    """The line of each place in a JSON text, which is fetched at the first question."""

    def __init__(self, fetch: Callable[[], str]) -> None:
        self._fetch = fetch
        # a report of many faults asks for many places in the same containers
        self._found: dict[int, dict[Step, tuple[int, int]]] = {}

    def __call__(self, place: Place) -> int | None:
        try:
            offset = self._offset(place)
        except (BadInput, ValueError, IndexError):  # the file was changed or removed since it was read
            return None
        return None if offset is None else line_at(self._text, offset)

    @cached_property
    def _text(self) -> str:
        return self._fetch()

    def _offset(self, place: Place) -> int | None:
        """Where the key of a member begins, or an item, or the root."""
        start = value = past_blanks(self._text, 0)
        for step in place:
            if value not in self._found:
                self._found[value] = {name: (at, begins) for name, at, begins in members(self._text, value)}
            if step not in self._found[value]:
                return None
            start, value = self._found[value][step]
        return start


def line_at(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def past_blanks(text: str, offset: int) -> int:
    blanks = _BLANK.match(text, offset)
    assert blanks is not None  # it matches nothing at all, too
    return blanks.end()


def members(text: str, offset: int, decoder: json.JSONDecoder | None = None) -> Iterator[tuple[Step, int, int]]:
    """Name or index, start, and start of value of each member of the container at `offset`; of a scalar, none.

    `decoder` skips the values, at its own speed, after each was given out: what it raises comes out here.
    """
    decoder = decoder or json.JSONDecoder()
    opening, index = text[offset], 0
    if opening not in "[{":
        return
    start = past_blanks(text, offset + 1)
    while text[start] not in "]}":
        step: Step = index
        value = start
        if opening == "{":
            step, end = decoder.raw_decode(text, start)
            value = past_blanks(text, past_blanks(text, end) + len(":"))
        yield step, start, value
        _, end = decoder.raw_decode(text, value)
        start = past_blanks(text, end)
        if text[start] == ",":
            start = past_blanks(text, start + 1)
        index += 1


def culprit(text: str, decoder: json.JSONDecoder) -> tuple[Place, int]:
    """The innermost value in which `decoder` raises, given that it does."""
    place: Place = ()
    value = past_blanks(text, 0)
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


def repeated_member(text: str, offset: int) -> tuple[Step, int]:
    """The name that the object at `offset` has twice, and where it stands the second time."""
    seen = set()
    for step, start, _ in members(text, offset):
        if step in seen:
            return step, start
        seen.add(step)
    raise AssertionError("called for an object with a repeated name")


def too_deep(text: str, deepest: int) -> int | None:
    """Where nesting first exceeds `deepest`."""
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        if token[0] in "[{":
            depth += 1
            if depth > deepest:
                return token.start()
        elif token[0] in "]}":
            depth -= 1
    return None


def lone_surrogate(text: str) -> int | None:
    """Where the first escape of half a character stands."""
    return next((escape.start() for escape in _ESCAPE.finditer(text) if escape["lone"]), None)
