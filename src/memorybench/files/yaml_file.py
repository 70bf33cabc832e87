"""Strict YAML for hand-written configs.

`true` and `false` are the only booleans, numbers are decimal, `null`, `~` and an empty value are null, dates and times
stay text, and keys are always text. Unquoted values that YAML 1.1 and 1.2 read differently are rejected: yes, no, on,
off, 010, 0x1F, 1_000. Also rejected: duplicate keys, anchors, aliases, tags, several documents, infinities, and nesting
deeper than DEEPEST.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any

import yaml

from memorybench.core.errors import BadInput
from memorybench.text.sanitize import preview

from .located import DEEPEST, Document, Place, format_place
from .reading import read_text

# The C parser is twenty times as fast. Only its events are used; the values are built here.
_PARSER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_OLD_BOOLEAN = re.compile(r"yes|no|on|off", re.IGNORECASE)
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"[-+]?\.inf|\.nan", re.IGNORECASE)
_HALF_CHARACTER = re.compile(r"[\ud800-\udfff]")
_OTHER_NUMBER = re.compile(
    r"[-+]?(?:0[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|0[xob][0-9a-f_]+|[0-9]+_[0-9_.]*)", re.IGNORECASE
)


def load_yaml(path: Path | str) -> Document:
    return parse_yaml(read_text(Path(path)), str(path))


def parse_yaml(text: str, path: str) -> Document:
    """Parse YAML text. Raise BadInput, which names `path` and the line, if it is invalid."""
    forbidden = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if forbidden:
        where = f"{path}:{text.count(chr(10), 0, forbidden.start()) + 1}"
        raise BadInput(where, f"YAML forbids the character {ord(forbidden[0]):#x}", expected="text", remedy="remove it")
    builder = _Builder(path, yaml.parse(text, Loader=_PARSER))
    try:
        value = builder.document()
    except yaml.MarkedYAMLError as error:
        raise _syntax(error, path) from None
    return Document(path, value, builder.lines.get)


class _Builder:
    """Builds plain data from YAML events and records the line of every place."""

    def __init__(self, path: str, events: Iterator[yaml.Event]) -> None:
        self.lines: dict[Place, int] = {}
        self._path = path
        self._events = events

    def document(self) -> Any:
        next(self._events)  # the stream begins
        if isinstance(next(self._events), yaml.StreamEndEvent):
            raise BadInput(f"{self._path}:1", "the file contains only comments", remedy="fill it or remove it")
        value = self._node(next(self._events), ())
        next(self._events)  # the document ends
        following = next(self._events)
        if not isinstance(following, yaml.StreamEndEvent):
            raise self._error(following, (), "a second YAML document begins here", "use one file per document")
        return value

    def _node(self, event: yaml.Event, place: Place) -> Any:
        self.lines.setdefault(place, _line(event))
        self._check_supported(event, place)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, place)
        if len(place) == DEEPEST:
            raise self._error(event, place[:3], f"the data is nested deeper than {DEEPEST} levels", "use fewer levels")
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(place)
        return self._sequence(place)

    def _mapping(self, place: Place) -> dict[str, Any]:
        made: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event, place)
            if key in made:
                raise self._error(event, (*place, key), f"duplicate key {preview(key)}", "remove one of the two")
            self.lines[(*place, key)] = _line(event)
            made[key] = self._node(next(self._events), (*place, key))
        return made

    def _sequence(self, place: Place) -> list[Any]:
        made: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            made.append(self._node(event, (*place, len(made))))
        return made

    def _key(self, event: yaml.Event, place: Place) -> str:
        self._check_supported(event, place)
        if not isinstance(event, yaml.ScalarEvent) or not event.value:
            raise self._error(event, place, "invalid key", "write key: value, or put the text in quotes")
        return self._text(event, place)

    def _check_supported(self, event: yaml.Event, place: Place) -> None:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise self._error(event, place, "anchors (&) and aliases (*) are not supported", "repeat the value instead")
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise self._error(
                event, place, f"the tag {preview(tag)} is not supported", "remove it, or put the text in quotes"
            )

    def _scalar(self, event: yaml.ScalarEvent, place: Place) -> Any:
        text = self._text(event, place)
        if event.style:  # quoted, or a block
            return text
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if _OLD_BOOLEAN.fullmatch(text):
            problem = f"{text} is ambiguous: a boolean in YAML 1.1, text in YAML 1.2"
            raise self._error(event, place, problem, "write true or false, or put it in quotes")
        if _OTHER_NUMBER.fullmatch(text):
            problem = f"{text[:40]} is ambiguous: YAML 1.1 and 1.2 read it differently"
            raise self._error(event, place, problem, f"write {_decimal(text)[:40]}, or put it in quotes")
        if _INTEGER.fullmatch(text):
            return self._integer(event, place)
        if _INFINITE.fullmatch(text) or (_FLOAT.fullmatch(text) and not isfinite(float(text))):
            raise self._error(event, place, f"{text[:40]} is not a finite number", "use null, or put it in quotes")
        return float(text) if _FLOAT.fullmatch(text) else text

    def _integer(self, event: yaml.ScalarEvent, place: Place) -> int:
        try:
            return int(event.value)
        except ValueError:  # Python's limit of digits
            raise self._error(event, place, "the integer has too many digits", "put it in quotes") from None

    def _text(self, event: yaml.ScalarEvent, place: Place) -> str:
        text = str(event.value)
        if not text.isascii() and _HALF_CHARACTER.search(text):
            raise self._error(
                event, place, "the text contains half of a surrogate pair", "write the complete character"
            )
        return text

    def _error(self, event: yaml.Event, place: Place, problem: str, remedy: str) -> BadInput:
        where = f"{self._path}:{_line(event)}"
        return BadInput(f"{where}: {format_place(place)}" if place else where, problem, remedy=remedy)


def _line(event: yaml.Event) -> int:
    assert event.start_mark is not None  # parsed events have one
    return int(event.start_mark.line) + 1


def _decimal(text: str) -> str:
    """Return a suggestion for a number that is not decimal: "10" for `010`, "a decimal number" for `0x1F`."""
    plain = re.sub(r"^([-+]?)0+(?=[0-9])", r"\1", text.replace("_", ""))
    return plain if _FLOAT.fullmatch(plain) else "a decimal number"


def _syntax(error: yaml.MarkedYAMLError, path: str) -> BadInput:
    mark = error.problem_mark or error.context_mark
    where = path if mark is None else f"{path}:{mark.line + 1}"
    column = "" if mark is None else f" at column {mark.column + 1}"
    return BadInput(
        where,
        f"invalid YAML{column}: {error.problem}",
        remedy="check indentation (spaces, not tabs) and quotes on this line and the one above",
    )
