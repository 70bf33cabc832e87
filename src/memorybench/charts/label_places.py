"""Computes the places of labels beside values, so that none covers another."""

from __future__ import annotations

from collections.abc import Sequence

from .parts import LABEL_GAP


def label_places(
    values: Sequence[float], height: float, domain: tuple[float, float], pixels: int = LABEL_GAP
) -> list[float]:
    """Return the place of each value's label, in the unit of the values.

    Labels that would overlap, with less than `pixels` between them, are spread around the mean of their values.
    `height` is that of the axis in pixels, `domain` its ends.
    """
    low, high = domain
    gap = pixels / height * (high - low)
    order = sorted(range(len(values)), key=lambda place: values[place])
    blocks: list[tuple[float, int]] = []
    """Groups of labels that touch.

    A group is the sum of the places that its members would give the first label, and the number of members.
    """

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
