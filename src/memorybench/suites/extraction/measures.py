"""The metrics of an extraction run, the most important first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memorybench.core.measures import Measure, Metric
from memorybench.core.trials import Outcome, Trial
from memorybench.metrics.intervals import Statistic
from memorybench.metrics.rates import Pooled, Rate, Total

from .scores import COUNTED, OPERATIONS, f1, share

DEFAULT_THRESHOLDS: Mapping[str, float] = {
    "precision": 0.95,
    "recall": 0.85,
    "f1": 0.90,
    "conflict_resolution": 1.0,
    "minimalism": 1.0,
}
"""What an extractor must reach. A measure without a value is not compared."""

AT_WORST: Mapping[str, str] = {name: f"{name}_least" for name in ("precision", "recall", "f1")}
"""The measure with the lower bound of each: every undecided pair counts against it. No value where all are decided."""

EXPECTS = "expects"
"""The label for what a case expects: `facts` to be added, an `update` of stored facts, or `nothing`."""


@dataclass(frozen=True, slots=True)
class CaseRate:
    """The mean of a verdict over the cases with one expectation; only these are planned."""

    name: str
    expects: str

    def concerns(self, trial: Trial) -> bool:
        return trial.labels.get(EXPECTS) == self.expects

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        return Rate(self.name, self.name).read(outcome)

    def measure(self, rows: Sequence[tuple[float, ...]], clusters: Sequence[str], planned: int) -> Measure:
        return Rate(self.name, self.name).measure(rows, clusters, planned)


_SELECTIVE = (CaseRate("conflict_resolution", "update"), CaseRate("minimalism", "nothing"))


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower or upper bound over all decisions of undecided pairs; no value where all are decided."""

    name: str
    scores: tuple[str, ...]
    """The last is the number of undecided pairs."""
    statistic: Statistic

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        return Pooled(self.name, self.scores, self.statistic).read(outcome)

    def measure(self, rows: Sequence[tuple[float, ...]], clusters: Sequence[str], planned: int) -> Measure:
        known = any(row[-1] for row in rows)
        value = self.statistic([sum(column) for column in zip(*rows, strict=True)]) if known else None
        return Measure(name=self.name, value=value, n=len(rows) if known else 0, planned=planned)


def measures() -> tuple[Metric, ...]:
    """All metrics. Those named `macro_` are means over cases; the others pool the changes of all cases."""
    return (
        Pooled("precision", ("tp", "fp"), _share),
        Pooled("recall", ("tp", "fn"), _share),
        Pooled("f1", ("tp", "fp", "fn"), lambda sums: f1(*sums)),
        *_SELECTIVE,
        Rate("must_not_store", "must_not_store"),
        *(Rate(f"macro_{name}", name) for name in ("precision", "recall", "f1")),
        Pooled("coverage_precision", ("supported", "unsupported"), _share),
        Pooled("coverage_recall", ("covered", "uncovered"), _share),
        Pooled("coverage_f1", ("supported", "unsupported", "covered", "uncovered"), _coverage_f1),
        *(Pooled(f"{name}_done", (done, wanted), _part) for name, done, wanted in OPERATIONS),
        Pooled("duplicates", ("duplicate", "facts"), _part, higher_is_better=False),
        *(Total(label, label, unit="") for label in COUNTED if label != "duplicate"),
        Total("violations", "violations", unit=""),
        Total("undecided", "undecided", unit=""),
        *_bounds(),
    )


def selected(trials: Iterable[Trial]) -> dict[str, int]:
    """The number of trials that each selective metric applies to."""
    counts = {metric.name: 0 for metric in _SELECTIVE}
    for trial in trials:
        for metric in _SELECTIVE:
            counts[metric.name] += metric.concerns(trial)
    return counts


def _bounds() -> tuple[Bound, ...]:
    precision = ("tp", "fp", "tp_open", "fp_open", "undecided")
    recall = ("tp", "fn", "tp_open", "fn_open", "undecided")
    both = ("tp", "fp", "fn", "tp_open", "fp_open", "fn_open", "undecided")
    return (
        Bound("precision_least", precision, _least),
        Bound("precision_most", precision, _most),
        Bound("recall_least", recall, _least),
        Bound("recall_most", recall, _most),
        Bound("f1_least", both, lambda sums: f1(sums[0], sums[1] + sums[4], sums[2] + sums[5])),
        Bound("f1_most", both, lambda sums: f1(sums[0] + sums[3], sums[1], sums[2])),
    )


def _share(sums: Sequence[float]) -> float | None:
    return share(sums[0], sums[1])


def _least(sums: Sequence[float]) -> float | None:
    right, wrong, _, wrong_at_most, _ = sums
    return share(right, wrong + wrong_at_most)


def _most(sums: Sequence[float]) -> float | None:
    right, wrong, right_at_most, _, _ = sums
    return share(right + right_at_most, wrong)


def _part(sums: Sequence[float]) -> float | None:
    return sums[0] / sums[1] if sums[1] else None


def _coverage_f1(sums: Sequence[float]) -> float | None:
    """The harmonic mean of both shares; 0 where one is 0, even if the other is undefined."""
    precision, recall = share(sums[0], sums[1]), share(sums[2], sums[3])
    if precision == 0 or recall == 0:
        return 0.0
    return None if precision is None or recall is None else 2 * precision * recall / (precision + recall)
