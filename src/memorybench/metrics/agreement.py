"""How far a judge can be trusted: its verdicts against those of people, and what that does to a score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt
from statistics import NormalDist

from memorybench.core.records import Record

from .intervals import Interval, interval, ratio_interval

_CELLS = tuple(tuple(float(row == column) for column in range(4)) for row in range(4))


class Confusion(Record):
    """How often judge and person said what of the same response."""

    both_yes: int = 0
    judge_yes: int = 0
    """The judge alone said yes: a wrong response was let pass."""
    person_yes: int = 0
    """The person alone said yes: a right response was turned down."""
    both_no: int = 0

    @classmethod
    def of(cls, pairs: Iterable[tuple[bool, bool]]) -> Confusion:
        """From pairs of what the person and what the judge said."""
        said = list(pairs)
        return cls(
            both_yes=said.count((True, True)),
            judge_yes=said.count((False, True)),
            person_yes=said.count((True, False)),
            both_no=said.count((False, False)),
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
    """The share of right responses that the judge calls right. No right responses: undefined."""
    return _share(confusion.both_yes, confusion.rights)


def specificity(confusion: Confusion) -> Interval:
    """The share of wrong responses that the judge calls wrong. No wrong responses: undefined."""
    return _share(confusion.both_no, confusion.wrongs)


def agreement(confusion: Confusion) -> Interval:
    """The share of responses on which judge and person agree, chance included."""
    return _share(confusion.both_yes + confusion.both_no, confusion.n)


def kappa(confusion: Confusion) -> Interval:
    """Agreement beyond chance: 1 is perfect, 0 what chance alone would give.

    Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20, 1960.
    Undefined where judge and person both give a single answer throughout: then chance explains everything.
    """
    perfect = confusion.n == confusion.both_yes + confusion.both_no
    if perfect and confusion.both_yes and confusion.both_no:
        # no response that is left out would change anything: what may yet differ is how often they agree
        chance = _by_chance(_cells(confusion))
        least = agreement(confusion).low or 0.0
        return Interval(1.0, (least - chance) / (1 - chance), 1.0)
    rows = [cell for cell, times in zip(_CELLS, _cells(confusion), strict=True) for _ in range(times)]
    return ratio_interval(rows, [""] * len(rows), _kappa, bounds=(-1.0, 1.0))


def corrected(score: float, n: int | None, confusion: Confusion, level: float = 0.95) -> Interval:
    """What share of responses is right, given that a judge of known faults calls the share `score` of `n` right.

    Rogan and Gladen, "Estimating prevalence from the results of a screening test", American Journal of Epidemiology
    107, 1978; limits by Lang and Reiczigel, "Confidence limits for prevalence of disease adjusted for estimated
    sensitivity and specificity", Preventive Veterinary Medicine 113, 2014: they allow for the judge having been
    tried on few responses. All are cut to 0 … 1. Undefined where sensitivity + specificity is at most 1, for such a
    judge tells nothing. `n` None: the score is taken as exact.
    """
    sens, spec = sensitivity(confusion).value, specificity(confusion).value
    if sens is None or spec is None or sens + spec <= 1:
        return Interval(None)
    value = _cut((score + spec - 1) / (sens + spec - 1))
    z = NormalDist().inv_cdf(0.5 + level / 2)
    seen, doubt = score, 0.0
    if n is not None:
        seen = (n * score + z**2 / 2) / (n + z**2)
        doubt = seen * (1 - seen) / (n + z**2)
    sens, sens_doubt = _shrunk(confusion.both_yes, confusion.rights)
    spec, spec_doubt = _shrunk(confusion.both_no, confusion.wrongs)
    power = sens + spec - 1
    if power <= 0:
        return Interval(value)
    centre = (seen + spec - 1) / power
    shift = 2 * z**2 * (centre * sens_doubt - (1 - centre) * spec_doubt)
    half = z * sqrt(doubt + centre**2 * sens_doubt + (1 - centre) ** 2 * spec_doubt) / power
    return Interval(value, min(_cut(centre + shift - half), value), max(_cut(centre + shift + half), value))


def _share(hits: int, n: int) -> Interval:
    return interval([1.0] * hits + [0.0] * (n - hits), [""] * n)


def _cells(confusion: Confusion) -> tuple[int, int, int, int]:
    return confusion.both_yes, confusion.judge_yes, confusion.person_yes, confusion.both_no


def _kappa(counts: Sequence[float]) -> float | None:
    if not sum(counts):
        return None
    chance = _by_chance(counts)
    return None if chance == 1 else ((counts[0] + counts[3]) / sum(counts) - chance) / (1 - chance)


def _by_chance(counts: Sequence[float]) -> float:
    """How often they would agree if each said yes as often as they do, but blindly."""
    both_yes, judge_yes, person_yes, both_no = counts
    yes = (both_yes + judge_yes) * (both_yes + person_yes)
    no = (both_no + person_yes) * (both_no + judge_yes)
    return (yes + no) / sum(counts) ** 2


def _shrunk(hits: int, n: int) -> tuple[float, float]:
    """A share, drawn towards one half as by one hit and one miss more, and its variance."""
    share = (hits + 1) / (n + 2)
    return share, share * (1 - share) / (n + 2)


def _cut(value: float) -> float:
    return min(1.0, max(0.0, value))
