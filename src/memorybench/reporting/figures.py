"""How numbers are written. What was not measured is a dash, never a zero."""

from __future__ import annotations

from collections.abc import Sequence

from memorybench.core.measures import Measure
from memorybench.core.spending import Spending

ABSENT = "–"


def share(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.1%}"


def value(measure: Measure | None) -> str:
    if measure is None or measure.value is None:
        return ABSENT
    return share(measure.value) if not measure.unit else quantity(measure.value, measure.unit)


def with_interval(measure: Measure | None) -> str:
    """`62.3% [57.1, 67.2]`"""
    if measure is None or measure.value is None or measure.low is None or measure.high is None:
        return value(measure)
    if measure.unit:
        return f"{value(measure)} [{measure.low:,.0f}, {measure.high:,.0f}]"
    return f"{share(measure.value)} [{100 * measure.low:.1f}, {100 * measure.high:.1f}]"


def quantity(amount: float, unit: str) -> str:
    if unit == "s":
        return seconds(amount)
    if unit == "$":
        return f"${amount:,.4f}"
    return f"{amount:,.0f}"


def seconds(amount: float) -> str:
    if amount < 0.0995:
        return f"{1000 * amount:.1f} ms"
    if amount < 1:
        return f"{1000 * amount:.0f} ms"
    if amount < 120:
        return f"{amount:.1f} s"
    return f"{amount // 60:.0f} min {amount % 60:.0f} s"


def percentile(ordered: Sequence[float], percent: float) -> float | None:
    """Of sorted values, between two in proportion."""
    if not ordered:
        return None
    place = (len(ordered) - 1) * percent / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def money(spent: Spending) -> str:
    if spent.cost is None:
        return "unknown (a model has no known price)"
    return f"${spent.cost:,.4f}" if spent.cost else "$0"
