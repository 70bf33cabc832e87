"""Estimates how much values vary between items, and between the repeats of one item."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import NamedTuple


class VarianceComponents(NamedTuple):
    between_items: float
    """The variance of the items' true means; 0 if the estimate is negative."""
    between_repeats: float
    """The variance of one repeat around the true mean of its item."""
    truncated: bool = False
    """Whether the estimate of `between_items` was negative: items differ less than their repeats alone would cause."""


def variance_components(repeats: Sequence[Sequence[float]]) -> VarianceComponents | None:
    """Estimate both variances from the values of each item, one per repeat.

    None with fewer than two items, or if each item has one value only. The analysis of variance estimator of the
    one-way random model, for unequal numbers of repeats: Searle, Casella and McCulloch, "Variance components", 1992, §
    3.6.
    """
    items = [values for values in repeats if values]
    total = sum(map(len, items))
    if len(items) < 2 or total == len(items):
        return None
    mean = fsum(value for values in items for value in values) / total
    means = [fsum(values) / len(values) for values in items]
    within = fsum((value - own) ** 2 for values, own in zip(items, means, strict=True) for value in values)
    between = fsum(len(values) * (own - mean) ** 2 for values, own in zip(items, means, strict=True))
    noise = within / (total - len(items))
    size = (total - sum(len(values) ** 2 for values in items) / total) / (len(items) - 1)
    estimate = (between / (len(items) - 1) - noise) / size
    return VarianceComponents(max(0.0, estimate), noise, truncated=estimate < 0)
