"""Compares two runs over different items, such as today's traces and those of a baseline run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean, variance

from memorybench.core.records import Record

from .comparison import DRAWN, Comparison, holm
from .intervals import LEVEL

PERMUTED = 400
"""Up to this many items in both runs together, a permutation test is used; for more, Welch's t test."""
_NUMBERS_AT_ONCE = 200_000
"""The count of numbers that are permuted at a time, so that memory use does not grow with the items."""


class Drift(Record):
    """The change of one measure: today's mean minus the baseline's.

    The two runs have different items, so that these are not paired.
    """

    name: str
    n: int
    baseline_n: int
    value: float | None
    baseline: float | None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    """The upper end of Welch's interval; `low` is its lower end.

    Both are None if a run has too few items or no values differ.
    """
    p: float | None = None
    adjusted_p: float | None = None
    """The p-value, adjusted for all measures that are compared together."""
    test: str = ""
    worse: bool = False
    """Whether the mean decreased significantly: the adjusted p-value is below 1 − LEVEL."""
    better: bool = False
    """Whether the mean increased significantly."""

    def sentence(self, now: str = "today", then: str = "in the baseline") -> str:
        """Return the change and its p-value as one line."""
        if self.difference is None or self.value is None or self.baseline is None:
            return f"{self.name}: nothing to compare ({self.n} traces {now}, {self.baseline_n} {then})"
        moved = f"{self.name}: {self.value:.3f} {now}, {self.baseline:.3f} {then} ({self.difference:+z.3f})"
        if self.adjusted_p is None:
            return f"{moved}; too few traces for a test"
        found = "worse" if self.worse else "better" if self.better else "no significant change"
        p = f"p = {self.adjusted_p:.3f}" if self.adjusted_p >= 0.001 else "p < 0.001"
        return f"{moved}: {found} ({self.test}, {p})"


def drifts(today: Mapping[str, Sequence[float]], baseline: Mapping[str, Sequence[float]]) -> tuple[Drift, ...]:
    """Return a Drift for each measure of `today`. Both arguments have the values of items, by measure.

    If the baseline lacks the measure, the Drift has no difference; measures of the baseline alone are left out. The
    p-values are adjusted by Holm's method for all measures together.
    """
    changes = [_drift(name, values, baseline.get(name, ())) for name, values in today.items()]
    # `holm` reads only p
    judged = holm([Comparison(n=one.n, planned=one.n, difference=one.difference, p=one.p) for one in changes])
    return tuple(
        one.model_copy(
            update={
                "adjusted_p": other.adjusted_p,
                "worse": other.significant and one.difference is not None and one.difference < 0,
                "better": other.significant and one.difference is not None and one.difference > 0,
            }
        )
        for one, other in zip(changes, judged, strict=True)
    )


def permutation_p(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the two-sided p-value of a permutation test on the difference of means.

    Permutations are sampled with a fixed seed, and the observed labels count as one sample: p is never 0
    (Phipson and Smyth, 2010).
    """
    import numpy as np

    items = np.asarray((*first, *second), dtype=float)
    if np.all(items == items[0]):
        return 1.0  # every permutation is the observed one
    items -= items.mean()  # then one group's sum suffices: the other has the opposite sign
    # sums in another order differ in the last digits; a tie must stay a tie
    observed = abs(float(items[: len(first)].sum())) * (1 - 1e-9)
    draw = np.random.default_rng(0)
    extreme = 1
    at_once = max(1, _NUMBERS_AT_ONCE // len(items))
    for start in range(0, DRAWN, at_once):
        permuted = draw.permuted(np.tile(items, (min(at_once, DRAWN - start), 1)), axis=1)
        extreme += int(np.sum(np.abs(permuted[:, : len(first)].sum(axis=1)) >= observed))
    return extreme / (DRAWN + 1)


def welch(first: Sequence[float], second: Sequence[float]) -> tuple[float, float, float] | None:
    """Return the p-value and both ends of the interval of the difference of means, first minus second.

    None if a side has fewer than two items, or if neither side has any variance. Welch, "The generalization of
    'Student's' problem when several different population variances are involved", Biometrika 34, 1947.
    """
    from scipy.special import stdtr, stdtrit

    if min(len(first), len(second)) < 2:
        return None
    shares = [variance(side) / len(side) for side in (first, second)]
    error = sqrt(sum(shares))
    if not error:
        return None
    freedom = sum(shares) ** 2 / sum(
        share**2 / (len(side) - 1) for share, side in zip(shares, (first, second), strict=True)
    )
    difference = fmean(first) - fmean(second)
    p = 2 * float(stdtr(freedom, -abs(difference) / error))
    reach = float(stdtrit(freedom, 0.5 + LEVEL / 2)) * error
    return p, difference - reach, difference + reach


def _drift(name: str, today: Sequence[float], baseline: Sequence[float]) -> Drift:
    blank = Drift(
        name=name,
        n=len(today),
        baseline_n=len(baseline),
        value=fmean(today) if today else None,
        baseline=fmean(baseline) if baseline else None,
    )
    if blank.value is None or blank.baseline is None:
        return blank
    spread = welch(today, baseline)
    if len(today) + len(baseline) <= PERMUTED or spread is None:
        p, test = permutation_p(today, baseline), "permutation test"
    else:
        p, test = spread[0], "Welch's t"
    return blank.model_copy(
        update={
            "difference": blank.value - blank.baseline,
            "low": spread[1] if spread else None,
            "high": spread[2] if spread else None,
            "p": p,
            "test": test,
        }
    )
