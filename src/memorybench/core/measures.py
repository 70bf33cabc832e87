"""Metrics: scores of one question, and measures of many outcomes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, runtime_checkable

from .records import Record
from .trials import Outcome, Score, Trial

RankingFormula = Callable[[Sequence[str], Collection[str], int], float | None]
"""From distinct ranked ids, gold ids and a cutoff k to the value of one question; None: the value is undefined."""


@dataclass(frozen=True, slots=True)
class RetrievalMetric:
    """A score of one question's ranking. Reports show its mean over all questions that have a value."""

    name: str
    formula: RankingFormula
    cutoffs: tuple[int, ...] = ()
    """Each k is a score `name@k`. Empty: one score `name` of the whole ranking."""
    columns: tuple[str, ...] = ()
    """Scores that the result table shows, such as `recall@5`."""
    narrow_columns: tuple[str, ...] = ()
    """Scores that a narrow terminal shows."""
    both_levels: bool = False
    """Whether it is also computed at the evidence level that the benchmark does not count by."""

    @property
    def score_names(self) -> tuple[str, ...]:
        return _score_names(self.name, self.cutoffs)

    def scores(self, ranked: Sequence[str], gold: Collection[str], prefix: str = "") -> Iterator[Score]:
        """Yields the scores of one question that are defined; their names begin with `prefix`."""
        for name, k in zip(self.score_names, self.cutoffs or (len(ranked),), strict=True):
            value = self.formula(ranked, gold, k)
            if value is not None:
                yield _score(f"{prefix}{name}", value)


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
    """None: nothing was measured. Absent is not zero."""
    n: int
    planned: int
    low: float | None = None
    high: float | None = None
    higher_is_better: bool = True
    unit: str = ""
    """"": a share between 0 and 1 or a plain number; else "s", "tokens", "bytes", "memories", "$"."""
    clusters: int = 0
    """How many histories the n cases are about; cases of their own count as one each."""
    needed: int | None = None
    """About how many cases an interval of ±5 points needs; None: this one is not much wider, or it is unknown."""


class Metric(Protocol):
    """Reads a row of numbers from each outcome, then computes a measure from all rows. Outcomes are not stored."""

    @property
    def name(self) -> str: ...

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        """The row of this outcome; None: it does not count in n, nor does an empty row, which `measure` gets."""
        ...

    def measure(self, rows: Sequence[tuple[float, ...]], clusters: Sequence[str], planned: int) -> Measure: ...


@runtime_checkable
class Selective(Protocol):
    """A metric that applies to some of the trials: only these count as planned."""

    @property
    def name(self) -> str: ...

    def concerns(self, trial: Trial) -> bool: ...
