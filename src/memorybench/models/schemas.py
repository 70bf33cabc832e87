"""JSON schemas in the form that structured-output APIs require."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

NAMED = ("properties", "$defs", "definitions")
LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")


def closed(schema: Mapping[str, Any], *, without: Collection[str] = ("default",)) -> dict[str, Any]:
    """Return a copy in which objects require all properties and allow no others, as OpenAI and Anthropic demand.

    `without` names keywords to leave out for APIs that reject them. The copy is cached by the identity of the schema;
    neither may be changed.
    """
    return _close_cached(_Identity(schema), frozenset(without))


class _Identity:
    """A cache key that is equal to itself alone and keeps its schema alive."""

    __slots__ = ("schema",)

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.schema is other.schema

    def __hash__(self) -> int:
        return id(self.schema)


@lru_cache(maxsize=32)
def _close_cached(key: _Identity, without: frozenset[str]) -> dict[str, Any]:
    return _close(key.schema, without)


def _close(schema: Mapping[str, Any], without: frozenset[str]) -> dict[str, Any]:
    copy: dict[str, Any] = {keyword: value for keyword, value in schema.items() if keyword not in without}
    for keyword in NAMED:
        if keyword in copy:
            copy[keyword] = {name: _close(part, without) for name, part in copy[keyword].items()}
    for keyword in LISTED:
        if keyword in copy:
            copy[keyword] = [_close(part, without) for part in copy[keyword]]
    if isinstance(copy.get("items"), Mapping):
        copy["items"] = _close(copy["items"], without)
    if "properties" in copy:
        copy |= {"additionalProperties": False, "required": list(copy["properties"])}
    return copy
