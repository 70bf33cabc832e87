"""The metrics of an extraction run, the most important first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memorybench.core.measures import Measure, Metric
from memorybench.core.trials import Outcome, Trial
from memorybench.metrics.intervals import Statistic, ratio_interval
from memorybench.metrics.rates import Pooled, Rate, Total

from .scores import COUNTED, IN_TEXT, OPERATIONS, f1, share

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


@dataclass(frozen=True, slots=True)
class BoundedRate(Rate):
    """The mean of a score over the cases that have it, or may have it once their undecided pairs are decided.

    It has a value only if all these cases are decided. Otherwise its interval reaches from the lower end for "all
    undecided cases score 0" to the upper end for "all score 1", and n counts the decided cases.
    """

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        value = outcome.score(self.score)
        if value is not None:
            return (value, value)
        return (0.0, 1.0) if outcome.status == "scored" and self.is_open(outcome) else None

    def is_open(self, outcome: Outcome) -> bool:
        """Whether the score of this outcome depends on undecided pairs."""
        return any(outcome.score(name) for name in ("tp_open", "fp_open", "fn_open"))

    def measure(self, rows: Sequence[tuple[float, ...]], clusters: Sequence[str], planned: int) -> Measure:
        low, high = (Rate.measure(self, [(row[end],) for row in rows], clusters, planned) for end in (0, -1))
        decided = sum(row[0] == row[-1] for row in rows)
        if decided == len(rows):
            return low
        ends = {
            "low": low.value if low.low is None else low.low,
            "high": high.value if high.high is None else high.high,
        }
        return low.model_copy(update={"value": None, "n": decided, "needed": None, **ends})


@dataclass(frozen=True, slots=True)
class CaseRate(BoundedRate):
    """The mean of a score over the cases with one label. Other cases do not count as planned."""

    label: str = EXPECTS
    value: str = ""

    def concerns(self, trial: Trial) -> bool:
        return trial.labels.get(self.label, self.value if self.label == FORBIDS else "") == self.value

    def is_open(self, outcome: Outcome) -> bool:
        return outcome.trial.labels.get(self.label) == self.value


SELECTIVE = (
    CaseRate("conflict_resolution", "conflict_resolution", value="update"),
    CaseRate("minimalism", "minimalism", value="nothing"),
    CaseRate("must_not_store", "must_not_store", label=FORBIDS, value="yes"),
)


@dataclass(frozen=True, slots=True)
class Bounded(Pooled):
    """A share whose value lies between `least` and `most`, depending on undecided pairs.

    It has a value only if all pairs are decided. Otherwise its interval reaches from the lower end of the interval of
    `least` to the upper end of that of `most`, and n counts the cases in which all pairs are decided.
    """

    least: Statistic = lambda sums: None
    most: Statistic = lambda sums: None

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        values = [outcome.score(name) for name in self.scores]
        if any(value is None for name, value in zip(self.scores, values, strict=True) if not _is_open(name)):
            return None
        return tuple([value or 0.0 for value in values])  # earlier versions did not count what is open

    def measure(self, rows: Sequence[tuple[float, ...]], clusters: Sequence[str], planned: int) -> Measure:
        places = [place for place, name in enumerate(self.scores) if _is_open(name)]
        decided = sum(not any(row[place] for place in places) for row in rows)
        if decided == len(rows):
            return Pooled.measure(self, rows, clusters, planned)
        low, high = (ratio_interval(rows, clusters, statistic) for statistic in (self.least, self.most))
        return Measure(
            name=self.name,
            value=None,
            n=decided,
            planned=planned,
            low=low.value if low.low is None else low.low,
            high=high.value if high.high is None else high.high,
            higher_is_better=self.higher_is_better,
        )


@dataclass(frozen=True, slots=True)
class Bound(Pooled):
    """The lowest or the highest value that a share could have, whatever is decided about undecided pairs.

    It has no value if all pairs are decided. The last of `scores` is the number of undecided pairs.
    """

    def measure(self, rows: Sequence[tuple[float, ...]], clusters: Sequence[str], planned: int) -> Measure:
        known = any(row[-1] for row in rows)
        value = self.statistic([sum(column) for column in zip(*rows, strict=True)]) if known else None
        return Measure(name=self.name, value=value, n=len(rows) if known else 0, planned=planned)


def measures() -> tuple[Metric, ...]:
    """Returns all metrics. Those named `macro_` are means over cases; the others pool the changes of all cases."""
    shares = (
        Bounded("precision", ("tp", "fp", "tp_open", "fp_open"), _share, least=_least_share, most=_most_share),
        Bounded("recall", ("tp", "fn", "tp_open", "fn_open"), _share, least=_least_share, most=_most_share),
        Bounded(
            "f1",
            ("tp", "fp", "fn", "tp_open", "fp_open", "fn_open"),
            lambda sums: f1(*sums[:3]),
            least=lambda sums: f1(sums[0], sums[1] + sums[4], sums[2] + sums[5]),
            most=lambda sums: f1(sums[0] + sums[3], sums[1], sums[2]),
        ),
    )
    return (
        *shares,
        *SELECTIVE,
        *(BoundedRate(f"macro_{one.name}", one.name) for one in shares),
        _one_sided("coverage_precision", ("supported", "unsupported", "unsupported_open")),
        _one_sided("coverage_recall", ("covered", "uncovered", "uncovered_open")),
        Bounded(
            "coverage_f1",
            ("supported", "unsupported", "covered", "uncovered", "unsupported_open", "uncovered_open"),
            _coverage_f1,
            least=lambda sums: _coverage_f1((sums[0], sums[1] + sums[4], sums[2], sums[3] + sums[5])),
            most=lambda sums: _coverage_f1((sums[0] + sums[4], sums[1], sums[2] + sums[5], sums[3])),
        ),
        _one_sided("text_precision", ("said", "unsaid", "unsaid_open")),
        *(_operation(f"{name}_done", scores) for name, *scores in OPERATIONS),
        Pooled("duplicates", ("duplicate", "facts"), ratio, higher_is_better=False),
        *(Total(label, label, unit="facts") for label in COUNTED if label != "duplicate"),
        Total("contradiction", "contradiction", unit="facts"),  # only runs of version 0.1 count these
        Total("violations", "violations", unit="facts"),
        Total("undecided", "undecided", unit="pairs"),
        Total(IN_TEXT, IN_TEXT, unit="replies"),
        *(
            Bound(f"{one.name}_{end}", (*one.scores, "undecided"), statistic)
            for one in shares
            for end, statistic in (("least", one.least), ("most", one.most))
        ),
    )


def _one_sided(name: str, scores: tuple[str, str, str]) -> Bounded:
    """Return the measure `scores[0] / (scores[0] + scores[1])`.

    The third count is undecided and could belong to either.
    """
    return Bounded(
        name,
        scores,
        _share,
        least=lambda sums: share(sums[0], sums[1] + sums[2]),
        most=lambda sums: share(sums[0] + sums[2], sums[1]),
    )


def _operation(name: str, scores: Sequence[str]) -> Bounded:
    """Return the share of the due operations that were done. Undecided pairs could increase it."""
    return Bounded(
        name,
        tuple(scores),
        ratio,
        least=ratio,
        most=lambda sums: ratio((min(sums[0] + sums[2], sums[1]), sums[1])),
    )


def _is_open(score: str) -> bool:
    return score.endswith("_open")


def _least_share(sums: Sequence[float]) -> float | None:
    return share(sums[0], sums[1] + sums[3])


def _most_share(sums: Sequence[float]) -> float | None:
    return share(sums[0] + sums[2], sums[1])


def _share(sums: Sequence[float]) -> float | None:
    return share(sums[0], sums[1])


def ratio(sums: Sequence[float]) -> float | None:
    return sums[0] / sums[1] if sums[1] else None


def _coverage_f1(sums: Sequence[float]) -> float | None:
    """Returns the harmonic mean of both shares; 0 if one is 0, even if the other is undefined."""
    precision, recall = share(sums[0], sums[1]), share(sums[2], sums[3])
    if precision == 0 or recall == 0:
        return 0.0
    return None if precision is None or recall is None else 2 * precision * recall / (precision + recall)
