"""Compares two providers on the same items: difference, p-value, and the sample size needed to detect it."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import ceil, fsum, isclose
from statistics import NormalDist
from typing import Any

from pydantic import Field

from memorybench.core.records import Record

from .intervals import (
    LEVEL,
    SHARE,
    UNBOUNDED,
    Bounds,
    Interval,
    Statistic,
    cluster_sums,
    interval,
    passes_needed,
    ratio_interval,
    round_up,
    standard_error,
)

ENUMERATED = 14
"""Up to this many clusters every sign flip is enumerated; above, DRAWN flips are sampled."""
DRAWN = 19_999
FLIPS_AT_ONCE = 500
POWER = 0.8
"""The probability with which `needed` items detect the difference."""


class Comparison(Record):
    """The difference of two providers, first minus second, over the items for which both have a value.

    `n` is the number of these items, `planned` the number that the caller wanted to compare.
    """

    n: int
    planned: int
    difference: float | None
    """The difference, first minus second; None if no item has a value for both."""
    low: float | None = None
    high: float | None = None
    p: float | None = None
    adjusted_p: float | None = None
    """The p-value, adjusted for all comparisons made together (`holm`); equal to `p` if there is only this one."""
    significant: bool = False
    """Whether `adjusted_p` is below 1 − LEVEL. `low` and `high` are not adjusted for other comparisons."""
    needed: int | None = None
    """About how many items are needed to detect a difference of this size at the level of `significant`; None if there
    is no difference, or the number is unknown."""
    variance: float | None = Field(default=None, exclude=True, repr=False)
    """The variance of one item's difference, times the design effect; None: unknown. `holm` uses it for `needed`."""
    clusters: int = 0
    """The number of clusters of the items. An item without a cluster counts as one."""

    @property
    def least_p(self) -> float:
        """The smallest p-value that a sign-flip test can reach with this many clusters."""
        return min(1.0, 2.0 ** (1 - self.clusters))


def compare(
    first: Mapping[str, float],
    second: Mapping[str, float],
    clusters: Mapping[str, str],
    planned: int,
    *,
    bounds: Bounds | None = None,
) -> Comparison:
    """Compare two sides item by item: `first` minus `second`, which are the values of the sides by item.

    Items with a value on one side only are skipped. `clusters` has the cluster of each item. `bounds` are the smallest
    and largest possible value; by default 0 and 1 if every value is 0 or 1, else unbounded.
    """
    items = sorted(first.keys() & second.keys())
    if not items:
        return Comparison(n=0, planned=planned, difference=None)
    differences = [first[item] - second[item] for item in items]
    grouped = [clusters.get(item, "") for item in items]
    two_valued = all(side[item] in (0, 1) for side in (first, second) for item in items)
    if bounds is None:
        bounds = SHARE if two_valued else UNBOUNDED
    estimate = _difference_interval(differences, grouped, bounds)
    sums = [total for (total,) in cluster_sums([(difference,) for difference in differences], grouped)]
    p = mcnemar_p(differences) if two_valued and len(sums) == len(items) else flip_p(sums)
    error = standard_error(differences, grouped)
    variance = None if error is None else len(differences) * error**2
    needed = needed_items(fsum(differences) / len(differences), variance)
    compared = _comparison(len(items), planned, estimate, p, len(sums))
    return compared.model_copy(update={"needed": needed, "variance": variance})


