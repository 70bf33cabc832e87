"""Compares subjects question by question: any two of them, or each provider with each baseline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

from memorybench.core.measures import Measure
from memorybench.core.records import Record
from memorybench.core.report_sections import Difference
from memorybench.core.trials import Outcome
from memorybench.metrics.comparison import Comparison, compare, holm
from memorybench.metrics.intervals import SHARE, UNBOUNDED

HEADLINES = ("accuracy", "answer_f1", "recall@5")
"""The measures that a table leads with, the preferred one first."""
_SCORES = {"accuracy": "correct"}
"""Measures whose score has another name."""


class Pair(Record):
    """Two subjects compared by one measure: first minus second."""

    benchmark: str = ""
    first: str
    second: str
    measure: str
    unit: str = ""
    higher_is_better: bool = True
    comparison: Comparison

    def sentence(self) -> str:
        """The result in words: who is better and by how much, or that there is no significant difference."""
        result = self.comparison
        if result.difference is None:
            return f"{self.first} and {self.second}: no question has a {self.measure} of both."
        ahead = (result.difference >= 0) == self.higher_is_better
        better, sign = (self.first, 1) if ahead else (self.second, -1)
        sign = sign if self.higher_is_better else -sign
        gap = self._amount(abs(result.difference)) + (f" {self.unit}" if self.unit else " points")
        if result.low is not None and result.high is not None:
            low, high = sorted((sign * result.low, sign * result.high))
            gap += f" [{self._amount(low)}, {self._amount(high)}]"
        statistics = f"p = {_p(result.adjusted_p)}, n = {result.n}"
        if result.significant:
            return f"{better} is better in {self.measure} by {gap}, {statistics}."
        more = f" A difference of this size needs about {result.needed:,} questions." if result.needed else ""
        return (
            f"{self.first} and {self.second}: no significant difference in {self.measure}; {better} is ahead by {gap},"
            f" {statistics}.{more}"
        )

    def cell(self) -> Difference:
        result = self.comparison
        return Difference(result.difference, result.low, result.high, result.significant)

    def document(self) -> dict[str, Any]:
        """The JSON of `results --compare`; `found` and `tells_apart` are old names."""
        fields = self.model_dump(mode="json")
        comparison = {**fields["comparison"], "tells_apart": self.comparison.significant}
        return {**fields, "comparison": comparison, "found": comparison}

    def _amount(self, difference: float) -> str:
        return f"{difference:,.1f}" if self.unit else f"{100 * difference:.1f}"


def compare_subjects(
    outcomes: Iterable[Outcome], subjects: Sequence[str], benchmark: str, by: Measure | None
) -> list[Pair]:
    """Every pair of these subjects; the p-values are adjusted for all pairs together."""
    if by is None:
        return []
    score = _SCORES.get(by.name, by.name)
    values: dict[str, dict[str, float]] = {subject: {} for subject in subjects}
    clusters: dict[str, str] = {}
    for outcome in outcomes:
        trial = outcome.trial
        if trial.benchmark != benchmark or trial.subject.name not in values:
            continue
        clusters[trial.case_id] = trial.cluster
        value = outcome.score(score)
        if value is not None:
            values[trial.subject.name][trial.case_id] = value
    names = list(combinations(subjects, 2))
    bounds = UNBOUNDED if by.unit else SHARE
    results = holm([compare(values[a], values[b], clusters, len(clusters), bounds=bounds) for a, b in names])
    return [
        Pair(
            first=first,
            second=second,
            measure=by.name,
            unit=by.unit,
            higher_is_better=by.higher_is_better,
            comparison=result,
        )
        for (first, second), result in zip(names, results, strict=True)
    ]


def baseline_differences(outcomes: Iterable[Outcome]) -> tuple[Pair, ...]:
    """Each provider minus each baseline in the first headline measure that both have; p-values adjusted together."""
    values: dict[tuple[str, str, str], dict[str, float]] = {}
    clusters: dict[str, str] = {}
    baselines: set[str] = set()
    order: dict[tuple[str, str], None] = {}
    for outcome in outcomes:
        trial = outcome.trial
        order.setdefault((trial.benchmark, trial.subject.name))
        clusters[trial.case_id] = trial.cluster
        if trial.subject.role == "baseline":
            baselines.add(trial.subject.name)
        for name in HEADLINES:
            value = outcome.score(_SCORES.get(name, name))
            if value is not None:
                values.setdefault((trial.benchmark, trial.subject.name, name), {})[trial.case_id] = value
    pairs = []
    for benchmark, provider in order:
        for other, baseline in order:
            if provider in baselines or baseline not in baselines or other != benchmark:
                continue
            both = (provider, baseline)
            measure = next((n for n in HEADLINES if all((benchmark, one, n) in values for one in both)), None)
            if measure is not None:
                pairs.append((benchmark, provider, baseline, measure))
    results = holm(
        [
            compare(
                values[benchmark, provider, name],
                values[benchmark, baseline, name],
                clusters,
                len(values[benchmark, provider, name]),
                bounds=SHARE,
            )
            for benchmark, provider, baseline, name in pairs
        ]
    )
    return tuple(
        Pair(benchmark=benchmark, first=provider, second=baseline, measure=name, comparison=result)
        for (benchmark, provider, baseline, name), result in zip(pairs, results, strict=True)
    )


def _p(value: float | None) -> str:
    if value is None:
        return "?"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
