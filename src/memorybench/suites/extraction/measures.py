"""The metrics of an extraction run, the most important first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memorybench.core.measures import Measure, Metric
from memorybench.core.trials import Trial
from memorybench.metrics.rates import Pooled, Rate, Total

from .scores import COUNTED, OPERATIONS, f1, share

DEFAULT_THRESHOLDS: Mapping[str, float] = {
    "precision": 0.95,
    "recall": 0.85,
    "f1": 0.90,
    "conflict_resolution": 1.0,
    "minimalism": 1.0,
}
"""The least value that an extractor must reach. A measure without a value is not compared."""

AT_WORST: Mapping[str, str] = {name: f"{name}_least" for name in ("precision", "recall", "f1")}
"""The measure with the lower bound of each: every undecided pair counts against it. No value where all are decided."""

EXPECTS = "expects"
"""The label for what a case expects: `facts` to be added, an `update` of stored facts, or `nothing`."""


@dataclass(frozen=True, slots=True)
class CaseRate(Rate):
    """The mean of a verdict over the cases with one expectation; only these are planned."""

    expects: str = ""

    def concerns(self, trial: Trial) -> bool:
        return trial.labels.get(EXPECTS) == self.expects


_SELECTIVE = (
    CaseRate("conflict_resolution", "conflict_resolution", expects="update"),
    CaseRate("minimalism", "minimalism", expects="nothing"),
)


@dataclass(frozen=True, slots=True)
class Bound(Pooled):
    """A lower or upper bound over all decisions of undecided pairs; no value where all are decided.

    The last of `scores` is the number of undecided pairs.
    """

    def measure(self, rows: Sequence[tuple[float, ...]], clusters: Sequence[str], planned: int) -> Measure:
        known = any(row[-1] for row in rows)
        value = self.statistic([sum(column) for column in zip(*rows, strict=True)]) if known else None
        return Measure(name=self.name, value=value, n=len(rows) if known else 0, planned=planned)


def measures() -> tuple[Metric, ...]:
    """Returns all metrics. Those named `macro_` are means over cases; the others pool the changes of all cases."""
    precision = ("tp", "fp", "tp_open", "fp_open", "undecided")
    recall = ("tp", "fn", "tp_open", "fn_open", "undecided")
    both = ("tp", "fp", "fn", "tp_open", "fp_open", "fn_open", "undecided")
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
        *(Pooled(f"{name}_done", (done, due), _ratio) for name, done, due in OPERATIONS),
        Pooled("duplicates", ("duplicate", "facts"), _ratio, higher_is_better=False),
        *(Total(label, label, unit="") for label in COUNTED if label != "duplicate"),
        Total("violations", "violations", unit=""),
        Total("undecided", "undecided", unit=""),
        Bound("precision_least", precision, lambda sums: share(sums[0], sums[1] + sums[3])),
        Bound("precision_most", precision, lambda sums: share(sums[0] + sums[2], sums[1])),
        Bound("recall_least", recall, lambda sums: share(sums[0], sums[1] + sums[3])),
        Bound("recall_most", recall, lambda sums: share(sums[0] + sums[2], sums[1])),
        Bound("f1_least", both, lambda sums: f1(sums[0], sums[1] + sums[4], sums[2] + sums[5])),
        Bound("f1_most", both, lambda sums: f1(sums[0] + sums[3], sums[1], sums[2])),
    )


def count_selected(trials: Iterable[Trial]) -> dict[str, int]:
    """Counts the trials that each selective metric applies to."""
    counts = {metric.name: 0 for metric in _SELECTIVE}
    for trial in trials:
        for metric in _SELECTIVE:
            counts[metric.name] += metric.concerns(trial)
    return counts


def _share(sums: Sequence[float]) -> float | None:
    return share(sums[0], sums[1])


def _ratio(sums: Sequence[float]) -> float | None:
    return sums[0] / sums[1] if sums[1] else None


def _coverage_f1(sums: Sequence[float]) -> float | None:
    """The harmonic mean of both shares; 0 where one is 0, even if the other is undefined."""
    precision, recall = share(sums[0], sums[1]), share(sums[2], sums[3])
    if precision == 0 or recall == 0:
        return 0.0
    return None if precision is None or recall is None else 2 * precision * recall / (precision + recall)
