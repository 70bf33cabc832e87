"""Reads values from the JSON of a model server, which may not have the documented form."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

NAMED = ("properties", "$defs", "definitions")
LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")


def closed(schema: Mapping[str, Any], *, without: Collection[str] = ("default",)) -> dict[str, Any]:
    """Return a copy of a JSON Schema in which every object requires all of its properties and allows no others.

    The APIs of OpenAI and Anthropic require such schemas. `without` has the keywords to leave out, because the API
    rejects them.
    """
    copy: dict[str, Any] = {keyword: value for keyword, value in schema.items() if keyword not in without}
    for keyword in NAMED:
        if keyword in copy:
            copy[keyword] = {name: closed(part, without=without) for name, part in copy[keyword].items()}
    for keyword in LISTED:
        if keyword in copy:
            copy[keyword] = [closed(part, without=without) for part in copy[keyword]]
    if isinstance(copy.get("items"), Mapping):
        copy["items"] = closed(copy["items"], without=without)
    if "properties" in copy:
        copy |= {"additionalProperties": False, "required": list(copy["properties"])}
    return copy


_MAX_COUNT = 10**12


def members(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a JSON object; for any other value, an empty object."""
    return value if isinstance(value, dict) else {}


def count(value: Any) -> int | None:
    """Return the value if it is a plausible count, an integer from 0 to _MAX_COUNT; else None."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_COUNT
    return value if is_count else None


def text_or(value: Any, default: str) -> str:
    """Return the value if it is a non-empty text, else `default`."""
    return value if isinstance(value, str) and value else default


def joined_text(parts: list[Any]) -> str:
    """Return the joined text of all parts of type `text`."""
    texts = [members(part).get("text") for part in parts if members(part).get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str))
