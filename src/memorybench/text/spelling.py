"""What the writer probably meant: the nearest known name, and the two spellings of a key."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any

_LISTED = 30


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known name that `name` was probably meant to be; case, hyphens and underscores count for nothing."""
    folded = {_fold(candidate): candidate for candidate in known}
    close = get_close_matches(_fold(name), folded, n=1)
    return folded[close[0]] if close else None


def suggestion(name: str, known: Collection[str]) -> str:
    """`did you mean "path"?`, or nothing when nothing is near."""
    close = nearest(name, known)
    return f'did you mean "{close}"?' if close else ""


def join_names(known: Collection[str]) -> str:
    """The known names for a message, the first thirty of them."""
    names = sorted(known)
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def camel(name: str) -> str:
    """`display_name` → `displayName`."""
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def as_written(mapping: Mapping[str, Any], name: str) -> str | None:
    """How `mapping` spells the snake_case key `name`; None: it has no such key."""
    return next((key for key in (name, camel(name)) if key in mapping), None)


def _fold(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
