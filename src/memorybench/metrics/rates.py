"""Metrics that read named scores from outcomes. An outcome without the score does not count in n, whatever its status:
what retrieval found is known even where the judge could not be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from memorybench.core.measures import Measure
from memorybench.core.trials import Outcome

from .intervals import SHARE, UNBOUNDED, Interval, Statistic, interval, ratio_interval

Rows = Sequence[tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Rate:
    """The mean of a score between 0 and 1: a verdict, or a share such as recall@5."""

    name: str
    score: str
    higher_is_better: bool = True

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        return _read(outcome, self.score)

    def measure(self, rows: Rows, clusters: Sequence[str], planned: int) -> Measure:
        found = interval([value for (value,) in rows], clusters, bounds=SHARE)
        return _measure(self.name, found, len(rows), planned, self.higher_is_better)


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of a score without bounds, such as tokens of context."""

    name: str
    score: str
    higher_is_better: bool = True
    unit: str = ""

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        return _read(outcome, self.score)

    def measure(self, rows: Rows, clusters: Sequence[str], planned: int) -> Measure:
        found = interval([value for (value,) in rows], clusters, bounds=UNBOUNDED)
        return _measure(self.name, found, len(rows), planned, self.higher_is_better, self.unit)


@dataclass(frozen=True, slots=True)
class Pooled:
    """A share made of the sums of several scores, such as micro F1 of tp, fp and fn."""

    name: str
    scores: tuple[str, ...]
    statistic: Statistic
    higher_is_better: bool = True

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        return _read(outcome, *self.scores)

    def measure(self, rows: Rows, clusters: Sequence[str], planned: int) -> Measure:
        found = ratio_interval(rows, clusters, self.statistic)
        return _measure(self.name, found, len(rows), planned, self.higher_is_better)


@dataclass(frozen=True, slots=True)
class Percentile:
    """What `percent` of the values do not exceed, between two values in proportion (Hyndman and Fan 1996, type 7).

    It describes this run, e.g. its latency, and claims nothing about others: there is no interval.
    """

    name: str
    score: str
    percent: float
    higher_is_better: bool = False
    unit: str = "s"

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        return _read(outcome, self.score)

    def measure(self, rows: Rows, clusters: Sequence[str], planned: int) -> Measure:
        import numpy as np

        value = float(np.percentile([value for (value,) in rows], self.percent)) if rows else None
        return _measure(self.name, Interval(value), len(rows), planned, self.higher_is_better, self.unit)


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of a score, such as cost. Where n is below planned, the rest is unknown and not in it. No interval:
    it is what was spent, not an estimate."""

    name: str
    score: str
    higher_is_better: bool = False
    unit: str = "$"

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        return _read(outcome, self.score)

    def measure(self, rows: Rows, clusters: Sequence[str], planned: int) -> Measure:
        value = fsum(value for (value,) in rows) if rows else None
        return _measure(self.name, Interval(value), len(rows), planned, self.higher_is_better, self.unit)


def _read(outcome: Outcome, *names: str) -> tuple[float, ...] | None:
    values = tuple(value for name in names if (value := outcome.score(name)) is not None)
    return values if len(values) == len(names) else None


def _measure(name: str, found: Interval, n: int, planned: int, higher_is_better: bool, unit: str = "") -> Measure:
    return Measure(
        name=name,
        value=found.value,
        n=n,
        planned=planned,
        low=found.low,
        high=found.high,
        higher_is_better=higher_is_better,
        unit=unit,
    )
