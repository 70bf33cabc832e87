"""Hides secrets and personal data in the texts and places that a scan shows to people and models."""

from __future__ import annotations

from functools import lru_cache

from memorybench.secrets.hiding import mask, spans_to_hide

from .scan_personal import find_personal_data


def hide_values(text: str, name: str = "") -> str:
    """Return the text with asterisks in place of secrets and personal data. `name` is the key or column of the text."""
    named = f"{name}: " if name else ""
    whole = named + text
    personal = [(one.start, one.end) for one in find_personal_data(whole)]
    return mask(whole, [*spans_to_hide(whole), *personal])[len(named) :]


@lru_cache(maxsize=10_000)
def hide_in_pointer(pointer: str) -> str:
    """Return a JSON pointer or other path with `****` in place of each part that has a secret or personal data."""
    return "/".join("****" if hide_values(part) != part else part for part in pointer.split("/"))
