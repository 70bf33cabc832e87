"""JSON schemas in the form that structured-output APIs require."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

NAMED = ("properties", "$defs", "definitions")
LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")


def closed(schema: Mapping[str, Any], *, without: Collection[str] = ("default",)) -> dict[str, Any]:
    """Return a copy in which objects require all properties and allow no others, as OpenAI and Anthropic demand.

    `without` names keywords to leave out for APIs that reject them.
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
