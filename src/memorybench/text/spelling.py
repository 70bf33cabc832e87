"""Suggestions for misspelled names, and camelCase and snake_case keys."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from memorybench.core.errors import BadInput

_MOST_NAMES = 30


def nearest(name: str, known: Collection[str]) -> str | None:
    """Return the known name closest to `name`, ignoring case, hyphens and underscores; None if none is close."""
    from difflib import get_close_matches

    folded = {_fold(candidate): candidate for candidate in known}
    close = get_close_matches(_fold(name), folded, n=1)
    return folded[close[0]] if close else None


def suggestion(name: str, known: Collection[str]) -> str:
    """Return `did you mean "path"?`, or "" if no known name is close."""
    close = nearest(name, known)
    return f'did you mean "{close}"?' if close else ""


def unknown_name(where: str, problem: str, name: str, known: Collection[str]) -> BadInput:
    """Return the error for a name that is not known: it lists the known names and suggests the closest."""
    return BadInput(where, problem, expected=f"one of {join_names(known)}", remedy=suggestion(name, known))


def join_names(known: Collection[str]) -> str:
    """Return the first thirty known names, joined for a message."""
    names = sorted(known)
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def join_choices(names: Sequence[str], word: str = "or") -> str:
    """Return the names as `hosted, local or docker`; `word` joins the last one."""
    *others, last = names
    return f"{', '.join(others)} {word} {last}" if others else last


@lru_cache(maxsize=1024)
def camel(name: str) -> str:
    """Convert `display_name` to `displayName`."""
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def snake(name: str) -> str:
    """Convert `displayName` to `display_name`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda letter: f"_{letter[1].lower()}", name)


def as_written(mapping: Mapping[str, Any], name: str) -> str | None:
    """Return the key of `mapping` that is the snake_case name `name`, or its camelCase form; None if it has neither."""
    if name in mapping:
        return name
    other = camel(name)
    return other if other in mapping else None


def _fold(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
