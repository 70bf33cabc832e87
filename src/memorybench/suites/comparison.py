"""Compares subjects case by case: the sides of `memorybench compare`, or each provider with each baseline of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isclose
from typing import Any, Literal

from pydantic import ConfigDict

from memorybench.core.measures import Measure, Metric
from memorybench.core.records import Record
from memorybench.core.report_sections import DECIMALS, Difference
from memorybench.core.trials import Outcome
from memorybench.metrics.comparison import Comparison, compare, compare_pooled, holm
from memorybench.metrics.intervals import SHARE, UNBOUNDED
from memorybench.metrics.rates import mean_row

HEADLINES = ("accuracy", "rubric_score", "answer_f1", "recall@5")
"""The measures that a table leads with, the preferred one first."""
MODEL_MARK = " + "
"""Stands between the names of a memory and of the model that reads it, in a run with several models."""
_SCORES = {"accuracy": "correct"}
"""Measures whose score has another name."""
_MOST_GROUPS = 50
"""A label with more values than this, such as a name of each case, is not a way to group cases."""
Result = Literal["win", "loss", "tie"]


@dataclass(frozen=True, slots=True)
class CaseScores:
    """What a comparison reads from the outcome of one case, or from those of its repeats."""

    case_id: str
    variant: str
    cluster: str
    labels: Mapping[str, str]
    asked: str
    rows: Mapping[str, tuple[float, ...]]
    """By metric: the row that it reads. A metric without a value for this case is absent."""

    @classmethod
    def of(cls, repeats: Sequence[Outcome], metrics: Sequence[Metric]) -> CaseScores:
        trial = repeats[0].trial
        rows = {metric.name: row for metric in metrics if (row := mean_row(map(metric.read, repeats))) is not None}
        return cls(trial.case_id, trial.variant, trial.cluster, trial.labels, repeats[0].shown.asked, rows)


@dataclass(frozen=True, slots=True, kw_only=True)  # a Record takes seven times the memory, and runs have many cases
class ComparedCase:
    """One case that both sides of a comparison have."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    case_id: str
    variant: str = ""
    labels: Mapping[str, str]
    question: str
    first: float | None
    """The measure of this case alone; None where it is undefined."""
    second: float | None
    result: Result
    """Whether the first side is better, worse or equal."""


class Group(Record):
    """The cases that share a label."""

    label: str
    value: str
    n: int
    first: float | None
    second: float | None
    wins: int
    losses: int
    ties: int


class Pair(Record):
    """Two subjects compared by one measure: first minus second."""

    benchmark: str = ""
    first: str
    second: str
    first_run: str = ""
    second_run: str = ""
    measure: str
    unit: str = ""
    higher_is_better: bool = True
    first_value: float | None = None
    """The measure of the first subject on the cases that both have, or on its own if there are none."""
    second_value: float | None = None
    comparison: Comparison
    tests: int = 1
    """How many tests the p-value is adjusted for, by Holm's method."""
    only_first: int = 0
    """Cases with a value of the first subject only; they are left out."""
    only_second: int = 0
    wins: int = 0
    """Cases in which the first subject is better."""
    losses: int = 0
    ties: int = 0
    groups: tuple[Group, ...] = ()
    cases: tuple[ComparedCase, ...] = ()
    """All cases; in the JSON of `compare`, those that --only selects."""

    @property
    def names(self) -> tuple[str, str]:
        """What to call the sides: by subject, or by run where the subject is the same."""
        if self.first == self.second and self.first_run != self.second_run:
            return self.first_run, self.second_run
        return self.first, self.second

    @property
    def correction(self) -> str:
        """How the p-value is adjusted, in brackets; "" for a single test."""
        return f" (Holm, {self.tests} tests)" if self.tests > 1 else ""

    @property
    def loss(self) -> float | None:
        """By how much the first subject is worse; negative where it is better."""
        difference = self.comparison.difference
        return None if difference is None else -difference if self.higher_is_better else difference

    def sentence(self) -> str:
        """The result in words: who is better and by how much, or that there is no significant difference."""
        result, (first, second) = self.comparison, self.names
        if result.difference is None:
            return f"{first} and {second}: no question has a value of {self.measure} for both."
        ahead = (result.difference >= 0) == self.higher_is_better
        better, sign = (first, 1) if ahead else (second, -1)
        sign = sign if self.higher_is_better else -sign
        amount = self.amount(abs(result.difference))
        gap = amount
        if result.low is not None and result.high is not None:
            low, high = sorted((sign * result.low, sign * result.high))
            gap += f" [{self.amount(low, unit=False)}, {self.amount(high, unit=False)}]"
        statistics = f"n = {result.n}"
        if result.adjusted_p is not None:
            statistics = f"p {format_p(result.adjusted_p)}{self.correction}, {statistics}"
        if result.significant:
            return f"{better} is better in {self.measure} by {gap}, {statistics}."
        if amount == self.amount(0):
            return f"{first} and {second}: no difference in {self.measure}, {statistics}."
        more = f" A difference of this size needs about {result.needed:,} questions." if result.needed else ""
        return (
            f"{first} and {second}: no significant difference in {self.measure}; {better} is ahead by {gap},"
            f" {statistics}.{more}"
        )

    def cell(self) -> Difference:
        result = self.comparison
        return Difference(result.difference, result.low, result.high, result.significant, self.unit)

    def measured(self, value: float | None) -> Measure:
        """A value of this measure, to be formatted."""
        return Measure(name=self.measure, value=value, n=self.comparison.n, planned=self.comparison.n, unit=self.unit)

    def old_document(self) -> dict[str, Any]:
        """The JSON of `results --compare`; `found` and `tells_apart` are old names, kept for one release."""
        fields = self.model_dump(mode="json", exclude={"cases"})
        comparison = {**fields["comparison"], "tells_apart": self.comparison.significant}
        return {**fields, "comparison": comparison, "found": comparison}

    def amount(self, difference: float, *, unit: bool = True) -> str:
        number = f"{difference:,.{DECIMALS.get(self.unit, 1)}f}" if self.unit else f"{100 * difference:.1f}"
        return f"{number} {self.unit or 'points'}" if unit else number


