"""Two arms side by side, question by question: what parts them, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from memorybench.metrics.comparison import Comparison, compare, holm
from memorybench.metrics.intervals import SHARE
from memorybench.vocabulary.records import Record
from memorybench.vocabulary.trials import Outcome

SCORES = {"accuracy": "correct"}
"""Measures whose score has another name."""


class Pair(Record):
    first: str
    second: str
    measure: str
    found: Comparison

    def sentence(self) -> str:
        found = self.found
        if found.difference is None:
            return f"{self.first} and {self.second} have no question in common that both have a {self.measure} for."
        better, sign = (self.first, 1) if found.difference >= 0 else (self.second, -1)
        gap = f"{abs(100 * found.difference):.1f} points"
        if found.low is not None and found.high is not None:
            low, high = sorted((sign * found.low, sign * found.high))
            gap += f" [{100 * low:.1f}, {100 * high:.1f}]"
        if found.tells_apart:
            return f"{better} is better in {self.measure} by {gap}, p = {_p(found.adjusted_p)}, n = {found.n}."
        more = f" About {found.needed:,} questions would part two that differ so much." if found.needed else ""
        return (
            f"{self.first} and {self.second} can not be told apart in {self.measure}: {better} is ahead by {gap},"
            f" p = {_p(found.adjusted_p)}, n = {found.n}.{more}"
        )


def pairs(outcomes: Iterable[Outcome], subjects: Sequence[str], benchmark: str, measure: str) -> list[Pair]:
    """Every pair of these subjects, the p-values held against all pairs together."""
    score = SCORES.get(measure, measure)
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
    found = holm([_compared(values, first, second, clusters, len(asked)) for first, second in names])
    return [
        Pair(first=first, second=second, measure=measure, found=one)
        for (first, second), one in zip(names, found, strict=True)
    ]


def _compared(
    values: Mapping[str, Mapping[str, float]], first: str, second: str, clusters: Mapping[str, str], planned: int
) -> Comparison:
    return compare(values[first], values[second], clusters, planned, bounds=SHARE)


def _p(value: float | None) -> str:
    if value is None:
        return "?"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
