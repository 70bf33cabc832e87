"""Validates a Document as a pydantic model; errors name file, line, key and remedy."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from memorybench.core.errors import BadInput
from memorybench.text.sanitize import preview
from memorybench.text.spelling import as_written, camel, join_choices, join_names, suggestion

from .located import Document, Place
from .record_keys import Shape, in_snake_case, shape_of

R = TypeVar("R", bound=BaseModel)

Forks = tuple[tuple[Place, str], ...]
"""The unions that contain an error, outermost first: the place of each, and the member type that reported the error."""

_EXPECTED = {
    "dict_type": "a mapping of keys to values",
    "list_type": "a list",
    "mapping_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "string_type": "text (in quotes if it looks like a number)",
    "tuple_type": "a list",
}


def validated(document: Document, record: type[R], *, spell: Callable[[str], str] = camel) -> R:
    """Return `document` as a `record`. If it has problems, raise BadInput with the first and the number of the others.

    Keys may be camelCase or snake_case; below `Mapping[str, Any]` and `Any` they are not changed. `spell` returns a
    key in the spelling for error messages: that in which such files are documented, `str` for snake_case.
    """
    made, faults = _validate(document, record, spell)
    if made is not None and not faults:
        return made
    first, *others = _errors(document, faults)
    if not others:
        raise first
    raise first_of(first, len(others) + 1)


def first_of(first: BadInput, count: int) -> BadInput:
    """Return an error that shows the first of `count` problems, and the count."""
    more = f"this is the first of {count} problems"
    remedy = f"{first.remedy} ({more})" if first.remedy else more
    return BadInput(first.where, first.problem, expected=first.expected, remedy=remedy)


def problems(document: Document, record: type[BaseModel]) -> list[BadInput]:
    """Return every problem that prevents reading `document` as a `record`, sorted by line; missing keys come last."""
    return _errors(document, _validate(document, record, camel)[1])


class _Fault(Struct, frozen=True):
    place: Place
    """The place of the problem, with keys as they are written in the file."""
    problem: str
    expected: str = ""
    remedy: str = ""
    kind: Literal["value", "unknown", "missing"] = "value"
    forks: Forks = ()


class _Spot(Struct, frozen=True):
    place: Place
    value: Any
    shape: Shape
    forks: Forks = ()


def _validate(document: Document, record: type[R], spell: Callable[[str], str]) -> tuple[R | None, list[_Fault]]:
    duplicates: list[Place] = []
    value = in_snake_case(document.value, shape_of(record), (), duplicates)
    faults = [_Fault(place, "duplicate key in another spelling", "each key once", "remove one") for place in duplicates]
    try:
        return record.model_validate(value), faults
    except ValidationError as error:
        shape, details = shape_of(record), error.errors(include_url=False)
        found = [_fault(one, document.value, shape, spell) for one in details]
        return None, faults + _select_branches(found)


def _errors(document: Document, faults: Sequence[_Fault]) -> list[BadInput]:
    # a missing key is often present under a wrong name, so unknown keys come first
    in_order = sorted(faults, key=lambda fault: (fault.kind == "missing", document.line(*fault.place) or 0))
    return [
        BadInput(document.where(*fault.place), fault.problem, expected=fault.expected, remedy=fault.remedy)
        for fault in in_order
    ]


def _fault(details: ErrorDetails, root: Any, shape: Shape, spell: Callable[[str], str]) -> _Fault:
    """Translate a pydantic error to the place and spelling of the file."""
    if details["type"] in ("missing", "extra_forbidden"):
        return _key_fault(details, _follow(details["loc"][:-1], _Spot((), root, shape)), spell)
    spot = _follow(details["loc"], _Spot((), root, shape))
    if details["type"] in ("union_tag_not_found", "union_tag_invalid"):
        return _tag_fault(details["ctx"]["discriminator"].strip("'"), spot, spell)
    return _Fault(spot.place, *_message(details), forks=spot.forks)


def _key_fault(details: ErrorDetails, holder: _Spot, spell: Callable[[str], str]) -> _Fault:
    name = str(details["loc"][-1])
    if details["type"] == "missing":
        return _missing_key(name, holder, spell)
    key = as_written(holder.value, name) or name
    known = [_in_style(name, key, spell) for name in holder.shape.names]
    return _Fault(
        (*holder.place, key),
        f"unknown key {preview(key)}",
        f"one of {join_names(known)}",
        suggestion(key, known),
        kind="unknown",
        forks=holder.forks,
    )


def _missing_key(name: str, holder: _Spot, spell: Callable[[str], str]) -> _Fault:
    spelled = _in_style(name, "".join(holder.value), spell)
    values = holder.shape.below(name).literals
    remedy = f"add it: {join_choices(values)}" if values else "add it"
    return _Fault(holder.place, f'"{spelled}" is missing', remedy=remedy, kind="missing", forks=holder.forks)


def _tag_fault(name: str, holder: _Spot, spell: Callable[[str], str]) -> _Fault:
    """Return the problem of a value of a union whose key `name`, which decides between the members, is not valid."""
    key = as_written(holder.value, name)
    if key is None:
        return _missing_key(name, holder, spell)
    given, values = holder.value[key], holder.shape.below(name).literals
    expected = join_choices([f"'{value}'" for value in values])
    close = suggestion(given, values) if isinstance(given, str) else ""
    return _Fault((*holder.place, key), f"is {preview(given)}", expected, close, forks=holder.forks)


def _in_style(name: str, of: str, spell: Callable[[str], str]) -> str:
    """Return `name` in the spelling of `spell`, or in snake_case if the keys in `of` contain underscores."""
    return name if "_" in of else spell(name)


def _follow(loc: Sequence[str | int], spot: _Spot) -> _Spot:
    """Return the place and the value in the file that pydantic's `loc` stands for."""
    for step in loc:
        key = _member(spot.value, step)
        if key is None:  # the name of a union's branch, not a step into the value
            forks = (*spot.forks, (spot.place, str(step)))
            spot = replace(spot, shape=spot.shape.branch(str(step)), forks=forks)
        else:
            spot = _Spot((*spot.place, key), spot.value[key], spot.shape.below(step), spot.forks)
    return spot


