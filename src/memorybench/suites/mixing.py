"""The order of jobs on many haystacks, chosen so that their ingests run concurrently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TypeVar

SIDE_BY_SIDE = 16
"""Haystacks whose questions are mixed. Constant, so that the order of work does not depend on the concurrency."""

T = TypeVar("T")


def mixed(groups: Sequence[Sequence[T]], width: int) -> Iterator[T]:
    """Yield the members of all groups, taking turns among `width` groups at a time."""
    for start in range(0, len(groups), width):
        rows = zip_longest(*([(member,) for member in group] for group in groups[start : start + width]))
        for row in rows:
            yield from (place[0] for place in row if place is not None)
