"""Values from the JSON of a model server, which may not have the promised shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MAX_COUNT = 10**12


def members(value: Any) -> Mapping[str, Any]:
    """Return the members of an object, and none for any other value."""
    return value if isinstance(value, dict) else {}


def count(value: Any) -> int | None:
    """Return a plausible count; None for any other value."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_COUNT
    return value if is_count else None


def text_or(value: Any, default: str) -> str:
    """Return a non-empty text, else `default`."""
    return value if isinstance(value, str) and value else default


def joined_text(parts: list[Any]) -> str:
    """Return the text of all parts of type `text`."""
    texts = [members(part).get("text") for part in parts if members(part).get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str))