def _member(value: Any, step: str | int) -> str | int | None:
    if isinstance(value, dict):
        return as_written(value, str(step))
    return step if isinstance(value, list) and isinstance(step, int) and step < len(value) else None


def _message(details: ErrorDetails) -> tuple[str, str, str]:
    """Return the problem, the expected value and the remedy for a pydantic error."""
    message, given = details["msg"], details["input"]
    if details["type"] in ("value_error", "assertion_error"):
        return message.partition(", ")[2], "", ""
    expected = _EXPECTED.get(details["type"]) or message.removeprefix("Input should be ").partition(", unable")[0]
    options = re.findall("'([^']*)'", expected) if details["type"] == "literal_error" else []
    return f"is {preview(given)}", expected, suggestion(given, options) if isinstance(given, str) else ""


def _select_branches(faults: Sequence[_Fault], level: int = 0) -> list[_Fault]:
    """For each union, keep the errors of the member type that the value seems to be, by its keys.

    If it fits none, one error lists what is expected. `level` counts the unions around the current ones.
    """
    selected = [fault for fault in faults if len(fault.forks) == level]
    unions: dict[Place, dict[str, list[_Fault]]] = {}
    for fault in faults:
        if len(fault.forks) > level:
            place, branch = fault.forks[level]
            unions.setdefault(place, {}).setdefault(branch, []).append(fault)
    for place, branches in unions.items():
        begun = [branch for branch in branches.values() if any(f.kind != "value" or f.place != place for f in branch)]
        if begun or len(branches) == 1:
            selected += _select_branches(min(begun or branches.values(), key=len), level + 1)
        else:
            first, *others = (branch[0] for branch in branches.values())
            expected = dict.fromkeys(fault.expected for fault in (first, *others))
            selected.append(replace(first, expected=" or ".join(expected)))
    return selected
