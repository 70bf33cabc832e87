"""JSON schemas as the structured-output APIs want them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

NAMED = ("properties", "$defs", "definitions")
LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")


def closed(schema: Mapping[str, Any], *, without: Collection[str] = ("default",)) -> dict[str, Any]:
    """A copy whose objects hold all their fields and no others, as OpenAI's strict mode and Anthropic demand.

    `without`: keywords that are left out, for APIs that refuse them. What comes back is checked by the caller anyway.
    Made once: who asks with the same schema again gets the same copy. Neither may be changed.
    """
    return _known(_Itself(schema), frozenset(without))


class _Itself:
    """A schema as a key: equal to itself alone, and kept alive so that no other can take its place."""

    __slots__ = ("schema",)

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.schema is other.schema

    def __hash__(self) -> int:
        return id(self.schema)


@lru_cache(maxsize=32)
def _known(key: _Itself, without: frozenset[str]) -> dict[str, Any]:
    return _closed(key.schema, without)


def _closed(schema: Mapping[str, Any], without: frozenset[str]) -> dict[str, Any]:
    kept: dict[str, Any] = {keyword: value for keyword, value in schema.items() if keyword not in without}
    for keyword in NAMED:
        if keyword in kept:
            kept[keyword] = {name: _closed(part, without) for name, part in kept[keyword].items()}
    for keyword in LISTED:
        if keyword in kept:
            kept[keyword] = [_closed(part, without) for part in kept[keyword]]
    if isinstance(kept.get("items"), Mapping):
        kept["items"] = _closed(kept["items"], without)
    if "properties" in kept:
        kept |= {"additionalProperties": False, "required": list(kept["properties"])}
    return kept