def compare_pooled(
    first: Mapping[str, Sequence[float]],
    second: Mapping[str, Sequence[float]],
    clusters: Mapping[str, str],
    planned: int,
    statistic: Statistic,
) -> Comparison:
    """Compare a statistic of summed counts, such as micro F1. `first` and `second` are the counts by item.

    Items that only one side has are skipped. The p-value is that of an exchange test: if both sides are equally good,
    the counts of each cluster could as well belong to the other side.
    """
    items = sorted(first.keys() & second.keys())
    rows = [(*first[item], *second[item]) for item in items]

    def difference(sums: Sequence[float]) -> float | None:
        half = len(sums) // 2
        one, other = statistic(sums[:half]), statistic(sums[half:])
        return None if one is None or other is None else one - other

    grouped = [clusters.get(item, "") for item in items]
    estimate = ratio_interval(rows, grouped, difference, bounds=(-1.0, 1.0))
    if estimate.value is None:
        return Comparison(n=len(items), planned=planned, difference=None)
    sums = cluster_sums(rows, grouped)
    p = exchange_p(sums, statistic)
    return _comparison(len(items), planned, estimate, p, len(sums))


def _comparison(n: int, planned: int, estimate: Interval, p: float, clusters: int) -> Comparison:
    return Comparison(
        n=n,
        planned=planned,
        difference=estimate.value,
        low=estimate.low,
        high=estimate.high,
        p=p,
        adjusted_p=p,
        significant=_is_significant(p),
        clusters=clusters,
    )


