"""JSON by the standard library's decoder, at about its speed, without what it mends or keeps silently.

Refused beside broken syntax: a key that stands twice in one object, NaN and Infinity (also as 1e999), integers
beyond Python's limit of digits, nesting beyond DEEPEST, and lone surrogates, which no file could be written with.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.text.sanitize import preview

from .json_places import JsonLines, culprit, line_at, lone_surrogate, repeated_member, too_deep
from .located import DEEPEST, Document, Place, spell
from .reading import LARGEST, read_text

_CONTAINERS = frozenset((dict, list))


class _Repeated(ValueError):
    pass


class _NotFinite(ValueError):
    pass


class _Overflow(ValueError):
    pass


class _TooDeep(ValueError):
    pass


class _LoneSurrogate(ValueError):
    pass


def load_json(path: Path | str, largest: int = LARGEST) -> Document:
    """The text is not kept: it is read again if a line is asked for."""
    fetch = partial(read_text, Path(path), largest)
    return Document(str(path), decode(fetch(), str(path)), JsonLines(fetch))


def parse_json(text: str, path: str) -> Document:
    """JSON that did not come from a file of its own; `path` is what messages call it."""
    return Document(path, decode(text, path), JsonLines(lambda: text))


def decode(text: str, path: str, line: int = 1) -> Any:
    """The value of a JSON text that begins at `line` of `path`."""
    try:
        value = _QUICK.decode(text)
        _check(value)
    except (ValueError, RecursionError) as error:
        raise _complaint(error, text, path, line) from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _Repeated
    return made


def _constant(literal: str) -> float:
    raise _NotFinite(literal)


def _float(literal: str) -> float:
    number = float(literal)
    if not isfinite(number):
        raise _Overflow
    return number


_QUICK = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)
# a hook on floats doubles the time of a file of vectors, so this one serves only to find the number that _check saw
_THOROUGH = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)


def _check(value: Any) -> None:
    """Refuses what the decoder lets pass, level by level: recursion is what a deep value would break."""
    level: list[Any] = [[value]]
    keys: set[str] = set()
    for _ in range(DEEPEST + 1):
        below: list[Any] = []
        for container in level:
            if type(container) is dict:
                keys.update(container)
                container = container.values()
            for child in container:
                kind = type(child)
                if kind is str:
                    if not child.isascii():
                        _check_text(child)
                elif kind in _CONTAINERS:
                    below.append(child)
                elif kind is float and not isfinite(child):
                    raise _Overflow
        if not below:
            break
        level = below
    else:
        raise _TooDeep
    _check_text("".join(keys))


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _LoneSurrogate from None


@dataclass(frozen=True, slots=True)
class _Fault:
    offset: int
    problem: str
    expected: str = ""
    remedy: str = ""
    place: Place = ()


def _complaint(error: ValueError | RecursionError, text: str, path: str, line: int) -> BadInput:
    fault = _syntax_fault(error) if isinstance(error, json.JSONDecodeError) else _fault(error, text)
    where = f"{path}:{line + line_at(text, fault.offset) - 1}"
    if fault.place:
        where = f"{where}: {spell(fault.place)}"
    return BadInput(where, fault.problem, expected=fault.expected, remedy=fault.remedy)


def _syntax_fault(error: json.JSONDecodeError) -> _Fault:
    at = f"at column {error.colno}"
    if error.msg.startswith("Unterminated") or not error.doc[error.pos :].strip():
        problem = f"ends in the middle of a value {at}"
        return _Fault(error.pos, problem, "complete JSON", "fetch or write the file again")
    if error.msg == "Extra data":
        remedy = "keep one; values on lines of their own belong in a .jsonl file"
        return _Fault(error.pos, f"goes on after its value {at}", "one JSON value", remedy)
    said = error.msg[0].lower() + error.msg[1:].removesuffix(" at")
    return _Fault(error.pos, f"not JSON {at}: {said}", remedy="correct that line")


def _fault(error: ValueError | RecursionError, text: str) -> _Fault:
    if isinstance(error, RecursionError | _TooDeep):
        return _Fault(too_deep(text, DEEPEST) or 0, "nested too deeply", f"at most {DEEPEST} levels", "flatten it")
    if isinstance(error, _LoneSurrogate):
        problem = "half a character (a lone surrogate such as \\ud83d)"
        return _Fault(
            lone_surrogate(text) or 0, problem, "whole characters", "write the whole of it, or remove the half"
        )
    # the decoder that raised must search, or it may stop at a fault of another kind
    place, offset = culprit(text, _THOROUGH if isinstance(error, _Overflow) else _QUICK)
    match error:
        case _Repeated():
            key, offset = repeated_member(text, offset)
            return _Fault(
                offset, f"the key {preview(key)} stands here twice", "each key once", "remove one", (*place, key)
            )
        case _NotFinite():
            return _Fault(offset, f"{error} is not a finite number", "a number or null", "use null", place)
        case _Overflow():
            return _Fault(offset, "a number too large to hold", "a finite number", "write it as a string", place)
        case _:
            return _Fault(offset, "an integer of too many digits", "a number", "write it as a string", place)
