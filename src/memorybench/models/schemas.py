"""JSON schemas as the structured-output APIs want them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

NAMED = ("properties", "$defs", "definitions")
LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")


def closed(schema: Mapping[str, Any], *, without: Collection[str] = ("default",)) -> dict[str, Any]:
    """A copy whose objects hold all their fields and no others, as OpenAI's strict mode and Anthropic demand.

    `without`: keywords that are left out, for APIs that refuse them. What comes back is checked by the caller anyway.
    """
    kept: dict[str, Any] = {keyword: value for keyword, value in schema.items() if keyword not in without}
    for keyword in NAMED:
        if keyword in kept:
            kept[keyword] = {name: closed(part, without=without) for name, part in kept[keyword].items()}
    for keyword in LISTED:
        if keyword in kept:
            kept[keyword] = [closed(part, without=without) for part in kept[keyword]]
    if isinstance(kept.get("items"), Mapping):
        kept["items"] = closed(kept["items"], without=without)
    if "properties" in kept:
        kept |= {"additionalProperties": False, "required": list(kept["properties"])}
    return kept
