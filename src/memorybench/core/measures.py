"""Metrics: scores of one question, and measures of many outcomes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, runtime_checkable

from .records import Record
from .trials import Outcome, Score, Trial

RankingFormula = Callable[[Sequence[str], Collection[str], int], float | None]
"""Takes distinct ranked ids, gold ids and a cutoff k; returns the value of one question, or None if it is undefined."""


@dataclass(frozen=True, slots=True)
class RetrievalMetric:
    """A score of one question's ranking. Reports show its mean over the questions that have a value."""

    name: str
    formula: RankingFormula
    cutoffs: tuple[int, ...] = ()
    """The values of k. Each gives a score `name@k`; empty: one score `name` over the whole ranking."""
    columns: tuple[str, ...] = ()
    """The scores that the result table shows, such as `recall@5`."""
    narrow_columns: tuple[str, ...] = ()
    """The scores that a narrow terminal shows."""
    both_levels: bool = False
    """Whether it is computed for sessions and for turns; otherwise only for the level of the benchmark."""

    @property
    def score_names(self) -> tuple[str, ...]:
        return _score_names(self.name, tuple(self.cutoffs))

    def scores(self, ranked: Sequence[str], gold: Collection[str], prefix: str = "") -> Iterator[Score]:
        """Yields the scores of one question that are defined; their names begin with `prefix`."""
        for name, k in zip(self.score_names, self.cutoffs or (len(ranked),), strict=True):
            value = self.formula(ranked, gold, k)
            if value is not None:
                yield _score(f"{prefix}{name}", float(value))


@lru_cache
def _score_names(metric: str, cutoffs: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"{metric}@{k}" for k in cutoffs) or (metric,)


@lru_cache(maxsize=1024)
def _score(name: str, value: float) -> Score:
    """Return a score; most questions have the same ones, because most are 0 or 1."""
    return Score(name=name, value=value)


class Measure(Record):
    """A number computed from many outcomes, with its interval and sample size."""

    name: str
    value: float | None
    """None if nothing was measured, which is not the same as 0."""
    n: int
    planned: int
    low: float | None = None
    high: float | None = None
    higher_is_better: bool = True
    unit: str = ""
    """Empty for a share from 0 to 1 or a plain number; else "s", "tokens", "bytes", "memories" or "$"."""
    clusters: int = 0
    """The number of histories that the n cases are about. A case without a history counts as one."""
    needed: int | None = None
    """About how many cases give an interval of ±5 points; None if this interval is not much wider, or it is unknown."""


class Metric(Protocol):
    """Reads a row of numbers from each outcome, and computes a measure from all rows. Outcomes are not kept."""

    @property
    def name(self) -> str: ...

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        """Return the numbers that the metric needs from an outcome; None or an empty row does not count in `n`.

        `measure` gets empty rows, but not None.
        """
        ...

    def measure(self, rows: Sequence[tuple[float, ...]], clusters: Sequence[str], planned: int) -> Measure: ...


@runtime_checkable
class Selective(Protocol):
    """A metric that applies only to some trials. Only these count as planned."""

    @property
    def name(self) -> str: ...

    def concerns(self, trial: Trial) -> bool: ...
