"""Computes the places of labels beside values, so that none covers another."""

from __future__ import annotations

from collections.abc import Sequence

from .parts import LABEL_GAP


def label_places(
    values: Sequence[float], height: float, domain: tuple[float, float], pixels: int = LABEL_GAP
) -> list[float]:
    """Return the place of each value's label. Labels that would overlap are spread around the mean of their values."""
    low, high = domain
    gap = pixels / height * (high - low)
    order = sorted(range(len(values)), key=lambda place: values[place])
    blocks: list[tuple[float, int]] = []
    """Of labels that touch: the sum of the places that each would give the first of them, and how many they are."""

    def first(block: tuple[float, int]) -> float:
        total, count = block
        return max(low, min(total / count, high - (count - 1) * gap))

    for place in order:
        blocks.append((values[place], 1))
        while len(blocks) > 1 and first(blocks[-2]) + blocks[-2][1] * gap > first(blocks[-1]):
            total, count = blocks.pop()
            before, others = blocks.pop()
            blocks.append((before + total - count * others * gap, others + count))
    found = [0.0] * len(values)
    places = (first(block) + n * gap for block in blocks for n in range(block[1]))
    for place, where in zip(order, places, strict=True):
        found[place] = where
    return found
