"""The types of metrics. A score belongs to one question; a measure is computed from many outcomes."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from typing import Protocol, runtime_checkable

from msgspec import Struct

from .records import Record
from .trials import Outcome, Score, Trial

RankingFormula = Callable[[Sequence[str], Collection[str], int], float | None]
"""Takes distinct ranked ids, gold ids and a cutoff k; returns the value of one question, or None if it is undefined."""


class RetrievalMetric(Struct, frozen=True):
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
    """Whether the score is computed for sessions and also for turns; if False, only for the benchmark's `evidence`
    level."""

    @property
    def score_names(self) -> tuple[str, ...]:
        return _score_names(self.name, tuple(self.cutoffs))

    def scores(self, ranked: Sequence[str], gold: Collection[str], prefix: str = "") -> Iterator[Score]:
        """Yield the scores of one question, with `prefix` before each name. Omit scores whose formula returns None."""
        for name, k in zip(self.score_names, self.cutoffs or (len(ranked),), strict=True):
            value = self.formula(ranked, gold, k)
            if value is not None:
                yield _score(f"{prefix}{name}", float(value))


@lru_cache
def _score_names(metric: str, cutoffs: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"{metric}@{k}" for k in cutoffs) or (metric,)


@lru_cache(maxsize=1024)
def _score(name: str, value: float) -> Score:
    """Return a score. Cached, because most values are 0 or 1, so that many questions have equal scores."""
    return Score(name=name, value=value)


def exceeds(value: float, limit: float) -> bool:
    """Return whether a value is above a limit by more than a rounding error, as in 0.1 + 0.2 = 0.30000000000000004."""
    return value > limit + 1e-9


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
    """Empty for a share from 0 to 1; else "s", "tokens", "bytes", "memories", "facts", "pairs", "replies" or "$"."""
    clusters: int = 0
    """The number of different clusters, such as haystacks, of the n cases. A case without a cluster counts as one."""
    needed: int | None = None
    """About how many cases would narrow the interval to ±5 percentage points. None if the interval is narrow enough, or
    the number cannot be estimated."""


class Metric(Protocol):
    """Computes a measure in two stages, so that not all outcomes are in memory: `read` takes numbers from each outcome,
    and `measure` computes the result from all of them."""

    @property
    def name(self) -> str: ...

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        """Return the numbers that the metric needs from an outcome; None to leave the outcome out.

        An empty tuple is passed to `measure`, too, but the outcome does not count in `n`.
        """
        ...

    def measure(self, rows: Sequence[tuple[float, ...]], clusters: Sequence[str], planned: int) -> Measure: ...


@runtime_checkable
class Selective(Protocol):
    """A metric that applies only to the trials for which `concerns` returns True. `planned` counts only these."""

    @property
    def name(self) -> str: ...

    def concerns(self, trial: Trial) -> bool: ...
