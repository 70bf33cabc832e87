"""Strict JSON, based on the standard library's decoder.

Also rejected: duplicate keys, NaN and Infinity (including 1e999), integers beyond Python's limit of digits, nesting
deeper than DEEPEST, and lone surrogates.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import partial
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from memorybench.core.errors import BadInput
from memorybench.text.sanitize import preview

from .json_places import JsonLines, find_duplicate_key, find_invalid_value, find_lone_surrogate, find_too_deep, line_at
from .located import DEEPEST, Document, Place, format_place
from .reading import read_text

_FENCED = re.compile(r"^```\w*[^\S\n]*\n(.*?)^[^\S\n]*```", re.DOTALL | re.MULTILINE)
"""Matches a code fence; its content is the group."""
_CLOSING = {"{": "}", "[": "]"}
_CONTAINERS = frozenset((dict, list))


class DuplicateKey(ValueError):
    """An object has a key twice. The message of the exception is the key."""


class _NotFinite(ValueError):
    pass


class _Overflow(ValueError):
    pass


def load_json(path: Path | str) -> Document:
    """Read a JSON file. The text is not kept; it is read again when a line number is needed."""
    fetch = partial(read_text, Path(path))
    return Document(str(path), decode(fetch(), str(path)), JsonLines(fetch))


def parse_json(text: str, path: str) -> Document:
    """Parse JSON text. Raise BadInput, which names `path` and the line, if it is invalid."""
    return Document(path, decode(text, path), JsonLines(lambda: text))


def decode(text: str, path: str, line: int = 1) -> Any:
    """Return the value of a JSON text that begins at `line` of `path`."""
    try:
        value = STRICT_DECODER.decode(text)
        _check(value)
    except (ValueError, RecursionError) as error:
        raise _error(error, text, path, line) from None
    return value


def decode_again(text: str, path: str, line: int = 1) -> Any:
    """Return the value of a JSON text that `decode` or `decode_at` has accepted before.

    Takes a third of the time, because the parser of pydantic does not look for duplicate keys.
    """
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:  # the text was changed
        return decode(text, path, line)


def find_json(text: str, openings: str = "{[") -> str:
    """Return the part of a text from the first bracket in `openings` to the last closing bracket; "" if there is none.

    This is not a regular expression, because that would take minutes for a text of 100,000 brackets.
    """
    starts = [start for bracket in openings if (start := text.find(bracket)) >= 0]
    end = max(text.rfind(_CLOSING[bracket]) for bracket in openings)
    return text[min(starts) : end + 1] if starts else ""


def find_only_json(text: str) -> str | None:
    """Return what may be the only JSON in a longer text: its only code fence, or else what `find_json` returns.

    None if there are several fences, or no bracket. It may be invalid, for example if there are several objects.
    """
    candidates = _FENCED.findall(text) or [find_json(text)]
    return candidates[0] if len(candidates) == 1 and candidates[0] else None


def decode_at(text: str, start: int) -> tuple[Any, int]:
    """Return the JSON value that begins at `start`, and the offset of its end. Raise ValueError or RecursionError."""
    value, end = STRICT_DECODER.raw_decode(text, start)
    _check(value)
    return value, end


def unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a dict of these keys and values; raise DuplicateKey if a key occurs twice. For `object_pairs_hook`."""
    made = dict(pairs)
    if len(made) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise DuplicateKey(next(key for key in counts if counts[key] > 1))
    return made


def _constant(literal: str) -> float:
    raise _NotFinite(literal)


def _float(literal: str) -> float:
    number = float(literal)
    if not isfinite(number):
        raise _Overflow
    return number


STRICT_DECODER = json.JSONDecoder(object_pairs_hook=unique_object, parse_constant=_constant)
"""Decodes JSON; raises DuplicateKey if an object has a key twice, and ValueError for NaN and Infinity."""
# a float hook doubles the time for files of vectors, so it is only used to locate the number that _check found
_THOROUGH = json.JSONDecoder(object_pairs_hook=unique_object, parse_constant=_constant, parse_float=_float)


def _check(value: Any) -> None:
    """Raise an error for values that the standard decoder accepts but this module does not.

    It iterates level by level, because recursion fails for deep nesting.
    """
    level: list[Any] = [[value]]
    keys: set[str] = set()
    for _ in range(DEEPEST + 1):
        keys.update(*[container for container in level if type(container) is dict])
        children = chain.from_iterable(
            container.values() if type(container) is dict else container for container in level
        )
        level = []
        # most values of a large file are texts of ASCII characters, and need no further look
        for child in [child for child in children if type(child) is not str or not child.isascii()]:
            kind = type(child)
            if kind is str:
                child.encode()  # raises UnicodeEncodeError for a lone surrogate
            elif kind in _CONTAINERS:
                level.append(child)
            elif kind is float and not isfinite(child):
                raise _Overflow
        if not level:
            break
    else:
        raise RecursionError
    "".join(keys).encode()


def _error(error: ValueError | RecursionError, text: str, path: str, line: int) -> BadInput:
    def bad(offset: int, problem: str, expected: str, remedy: str, place: Place = ()) -> BadInput:
        where = f"{path}:{line + line_at(text, offset) - 1}"
        return BadInput(
            f"{where}: {format_place(place)}" if place else where, problem, expected=expected, remedy=remedy
        )

    match error:
        case json.JSONDecodeError(pos=offset, msg=message):
            at = f"at column {error.colno}"
            if message.startswith("Unterminated") or not text[offset:].strip():
                return bad(offset, f"truncated JSON {at}", "complete JSON", "download or write the file again")
            if message == "Extra data":
                remedy = "for one value per line use a .jsonl file"
                return bad(offset, f"extra data after the value {at}", "one JSON value", remedy)
            detail = message[0].lower() + message[1:].removesuffix(" at")
            return bad(offset, f"invalid JSON {at}: {detail}", "", "correct the line")
        case RecursionError():
            offset = find_too_deep(text, DEEPEST) or 0
            return bad(offset, "nested too deeply", f"at most {DEEPEST} levels", "flatten it")
        case UnicodeEncodeError():
            offset = find_lone_surrogate(text) or 0
            return bad(offset, "lone surrogate such as \\ud83d", "complete characters", "complete or remove it")
    # search with the decoder that raised: another one may stop at a different error
    place, offset = find_invalid_value(text, _THOROUGH if isinstance(error, _Overflow) else STRICT_DECODER)
    match error:
        case DuplicateKey():
            key, offset = find_duplicate_key(text, offset)
            return bad(offset, f"duplicate key {preview(key)}", "each key once", "remove one", (*place, key))
        case _NotFinite():
            return bad(offset, f"{error} is not a finite number", "a number or null", "use null", place)
        case _Overflow():
            return bad(offset, "number out of range", "a finite number", "write it as a string", place)
        case _:
            return bad(offset, "integer with too many digits", "a number", "write it as a string", place)
