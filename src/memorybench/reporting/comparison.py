"""Two arms side by side, question by question: what parts them, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from memorybench.core.measures import Measure
from memorybench.core.records import Record
from memorybench.core.trials import Outcome
from memorybench.metrics.comparison import Comparison, compare, holm
from memorybench.metrics.intervals import SHARE, UNBOUNDED

SCORES = {"accuracy": "correct"}
"""Measures whose score has another name."""


class Pair(Record):
    benchmark: str = ""
    first: str
    second: str
    measure: str
    unit: str = ""
    higher_is_better: bool = True
    found: Comparison

    def sentence(self) -> str:
        found = self.found
        if found.difference is None:
            return f"{self.first} and {self.second} have no question in common that both have a {self.measure} for."
        ahead = (found.difference >= 0) == self.higher_is_better
        better, sign = (self.first, 1) if ahead else (self.second, -1)
        sign = sign if self.higher_is_better else -sign
        gap = self._amount(abs(found.difference))
        if found.low is not None and found.high is not None:
            low, high = sorted((sign * found.low, sign * found.high))
            gap += f" [{self._amount(low, bare=True)}, {self._amount(high, bare=True)}]"
        if found.tells_apart:
            return f"{better} is better in {self.measure} by {gap}, p = {_p(found.adjusted_p)}, n = {found.n}."
        more = f" About {found.needed:,} questions would part two that differ so much." if found.needed else ""
        return (
            f"{self.first} and {self.second} can not be told apart in {self.measure}: {better} is ahead by {gap},"
            f" p = {_p(found.adjusted_p)}, n = {found.n}.{more}"
        )

    def _amount(self, difference: float, *, bare: bool = False) -> str:
        if self.unit:
            return f"{difference:,.1f}" + ("" if bare else f" {self.unit}")
        return f"{100 * difference:.1f}" + ("" if bare else " points")


def pairs(outcomes: Iterable[Outcome], subjects: Sequence[str], benchmark: str, by: Measure | None) -> list[Pair]:
    """Every pair of these subjects, the p-values held against all pairs together."""
    if by is None:
        return []
    score = SCORES.get(by.name, by.name)
    values: dict[str, dict[str, float]] = {subject: {} for subject in subjects}
    clusters: dict[str, str] = {}
    asked: set[str] = set()
    for outcome in outcomes:
        trial = outcome.trial
        if trial.benchmark != benchmark or trial.subject.name not in values:
            continue
        asked.add(trial.case_id)
        clusters[trial.case_id] = trial.cluster
        value = outcome.score(score)
        if value is not None:
            values[trial.subject.name][trial.case_id] = value
    names = list(combinations(subjects, 2))
    bounds = UNBOUNDED if by.unit else SHARE
    found = holm([compare(values[a], values[b], clusters, len(asked), bounds=bounds) for a, b in names])
    return [
        Pair(
            first=first,
            second=second,
            measure=by.name,
            unit=by.unit,
            higher_is_better=by.higher_is_better,
            found=one,
        )
        for (first, second), one in zip(names, found, strict=True)
    ]


def _p(value: float | None) -> str:
    if value is None:
        return "?"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
