"""The metrics of an extraction run, the most important first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memorybench.core.measures import Measure, Metric
from memorybench.core.trials import Outcome, Trial
from memorybench.metrics.intervals import Statistic, ratio_interval
from memorybench.metrics.rates import BoundedRate, Pooled, Total

from .scores import COUNTED, IN_TEXT, OPERATIONS, UNREADABLE, f1, share

DEFAULT_THRESHOLDS: Mapping[str, float] = {
    "precision": 0.95,
    "recall": 0.85,
    "f1": 0.90,
    "conflict_resolution": 1.0,
    "minimalism": 1.0,
}
"""By measure: the lowest value with which an extractor passes. A measure without a value is not compared."""

AT_WORST: Mapping[str, str] = {name: f"{name}_least" for name in ("precision", "recall", "f1")}
"""By measure: the name of another measure, its value if every undecided pair counted against it.

That other measure has no value if all pairs are decided.
"""

EXPECTS = "expects"
"""The label that says what a case expects: `facts` to be added, an `update` of stored facts, or `nothing`."""
FORBIDS = "forbids"
"""The label that says whether a case names texts that must not be stored: `yes` or `no`."""


class UndecidedPairsRate(BoundedRate, frozen=True):
    """A rate over the cases that have the score, or may have it once their undecided pairs are decided."""

    def is_open(self, outcome: Outcome) -> bool:
        is_examined = outcome.score("tp") is not None  # also if a reply of the judge could not be read
        return is_examined and any(outcome.score(name) for name in ("tp_open", "fp_open", "fn_open"))


class CaseRate(BoundedRate, frozen=True):
    """The mean of a score over the cases with one label. Other cases do not count as planned.

    Traces have no such label: those with a score count as planned, because only the judge finds out which have one.
    """

    label: str = EXPECTS
    value: str = ""

    def concerns(self, trial: Trial) -> bool:
        return trial.labels.get(self.label, self.value if self.label == FORBIDS else "") == self.value

    def measure(self, rows: Sequence[tuple[float, ...]], clusters: Sequence[str], planned: int) -> Measure:
        return BoundedRate.measure(self, rows, clusters, max(planned, len(rows)))

    def is_open(self, outcome: Outcome) -> bool:
        return outcome.score("tp") is not None and outcome.trial.labels.get(self.label) == self.value


SELECTIVE = (
    CaseRate("conflict_resolution", "conflict_resolution", value="update"),
    CaseRate("minimalism", "minimalism", value="nothing"),
    CaseRate("must_not_store", "must_not_store", label=FORBIDS, value="yes"),
)


class Bounded(Pooled, frozen=True):
    """A share whose value lies between two bounds, depending on undecided pairs.

    `best` and `worst` say how undecided pairs count at each bound: by name of their score, the place in `scores` of the
    count that they are added to. The measure has a value only if all pairs are decided. Otherwise its interval reaches
    from the lower end of the interval of the lower bound to the upper end of that of the upper bound, and n counts the
    cases that have a value and in which all pairs are decided.
    """

    best: tuple[tuple[str, int], ...] = ()
    worst: tuple[tuple[str, int], ...] = ()

    def bound(self, added: Sequence[tuple[str, int]]) -> Statistic:
        """Return the statistic with the counts of undecided pairs added as `best` or `worst` says."""

        def statistic(sums: Sequence[float]) -> float | None:
            counts = list(sums)
            for name, place in added:
                counts[place] += sums[self.scores.index(name)]
            return self.statistic(counts)

        return statistic

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        values = [outcome.score(name) for name in self.scores]
        if any(value is None for name, value in zip(self.scores, values, strict=True) if not _is_open(name)):
            return None
        return tuple([value or 0.0 for value in values])  # earlier versions did not count what is open

    def measure(self, rows: Sequence[tuple[float, ...]], clusters: Sequence[str], planned: int) -> Measure:
        places = [place for place, name in enumerate(self.scores) if _is_open(name)]
        decided = [row for row in rows if not any(row[place] for place in places)]
        if len(decided) == len(rows):
            return Pooled.measure(self, rows, clusters, planned)
        low, high = (ratio_interval(rows, clusters, self.bound(end)) for end in (self.worst, self.best))
        return Measure(
            name=self.name,
            value=None,
            n=sum(self.statistic(row) is not None for row in decided),
            planned=planned,
            low=low.value if low.low is None else low.low,
            high=high.value if high.high is None else high.high,
            higher_is_better=self.higher_is_better,
        )


class Bound(Pooled, frozen=True):
    """The lowest or the highest value that a share could have, whatever is decided about undecided pairs.

    It has no value if all pairs are decided. The last of `scores` is the number of undecided pairs.
    """

    def measure(self, rows: Sequence[tuple[float, ...]], clusters: Sequence[str], planned: int) -> Measure:
        known = any(row[-1] for row in rows)
        value = self.statistic([sum(column) for column in zip(*rows, strict=True)]) if known else None
        n = sum(self.statistic(row) is not None for row in rows) if known else 0
        return Measure(name=self.name, value=value, n=n, planned=planned)


def measures() -> tuple[Metric, ...]:
    """Return all metrics. Those named `macro_` are means over cases; the others pool the changes of all cases."""
    f1_scores = ("tp", "fp", "fn", "tp_open", "fp_open", "fn_open")
    shares = (
        Bounded("precision", ("tp", "fp", "tp_open", "fp_open"), _share, best=_RIGHT, worst=(("fp_open", 1),)),
        Bounded("recall", ("tp", "fn", "tp_open", "fn_open"), _share, best=_RIGHT, worst=(("fn_open", 1),)),
        Bounded("f1", f1_scores, lambda sums: f1(*sums[:3]), best=_RIGHT, worst=(("fp_open", 1), ("fn_open", 2))),
    )
    return (
        *shares,
        *SELECTIVE,
        *(UndecidedPairsRate(f"macro_{one.name}", one.name) for one in shares),
        _one_sided("coverage_precision", "supported", "unsupported"),
        _one_sided("coverage_recall", "covered", "uncovered"),
        Bounded(
            "coverage_f1",
            ("supported", "unsupported", "covered", "uncovered", "unsupported_open", "uncovered_open"),
            _coverage_f1,
            best=(("unsupported_open", 0), ("uncovered_open", 2)),
            worst=(("unsupported_open", 1), ("uncovered_open", 3)),
        ),
        _one_sided("text_precision", "said", "unsaid"),
        *(Bounded(f"{name}_done", tuple(scores), _done, best=((scores[2], 0),)) for name, *scores in OPERATIONS),
        Pooled("duplicates", ("duplicate", "facts"), ratio, higher_is_better=False),
        *(Total(label, label, unit="facts") for label in COUNTED if label != "duplicate"),
        Total("contradiction", "contradiction", unit="facts"),  # only runs of earlier versions count these
        Total("violations", "violations", unit="facts"),
        Total("undecided", "undecided", unit="pairs"),
        Total(IN_TEXT, IN_TEXT, unit="replies"),
        Total(UNREADABLE, UNREADABLE, unit="replies"),
        *(
            Bound(f"{one.name}_{end}", (*one.scores, "undecided"), one.bound(added))
            for one in shares
            for end, added in (("least", one.worst), ("most", one.best))
        ),
    )


_RIGHT = (("tp_open", 0),)


def _one_sided(name: str, right: str, wrong: str) -> Bounded:
    """Return the measure `right / (right + wrong)`. The count `wrong` + "_open" is undecided and could be either."""
    either = f"{wrong}_open"
    return Bounded(name, (right, wrong, either), _share, best=((either, 0),), worst=((either, 1),))


def _is_open(score: str) -> bool:
    return score.endswith("_open")


def _done(sums: Sequence[float]) -> float | None:
    """Return the share of the due operations that were done."""
    return ratio((min(sums[0], sums[1]), sums[1]))


def _share(sums: Sequence[float]) -> float | None:
    return share(sums[0], sums[1])


def ratio(sums: Sequence[float]) -> float | None:
    return sums[0] / sums[1] if sums[1] else None


def _coverage_f1(sums: Sequence[float]) -> float | None:
    """Return the harmonic mean of both shares; 0 if one is 0, even if the other is undefined."""
    precision, recall = share(sums[0], sums[1]), share(sums[2], sums[3])
    if precision == 0 or recall == 0:
        return 0.0
    return None if precision is None or recall is None else 2 * precision * recall / (precision + recall)
