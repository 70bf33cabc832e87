"""Writes numbers with nouns."""

from __future__ import annotations


def quantity(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, such as `1 probe` or `1,200 probes`. `plural` is needed if it is not noun + s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
