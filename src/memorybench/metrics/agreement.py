"""Compares a judge with human labels, and corrects a score for the judge's errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt

from memorybench.core.records import Record

from .intervals import NORMAL_QUANTILE, Interval, interval, ratio_interval

_CELLS = tuple(tuple(float(row == column) for column in range(4)) for row in range(4))


class Confusion(Record):
    """Counts of the verdicts that a judge and a person gave on the same responses."""

    both_yes: int = 0
    judge_yes: int = 0
    """Responses that only the judge called right: false positives."""
    person_yes: int = 0
    """Responses that only the person called right: false negatives."""
    both_no: int = 0

    @classmethod
    def of(cls, pairs: Iterable[tuple[bool, bool]]) -> Confusion:
        """Count pairs of (person's verdict, judge's verdict)."""
        verdicts = list(pairs)
        return cls(
            both_yes=verdicts.count((True, True)),
            judge_yes=verdicts.count((False, True)),
            person_yes=verdicts.count((True, False)),
            both_no=verdicts.count((False, False)),
        )

    def complement(self) -> Confusion:
        """Return the counts for the opposite question: "yes" then means that the response is wrong."""
        return Confusion(
            both_yes=self.both_no, judge_yes=self.person_yes, person_yes=self.judge_yes, both_no=self.both_yes
        )

    @property
    def n(self) -> int:
        return self.both_yes + self.judge_yes + self.person_yes + self.both_no

    @property
    def rights(self) -> int:
        return self.both_yes + self.person_yes

    @property
    def wrongs(self) -> int:
        return self.both_no + self.judge_yes


def sensitivity(confusion: Confusion) -> Interval:
    """Return the share of right responses that the judge calls right; without a value if there are none."""
    return _share(confusion.both_yes, confusion.rights)


def specificity(confusion: Confusion) -> Interval:
    """Return the share of wrong responses that the judge calls wrong; without a value if there are none."""
    return _share(confusion.both_no, confusion.wrongs)


def agreement(confusion: Confusion) -> Interval:
    """Return the share of responses on which judge and person agree, not corrected for chance (see `kappa`)."""
    return _share(confusion.both_yes + confusion.both_no, confusion.n)


def kappa(confusion: Confusion) -> Interval:
    """Return Cohen's kappa, the agreement beyond chance: 1 is perfect, 0 is chance.

    Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20, 1960.
    Undefined if judge and person both give the same verdict on every response: chance explains everything.
    """
    perfect = confusion.n == confusion.both_yes + confusion.both_no
    if perfect and confusion.both_yes and confusion.both_no:
        # leaving out a response changes nothing, so only the rate of agreement is uncertain
        chance = _chance_agreement(_cells(confusion))
        least = agreement(confusion).low or 0.0
        return Interval(1.0, (least - chance) / (1 - chance), 1.0)
    rows = [cell for cell, times in zip(_CELLS, _cells(confusion), strict=True) for _ in range(times)]
    return ratio_interval(rows, [""] * len(rows), _kappa, bounds=(-1.0, 1.0))


def falls_short(hits: int, n: int, limit: float) -> bool:
    """Return whether a rate, `hits` of `n`, is significantly below `limit`: exact binomial test, one-sided.

    Sensitivity and specificity are tested at 97.5 % each: a judge at both limits fails in at most 5 % of its checks.
    """
    from scipy.special import bdtr

    return n > 0 and float(bdtr(hits, n, limit)) < 1 - 0.975


def is_informative(confusion: Confusion) -> bool:
    """Return whether sensitivity + specificity is significantly above 1, the sum for a judge that guesses."""
    (sens, sens_variance), (spec, spec_variance) = _smoothed_rates(confusion, 1)
    return sens + spec - 1 > NORMAL_QUANTILE * sqrt(sens_variance + spec_variance)


def effective_n(estimate: Interval) -> float | None:
    """Return how many independent items would have a Wilson interval as wide as this one; None without an interval.

    For correlated items it is smaller than their number. Wilson's half width h at a share p and k = z² / n satisfies h²
    (1 + k)² = p (1 − p) k + k² / 4, which is solved for k.
    """
    value, low, high = estimate
    if value is None or low is None or high is None or low == high:
        return None
    half = (high - low) / 2
    a, b, c = half**2 - 0.25, 2 * half**2 - value * (1 - value), half**2
    return float(2 * a * NORMAL_QUANTILE**2 / (-b - sqrt(b**2 - 4 * a * c))) if a < 0 else None


def correct_for_judge(
    score: float,
    n: float | None,
    confusion: Confusion,
    *,
    judged: float = 1.0,
    right_by_code: float = 0.0,
) -> Interval:
    """Estimate the share of right responses from `score`, the share that an imperfect judge calls right.

    The estimate is that of Rogan and Gladen, "Estimating prevalence from the results of a screening test", American
    Journal of Epidemiology 107, 1978; the limits are those of Lang and Reiczigel, "Confidence limits for prevalence of
    disease adjusted for estimated sensitivity and specificity", Preventive Veterinary Medicine 113, 2014. The limits
    allow for a small sample of labelled responses, by adding a hit and a miss to it. Here, half a hit and half a miss
    are added, as in Jeffreys' prior: with 24 responses, whole ones would cover 98 % instead of 95 %. Estimate and
    limits are clamped to the possible values. There is no value if sensitivity + specificity is at most 1: such a judge
    carries no information.

    `n` is the number of responses behind `score`; None if they are not a sample, so that `score` is exact. If only a
    share `judged` of the responses was judged, only their verdicts are corrected. `right_by_code` is the share of all
    responses that code found right, without an error.
    """
    sens, spec = sensitivity(confusion).value, specificity(confusion).value
    if sens is None or spec is None or sens + spec <= 1:
        return Interval(None)
    called_right = (score - right_by_code) / judged if judged else 0.0
    corrected = (called_right + spec - 1) / (sens + spec - 1)
    value = right_by_code + judged * min(1.0, max(0.0, corrected))
    z = NORMAL_QUANTILE
    observed, variance = called_right, 0.0
    if n is not None:
        observed = (n * called_right + z**2 / 2) / (n + z**2)
        smoothed = (n * score + z**2 / 2) / (n + z**2)
        variance = smoothed * (1 - smoothed) / (n + z**2)
    (sens, sens_variance), (spec, spec_variance) = _smoothed_rates(confusion, 0.5)
    power = sens + spec - 1
    if power <= 0:
        return Interval(value)
    share = (observed + spec - 1) / power
    centre = right_by_code + judged * share
    shift = judged * 2 * z**2 * (share * sens_variance - (1 - share) * spec_variance)
    of_judge = judged**2 * (share**2 * sens_variance + (1 - share) ** 2 * spec_variance)
    half = z * sqrt(variance + of_judge) / power
    # another sample may have another share that code decides; these responses have not
    lowest, highest = (right_by_code, right_by_code + judged) if n is None else (0.0, 1.0)
    low, high = max(centre + shift - half, lowest), min(centre + shift + half, highest)
    return Interval(value, min(low, value), max(high, value))


def _share(hits: int, n: int) -> Interval:
    return interval([1.0] * hits + [0.0] * (n - hits), [""] * n)


def _cells(confusion: Confusion) -> tuple[int, int, int, int]:
    return confusion.both_yes, confusion.judge_yes, confusion.person_yes, confusion.both_no


def _kappa(counts: Sequence[float]) -> float | None:
    if not sum(counts):
        return None
    chance = _chance_agreement(counts)
    return None if chance == 1 else ((counts[0] + counts[3]) / sum(counts) - chance) / (1 - chance)


def _chance_agreement(counts: Sequence[float]) -> float:
    """Return the agreement to expect if judge and person gave their verdicts at random, at their own rates."""
    both_yes, judge_yes, person_yes, both_no = counts
    yes = (both_yes + judge_yes) * (both_yes + person_yes)
    no = (both_no + person_yes) * (both_no + judge_yes)
    return (yes + no) / sum(counts) ** 2


def _smoothed_rates(confusion: Confusion, added: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return sensitivity and specificity, each with its variance, after adding `added` hits and as many misses."""

    def smoothed(hits: int, n: int) -> tuple[float, float]:
        share = (hits + added) / (n + 2 * added)
        return share, share * (1 - share) / (n + 2 * added)

    return smoothed(confusion.both_yes, confusion.rights), smoothed(confusion.both_no, confusion.wrongs)
