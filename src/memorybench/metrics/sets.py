"""How two sets agree, from counts: found and wanted (tp), found only (fp), wanted only (fn).

Van Rijsbergen, "Information retrieval", 2nd edition, 1979, chapter 7. A quotient without a denominator is undefined
(None), never 0 or 1: a case with nothing to find has no recall.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum


def precision(counts: Sequence[float]) -> float | None:
    """The share of what was found that was wanted; None: nothing was found."""
    tp, fp, _ = counts
    return tp / (tp + fp) if tp + fp else None


def recall(counts: Sequence[float]) -> float | None:
    """The share of what was wanted that was found; None: nothing was wanted."""
    tp, _, fn = counts
    return tp / (tp + fn) if tp + fn else None


def f1(counts: Sequence[float]) -> float | None:
    """The harmonic mean of both; None: nothing was found and nothing wanted."""
    tp, fp, fn = counts
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else None


def micro(statistic: Callable[[Sequence[float]], float | None], cases: Sequence[Sequence[float]]) -> float | None:
    """The statistic of all counts together: each item weighs the same. None: no cases, or undefined on their sum."""
    return statistic([fsum(column) for column in zip(*cases, strict=True)]) if cases else None


def macro(statistic: Callable[[Sequence[float]], float | None], cases: Sequence[Sequence[float]]) -> float | None:
    """The mean of the statistic over the cases where it is defined: each case weighs the same. None: it never is."""
    values = [value for case in cases if (value := statistic(case)) is not None]
    return fsum(values) / len(values) if values else None
