"""Metrics that aggregate named scores of outcomes.

An outcome without the score does not count in n, whatever its status: retrieval scores exist even where the judge's
reply could not be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import fsum
from typing import ClassVar

from msgspec import Struct

from memorybench.core.measures import Measure, Selective
from memorybench.core.trials import Outcome, Trial

from .intervals import (
    SHARE,
    UNBOUNDED,
    Interval,
    Statistic,
    count_clusters,
    independent_error,
    interval,
    items_needed,
    ratio_interval,
    standard_error,
)

Rows = Sequence[tuple[float, ...]]
WIDE, NARROW = 0.1, 0.05
"""Half widths of intervals, as shares. An interval wider than ± WIDE is called wide; ± NARROW is recommended."""


def is_wide(estimate: Interval) -> bool:
    """Return whether the interval of a share is wide: in points, or compared with the share's distance from 0 or 1.

    5 % [1, 15] is wide although it is only ±7 points: the true rate may be a fifth of that or three times as high.
    False without an interval.
    """
    value, low, high = estimate
    if value is None or low is None or high is None:
        return False
    half = (high - low) / 2
    return half > WIDE or half > max(NARROW, min(value, 1 - value))


class _ScoreMetric(Struct, frozen=True):
    name: str
    score: str
    higher_is_better: bool = True
    unit: str = ""
    benchmarks: tuple[str, ...] = ()
    """The benchmarks that the metric is for; empty for all. Nothing is planned for it on other benchmarks of a run."""

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        value = outcome.score(self.score)
        return None if value is None else (value,)

    def measure(self, rows: Rows, clusters: Sequence[str], planned: int) -> Measure:
        values, clusters = tuple([value for (value,) in rows]), tuple(clusters)
        estimate = self.estimate(values, clusters)
        measure = _measure(self.name, estimate, clusters, planned, self.higher_is_better, self.unit)
        if self.unit or not is_wide(estimate):
            return measure
        return measure.model_copy(update={"needed": _needed(values, clusters)})

    def estimate(self, values: tuple[float, ...], clusters: tuple[str, ...]) -> Interval:
        raise NotImplementedError


class Rate(_ScoreMetric, frozen=True):
    """The mean of a score from 0 to 1: a verdict, or a share such as recall@5."""

    is_share: ClassVar[bool] = True

    def estimate(self, values: tuple[float, ...], clusters: tuple[str, ...]) -> Interval:
        return _share_interval(values, clusters)


class BoundedRate(Rate, frozen=True):
    """The mean of a score over the outcomes that have it, or would have it if they were decided.

    It has a value only if all these outcomes are decided. Otherwise its interval reaches from the lower end for "all
    undecided ones score 0" to the upper end for "all score 1", and n counts the decided ones.
    """

    def is_open(self, outcome: Outcome) -> bool:
        """Return whether an outcome without the score is undecided."""
        raise NotImplementedError

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        value = outcome.score(self.score)
        if value is not None:
            return (value, value)
        return (0.0, 1.0) if self.is_open(outcome) else None

    def measure(self, rows: Rows, clusters: Sequence[str], planned: int) -> Measure:
        low, high = (Rate.measure(self, [(row[end],) for row in rows], clusters, planned) for end in (0, -1))
        decided = sum(row[0] == row[-1] for row in rows)
        if decided == len(rows):
            return low
        ends = {
            "low": low.value if low.low is None else low.low,
            "high": high.value if high.high is None else high.high,
        }
        return low.model_copy(update={"value": None, "n": decided, "needed": None, **ends})


class Mean(_ScoreMetric, frozen=True):
    """The mean of a score without an upper bound, such as context tokens.

    If no value is negative, the score is an amount, and the interval has no negative end.
    """

    def estimate(self, values: tuple[float, ...], clusters: tuple[str, ...]) -> Interval:
        found = interval(values, clusters, bounds=UNBOUNDED)
        is_amount = found.low is not None and found.low < 0 <= min(values)
        return found._replace(low=0.0) if is_amount else found


class Total(_ScoreMetric, frozen=True):
    """The sum of a score, such as cost. It has no interval, because it is an amount and not an estimate.

    If `n` is below `planned`, the missing trials are not included.
    """

    higher_is_better: bool = False
    unit: str = "$"

    def estimate(self, values: tuple[float, ...], clusters: tuple[str, ...]) -> Interval:
        return Interval(fsum(values) if values else None)


class Pooled(Struct, frozen=True):
    """A share computed from the sums of several scores, such as micro F1 of tp, fp and fn.

    n counts the items for which the share is defined: for micro F1, not those whose tp, fp and fn are all 0.
    """

    is_share: ClassVar[bool] = True

    name: str
    scores: tuple[str, ...]
    statistic: Statistic
    higher_is_better: bool = True
    benchmarks: tuple[str, ...] = ()
    """The benchmarks that the metric is for; empty for all. Nothing is planned for it on other benchmarks of a run."""

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        values = tuple(value for name in self.scores if (value := outcome.score(name)) is not None)
        return values if len(values) == len(self.scores) else None

    def measure(self, rows: Rows, clusters: Sequence[str], planned: int) -> Measure:
        estimate = ratio_interval(rows, clusters, self.statistic)
        counted = [cluster for row, cluster in zip(rows, clusters, strict=True) if self.statistic(row) is not None]
        return _measure(self.name, estimate, counted, planned, self.higher_is_better)


def mean_row(repeats: Iterable[tuple[float, ...] | None]) -> tuple[float, ...] | None:
    """Return the mean of the rows of an item's repeats, None if no repeat has a row.

    Equal rows are returned unchanged.
    """
    rows = [row for row in repeats if row is not None]
    if not rows or rows.count(rows[0]) == len(rows):
        return rows[0] if rows else None
    return tuple(fsum(column) / len(rows) for column in zip(*rows, strict=True))


# for questions with one gold session, recall, recall_any and recall_all have the same values
@lru_cache(maxsize=32)
def _share_interval(values: tuple[float, ...], clusters: tuple[str, ...]) -> Interval:
    return interval(values, clusters, bounds=SHARE)


@lru_cache(maxsize=32)
def _needed(values: tuple[float, ...], clusters: tuple[str, ...]) -> int | None:
    """Return about how many items give an interval of ± NARROW; None if the values do not differ."""
    # an interval of few items is never narrower than that of independent ones
    error = max(standard_error(values, clusters) or 0.0, independent_error(values) or 0.0)
    return items_needed(len(values), error, NARROW) if error else None


def _measure(
    name: str, estimate: Interval, clusters: Sequence[str], planned: int, higher_is_better: bool, unit: str = ""
) -> Measure:
    return Measure(
        name=name,
        value=estimate.value,
        n=len(clusters),
        planned=planned,
        low=estimate.low,
        high=estimate.high,
        higher_is_better=higher_is_better,
        unit=unit,
        clusters=count_clusters(clusters),
    )


def count_selected(metrics: Sequence[Selective], trials: Iterable[Trial]) -> dict[str, int]:
    """Return, by name of a metric, the number of trials that it applies to."""
    counts = dict.fromkeys((metric.name for metric in metrics), 0)
    for trial in trials:
        for metric in metrics:
            counts[metric.name] += metric.concerns(trial)
    return counts