def holm(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Return the comparisons with p-values adjusted for multiple testing. Those without a p-value are unchanged.

    The smallest of m p-values must be below α/m, the next below α/(m − 1), until one is not: that one and all larger
    ones are tested at its level. `needed` is computed for the level at which each was tested.

    Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979.
    """
    ranked = sorted((c.p, place) for place, c in enumerate(comparisons) if c.p is not None)
    adjusted: dict[int, float] = {}
    largest = 0.0
    for rank, (p, place) in enumerate(ranked):
        largest = max(largest, min(1.0, p * (len(ranked) - rank)))
        adjusted[place] = largest
    rejected = sum(_is_significant(p) for p in adjusted.values())
    levels = {place: 1 - (1 - LEVEL) / (len(ranked) - min(rank, rejected)) for rank, (_, place) in enumerate(ranked)}
    return tuple(
        c.model_copy(
            update={
                "adjusted_p": adjusted[place],
                "significant": _is_significant(adjusted[place]),
                "needed": None if c.difference is None else needed_items(c.difference, c.variance, levels[place]),
            }
        )
        if place in adjusted
        else c
        for place, c in enumerate(comparisons)
    )


def _is_significant(p: float) -> bool:
    # a p-value of 1000 / 20,000 is 0.05, and 1 − 0.95 is a little more than that
    return p < 1 - LEVEL and not isclose(p, 1 - LEVEL)


def mcnemar_p(differences: Sequence[float]) -> float:
    """Return the exact two-sided p-value of differences −1, 0 and 1 between independent items.

    McNemar, "Note on the sampling error of the difference between correlated proportions", Psychometrika 12, 1947.
    """
    from scipy.special import bdtr

    gained = sum(difference > 0 for difference in differences)
    lost = sum(difference < 0 for difference in differences)
    return min(1.0, 2 * float(bdtr(min(gained, lost), gained + lost, 0.5)))


def flip_p(sums: Sequence[float]) -> float:
    """Return the two-sided p-value of a sign-flip test on the sum of differences of each cluster.

    If both sides are equally good, each sum could as well have the other sign (Fisher, "The design of experiments",
    1935, § 21). If there are too many clusters to enumerate all flips, they are sampled with a fixed seed, and the
    observed signs count as one sample, so that p is never 0 (Phipson and Smyth, "Permutation p-values should never be
    zero", 2010).
    """
    import numpy as np

    # sorted, so that neither the order nor the signs of the sums influence the sampling
    sizes = sorted(abs(total) for total in sums if total)
    least = _rounded_down(abs(fsum(sums)))
    if len(sizes) <= ENUMERATED:
        reached = np.zeros(1)
        for size in sizes:
            reached = np.concatenate((reached + size, reached - size))
        return float(np.mean(np.abs(reached) >= least))
    sampled = (np.abs(signs @ np.asarray(sizes)) for signs in _sampled_signs(len(sizes)))
    return (1 + sum(int(np.sum(reached >= least)) for reached in sampled)) / (DRAWN + 1)


def exchange_p(rows: Sequence[Sequence[float]], statistic: Statistic) -> float:
    """Return the two-sided p-value of the difference of a statistic between two sides, by exchanging them.

    A row has the sums of one cluster: those of the first side, then those of the second. Each cluster is exchanged or
    not; the exchanges are enumerated or sampled as the flips in `flip_p`. An exchange that leaves the statistic
    undefined counts as extreme.
    """
    import numpy as np

    sides = np.asarray(rows, dtype=float).reshape(len(rows), 2, -1)
    total = sides.sum(axis=(0, 1))
    gaps = [tuple(gap) for gap in sides[:, 0] - sides[:, 1] if gap.any()]
    # the order of the clusters and the names of the sides must not influence the sampling
    ordered = np.asarray(sorted(max(gap, tuple(-x for x in gap)) for gap in gaps)).reshape(len(gaps), len(total))

    def size(gap: Any) -> float:
        one, other = statistic(list((total + gap) / 2)), statistic(list((total - gap) / 2))
        return float("inf") if one is None or other is None else abs(one - other)

    least = _rounded_down(size(np.asarray(gaps).sum(axis=0) if gaps else np.zeros(len(total))))
    if len(gaps) <= ENUMERATED:
        signs = np.asarray(list(product((1.0, -1.0), repeat=len(gaps))))
        return float(np.mean([size(gap) >= least for gap in signs @ ordered]))
    extreme = 1 + sum(size(gap) >= least for signs in _sampled_signs(len(gaps)) for gap in signs @ ordered)
    return extreme / (DRAWN + 1)


def needed_items(difference: float, variance: float | None, level: float = LEVEL) -> int | None:
    """Return about how many paired items detect `difference` with a power of 0.8, two-sided, rounded up to two digits.

    (z(1 − α/2) + z(POWER))² variance / difference², where the variance is that of one item's difference, times the
    design effect if items come in clusters: n × the squared standard error. It is at least the number needed for a
    significant result if one side were better in every item. None without a difference, and if the variance is unknown
    or 0: items that do not vary give no estimate.
    """
    if variance is None or isclose(difference, 0, abs_tol=1e-12) or isclose(variance, 0, abs_tol=1e-12):
        return None
    z = NormalDist().inv_cdf
    exact = (z(0.5 + level / 2) + z(POWER)) ** 2 * variance / difference**2
    return round_up(max(ceil(exact), passes_needed(0.5, 0.5 + level / 2)))


def _difference_interval(differences: Sequence[float], clusters: Sequence[str], bounds: Bounds) -> Interval:
    """Return the interval of the mean difference.

    It may be narrower than that of independent items, unlike the interval of a share. For two providers it covers 95 %
    even so; docs/statistics.md says how much for the difference from a baseline that scores 0.
    """
    width = bounds[1] - bounds[0]
    if not any(differences) and bounds != UNBOUNDED:
        # no item differs: the difference is bounded by the share of differing items that is still possible
        differing = interval(differences, clusters, bounds=SHARE).high
        return Interval(0.0) if differing is None else Interval(0.0, -differing * width, differing * width)
    return interval(differences, clusters, bounds=(-width, width))


def _sampled_signs(clusters: int) -> Iterator[Any]:
    """Yield DRAWN rows of random signs in arrays of FLIPS_AT_ONCE, always the same ones."""
    import numpy as np

    draw = np.random.default_rng(0)
    for start in range(0, DRAWN, FLIPS_AT_ONCE):
        flips = min(FLIPS_AT_ONCE, DRAWN - start)
        yield draw.integers(0, 2, (flips, clusters), dtype=np.int8) * 2.0 - 1.0


def _rounded_down(observed: float) -> float:
    # sums in another order differ in the last digits; a tie must stay a tie
    return observed * (1 - 1e-9)