def compare_measure(
    metric: Metric,
    first: Mapping[str, CaseScores],
    second: Mapping[str, CaseScores],
    *,
    benchmark: str,
    names: tuple[str, str],
    runs: tuple[str, str] = ("", ""),
) -> Pair:
    """Compare two subjects by one measure, on the cases that both have a value for."""
    own, other = _valued(metric, first), _valued(metric, second)
    keys = sorted(own & other)
    rows = [(first[key].rows[metric.name], second[key].rows[metric.name]) for key in keys]
    groups = [first[key].cluster for key in keys]
    values = [_measure(metric, cases, keys or sorted(valued)) for cases, valued in ((first, own), (second, other))]
    cases = tuple(_compare_case(metric, first[key], row, values[0]) for key, row in zip(keys, rows, strict=True))
    results = [case.result for case in cases]
    return Pair(
        benchmark=benchmark,
        first=names[0],
        second=names[1],
        first_run=runs[0],
        second_run=runs[1],
        measure=metric.name,
        unit=values[0].unit,
        higher_is_better=values[0].higher_is_better,
        first_value=values[0].value,
        second_value=values[1].value,
        comparison=_compare_rows(metric, keys, rows, groups, values, len(own | other)),
        only_first=len(own - other),
        only_second=len(other - own),
        wins=results.count("win"),
        losses=results.count("loss"),
        ties=results.count("tie"),
        groups=_group(metric, cases, rows, groups),
        cases=cases,
    )


def _valued(metric: Metric, cases: Mapping[str, CaseScores]) -> set[str]:
    """The cases with a value; none where the whole has none, such as the recall of a provider without sources."""
    keys = [key for key, case in cases.items() if metric.name in case.rows]
    whole = _measure(metric, cases, keys)
    return set() if whole.value is None else {key for key in keys if cases[key].rows[metric.name]}


def _measure(metric: Metric, cases: Mapping[str, CaseScores], keys: Sequence[str]) -> Measure:
    return metric.measure(
        [cases[key].rows[metric.name] for key in keys], [cases[key].cluster for key in keys], len(keys)
    )


def adjust(pairs: Sequence[Pair]) -> list[Pair]:
    """Adjust the p-values for all these comparisons together."""
    results = holm([pair.comparison for pair in pairs])
    tests = sum(result.p is not None for result in results)
    return [
        pair.model_copy(update={"comparison": result, "tests": max(tests, 1)})
        for pair, result in zip(pairs, results, strict=True)
    ]


