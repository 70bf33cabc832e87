"""Two runs over different items, such as the traces of today and those of a baseline: did the figures move?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean, variance

from memorybench.core.records import Record

from .comparison import DRAWN, Comparison, holm

PERMUTED = 400
"""Up to so many items in both runs together labels are permuted; above, Welch's t is as good and takes no time."""
_AT_ONCE = 500


class Drift(Record):
    """How far a mean moved: today's minus the baseline's. No item is in both runs, so nothing is paired."""

    name: str
    n: int
    baseline_n: int
    value: float | None
    baseline: float | None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    """Of Welch's interval; None: there are too few items, or none differ."""
    p: float | None = None
    adjusted_p: float | None = None
    """With regard to all figures that are looked at together."""
    test: str = ""
    worse: bool = False
    """Whether it went down by more than luck explains: the adjusted p-value is below 1 − level."""
    better: bool = False
    """The same upwards."""

    def sentence(self) -> str:
        """For a person: what moved, and how sure that is."""
        if self.difference is None or self.value is None or self.baseline is None:
            return f"{self.name}: nothing to compare ({self.n} traces today, {self.baseline_n} in the baseline)"
        moved = f"{self.name}: {self.value:.3f} today, {self.baseline:.3f} in the baseline ({self.difference:+.3f})"
        if self.adjusted_p is None:
            return f"{moved}; too few traces to tell"
        found = "worse" if self.worse else "better" if self.better else "no change that could be told from luck"
        p = f"p = {self.adjusted_p:.3f}" if self.adjusted_p >= 0.001 else "p < 0.001"
        return f"{moved}: {found} ({self.test}, {p})"


def drifts(
    today: Mapping[str, Sequence[float]], baseline: Mapping[str, Sequence[float]], level: float = 0.95
) -> tuple[Drift, ...]:
    """One for each figure of today, by its values per item; higher is better. Holm over all of them."""
    found = [_drift(name, values, baseline.get(name, ()), level) for name, values in today.items()]
    # `holm` judges comparisons; all it looks at is p
    judged = holm([Comparison(n=one.n, planned=one.n, difference=one.difference, p=one.p) for one in found], level)
    return tuple(
        one.model_copy(
            update={
                "adjusted_p": other.adjusted_p,
                "worse": other.tells_apart and one.difference is not None and one.difference < 0,
                "better": other.tells_apart and one.difference is not None and one.difference > 0,
            }
        )
        for one, other in zip(found, judged, strict=True)
    )


def permutation_p(first: Sequence[float], second: Sequence[float]) -> float:
    """How often items dealt at random into two heaps of these sizes differ in their means as much as these; two-sided.

    Drawn, always the same, and the heaps as they are count as one draw: p is never 0 (Phipson and Smyth, 2010).
    """
    import numpy as np

    items = np.asarray((*first, *second), dtype=float)
    items -= items.mean()  # then the sum of one heap tells all: the other has the same with the other sign
    # sums of the same numbers in another order differ in the last digits; a tie must stay a tie
    observed = abs(float(items[: len(first)].sum())) * (1 - 1e-9)
    draw = np.random.default_rng(0)
    as_far = 1
    for start in range(0, DRAWN, _AT_ONCE):
        dealt = draw.permuted(np.tile(items, (min(_AT_ONCE, DRAWN - start), 1)), axis=1)
        as_far += int(np.sum(np.abs(dealt[:, : len(first)].sum(axis=1)) >= observed))
    return as_far / (DRAWN + 1)


def welch(first: Sequence[float], second: Sequence[float], level: float = 0.95) -> tuple[float, float, float] | None:
    """p, and the ends of the interval of the difference of means; None where neither side varies, or has two items.

    Welch, "The generalization of 'Student's' problem when several different population variances are involved",
    Biometrika 34, 1947.
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
    reach = float(stdtrit(freedom, 0.5 + level / 2)) * error
    return p, difference - reach, difference + reach


def _drift(name: str, today: Sequence[float], baseline: Sequence[float], level: float) -> Drift:
    blank = Drift(
        name=name,
        n=len(today),
        baseline_n=len(baseline),
        value=fmean(today) if today else None,
        baseline=fmean(baseline) if baseline else None,
    )
    if blank.value is None or blank.baseline is None:
        return blank
    spread = welch(today, baseline, level)
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