def _compare_rows(
    metric: Metric,
    keys: Sequence[str],
    rows: Sequence[tuple[tuple[float, ...], tuple[float, ...]]],
    groups: Sequence[str],
    values: Sequence[Measure],
    planned: int,
) -> Comparison:
    """A mean is compared by the cases' values, a pooled share by its counts. Any other measure gets no p-value."""
    one, other = values[0].value, values[1].value
    if one is None or other is None or not rows:
        return Comparison(n=0, planned=planned, difference=None)
    clusters = dict(zip(keys, groups, strict=True))
    first, second = ({key: row[side] for key, row in zip(keys, rows, strict=True)} for side in (0, 1))
    statistic = getattr(metric, "statistic", None)
    if statistic is not None:
        return compare_pooled(first, second, clusters, planned, statistic)
    means = [fsum(row[side][0] for row in rows) / len(rows) for side in (0, 1)]
    if not all(isclose(mean, value, abs_tol=1e-12) for mean, value in zip(means, (one, other), strict=True)):
        return Comparison(n=len(rows), planned=planned, difference=one - other)
    is_share = not values[0].unit and all(0 <= row[0] <= 1 for pair in rows for row in pair)
    return compare(
        {key: row[0] for key, row in first.items()},
        {key: row[0] for key, row in second.items()},
        clusters,
        planned,
        bounds=SHARE if is_share else UNBOUNDED,
    )


def _compare_case(
    metric: Metric, case: CaseScores, rows: tuple[tuple[float, ...], tuple[float, ...]], measure: Measure
) -> ComparedCase:
    statistic = getattr(metric, "statistic", None) or (lambda row: row[0])
    first, second = statistic(rows[0]), statistic(rows[1])
    result: Result = "tie"
    if first is not None and second is not None and first != second:
        result = "win" if (first > second) == measure.higher_is_better else "loss"
    return ComparedCase(
        case_id=case.case_id,
        variant=case.variant,
        labels=case.labels,
        question=case.asked,
        first=first,
        second=second,
        result=result,
    )


def _group(
    metric: Metric,
    cases: Sequence[ComparedCase],
    rows: Sequence[tuple[tuple[float, ...], tuple[float, ...]]],
    clusters: Sequence[str],
) -> tuple[Group, ...]:
    """Count the results by each label that has more than one value and fewer than the cases."""
    members: dict[str, dict[str, list[int]]] = {}
    for place, case in enumerate(cases):
        for label, value in case.labels.items():
            members.setdefault(label, {}).setdefault(value, []).append(place)
    groups = []
    for label, by_value in members.items():
        if not 1 < len(by_value) <= min(_MOST_GROUPS, len(cases) - 1):
            continue
        for value, places in by_value.items():
            results = [cases[place].result for place in places]
            first, second = (
                metric.measure([rows[place][side] for place in places], [clusters[i] for i in places], len(places))
                for side in (0, 1)
            )
            groups.append(
                Group(
                    label=label,
                    value=value,
                    n=len(places),
                    first=first.value,
                    second=second.value,
                    wins=results.count("win"),
                    losses=results.count("loss"),
                    ties=results.count("tie"),
                )
            )
    return tuple(groups)


def mean_by_case(scores: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The mean of the repeats of each case: they are one item of a comparison, not several."""
    return {case: own[0] if len(own) == 1 else fsum(own) / len(own) for case, own in scores.items()}


class HeadlineScores:
    """The headline scores of a run, taken from its outcomes while others read them."""

    def __init__(self) -> None:
        self._scores: dict[tuple[str, str, str], dict[str, list[float]]] = {}
        self._clusters: dict[str, str] = {}
        self._baselines: set[str] = set()
        self._order: dict[tuple[str, str], None] = {}

    def watch(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """Yield the outcomes after taking their scores."""
        for outcome in outcomes:
            trial = outcome.trial
            self._order.setdefault((trial.benchmark, trial.subject.name))
            self._clusters[trial.case_id] = trial.cluster
            if trial.subject.role == "baseline":
                self._baselines.add(trial.subject.name)
            for name in HEADLINES:
                value = outcome.score(_SCORES.get(name, name))
                if value is not None:
                    own = self._scores.setdefault((trial.benchmark, trial.subject.name, name), {})
                    own.setdefault(trial.case_id, []).append(value)
            yield outcome

    def baseline_differences(self) -> tuple[Pair, ...]:
        """Each provider minus each baseline in the first headline measure of both; p-values adjusted together."""
        values = {key: mean_by_case(own) for key, own in self._scores.items()}
        pairs = []
        for benchmark, provider in self._order:
            for other, baseline in self._order:
                if provider in self._baselines or baseline not in self._baselines or other != benchmark:
                    continue
                if provider.partition(MODEL_MARK)[2] != baseline.partition(MODEL_MARK)[2]:
                    continue  # a difference between memories, not between models
                both = (provider, baseline)
                measure = next((n for n in HEADLINES if all((benchmark, one, n) in values for one in both)), None)
                if measure is not None:
                    pairs.append((benchmark, provider, baseline, measure))
        results = holm(
            [
                compare(
                    values[benchmark, provider, name],
                    values[benchmark, baseline, name],
                    self._clusters,
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


def format_p(value: float) -> str:
    """`= 0.042`, `< 0.001`."""
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"
