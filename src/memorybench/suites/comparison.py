"""Compares subjects case by case: the sides of `memorybench compare`, or each provider with each baseline of a run."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isclose
from typing import Any, Literal

from msgspec import Struct
from pydantic import ConfigDict

from memorybench.core.measures import Measure, Metric
from memorybench.core.records import Record
from memorybench.core.report_sections import DECIMALS, Difference
from memorybench.core.trials import Outcome
from memorybench.metrics.comparison import Comparison, compare, compare_pooled, holm
from memorybench.metrics.intervals import SHARE, UNBOUNDED
from memorybench.metrics.rates import Total, mean_row

HEADLINES = ("accuracy", "rubric_score", "answer_f1", "recall@5")
"""The measures that can be the headline of a table, the preferred one first."""
MODEL_MARK = " + "
"""The separator in a subject's name between the memory and the answering model, in a run with several models."""
_MOST_GROUPS = 50
"""Cases are not grouped by a label that has more values than this, such as a label that differs in each case."""
Result = Literal["win", "loss", "tie"]


class CaseScores(Struct, frozen=True):
    """The scores of one subject on one case, averaged over the repeats of the case."""

    case_id: str
    variant: str
    cluster: str
    labels: Mapping[str, str]
    asked: str
    rows: Mapping[str, tuple[float, ...]]
    """By metric name: the numbers of the case that the metric needs. A metric without a value for it is absent."""

    @classmethod
    def of(cls, repeats: Sequence[Outcome], metrics: Sequence[Metric]) -> "CaseScores":
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
    """The measure of the first side, computed from this case alone; None if it is undefined."""
    second: float | None
    result: Result
    """`win` if the first side is better, `loss` if it is worse, `tie` if both are equal."""


class Group(Record):
    """The cases that have the same value of a label, with the measure of each side on them."""

    label: str
    value: str
    n: int
    first: float | None
    second: float | None
    wins: int
    losses: int
    ties: int


class Pair(Record):
    """Two subjects compared by one measure. Differences are first minus second."""

    benchmark: str = ""
    first: str
    second: str
    first_run: str = ""
    second_run: str = ""
    measure: str
    unit: str = ""
    higher_is_better: bool = True
    first_value: float | None = None
    """The measure of the first subject on the cases that both have; on all its own cases if they share none."""
    second_value: float | None = None
    comparison: Comparison
    tests: int = 1
    """The number of tests that the p-value is adjusted for, by Holm's method; 1 if it is not adjusted."""
    only_first: int = 0
    """The number of cases that only the first subject has a value for. They are not compared."""
    only_second: int = 0
    wins: int = 0
    """The number of cases in which the first subject is better."""
    losses: int = 0
    ties: int = 0
    groups: tuple[Group, ...] = ()
    cases: tuple[ComparedCase, ...] = ()
    """The compared cases; in the JSON of `compare`, only those that --only selects."""

    @property
    def names(self) -> tuple[str, str]:
        """The names of the two sides: the subjects, or the runs if both have the same subject."""
        if self.first == self.second and self.first_run != self.second_run:
            return self.first_run, self.second_run
        return self.first, self.second

    @property
    def correction(self) -> str:
        """How the p-value was adjusted, such as ` (Holm, 3 tests)`; empty for a single test."""
        return f" (Holm, {self.tests} tests)" if self.tests > 1 else ""

    @property
    def loss(self) -> float | None:
        """How much worse the first subject is than the second; negative if it is better, None if unknown."""
        difference = self.comparison.difference
        return None if difference is None else -difference if self.higher_is_better else difference

    def sentence(self) -> str:
        """Return the result in words: who is better and by how much, or that there is no significant difference."""
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
        if result.p is None:
            return f"{first} and {second}: {better} is ahead in {self.measure} by {gap}, {statistics}; not tested."
        more = f" A difference of this size needs about {result.needed:,} questions." if result.needed else ""
        return (
            f"{first} and {second}: no significant difference in {self.measure}; {better} is ahead by {gap},"
            f" {statistics}.{more}"
        )

    def cell(self) -> Difference:
        result = self.comparison
        return Difference(result.difference, result.low, result.high, result.significant, self.unit)

    def measured(self, value: float | None) -> Measure:
        """Return a value of this measure as a Measure, for formatting."""
        return Measure(name=self.measure, value=value, n=self.comparison.n, planned=self.comparison.n, unit=self.unit)

    def old_document(self) -> dict[str, Any]:
        """Return the JSON of `results --compare`. Its old keys `found` and `tells_apart` are kept for one release."""
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
    """Compare two subjects by one measure, on the cases that both have a value for.

    `first` and `second` are the scores by case. `names` are the two subjects, `runs` their runs.
    """
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
    """Return the keys of the cases that have a value.

    If the measure over all cases is undefined, such as the recall of a provider without sources, return no keys.
    """
    keys = [key for key, case in cases.items() if metric.name in case.rows]
    whole = _measure(metric, cases, keys)
    return set() if whole.value is None else {key for key in keys if cases[key].rows[metric.name]}


def _measure(metric: Metric, cases: Mapping[str, CaseScores], keys: Sequence[str]) -> Measure:
    return metric.measure(
        [cases[key].rows[metric.name] for key in keys], [cases[key].cluster for key in keys], len(keys)
    )


def adjust(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the comparisons, with their p-values adjusted by Holm's method for all these comparisons together."""
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
    """Compare the subjects case by case if the measure is a mean, or by summed counts if it is a pooled share.

    A total, and any other measure, gets a difference, but no p-value.
    """
    one, other = values[0].value, values[1].value
    if one is None or other is None or not rows:
        return Comparison(n=0, planned=planned, difference=None)
    if isinstance(metric, Total):
        return Comparison(n=len(rows), planned=planned, difference=one - other)
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
    """Count wins, losses and ties per value of each label. Labels with one value, or one per case, are skipped."""
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


def headline_choices(metrics: Sequence[Metric], main: Collection[str]) -> list[tuple[Metric, ...]]:
    """Return the measures by which the providers of a run are compared with its baselines.

    Each tuple stands for one comparison, by its first measure that both subjects have a value of. `main` are the names
    of the suite's main measures: they are in one tuple if all of them can be the headline of a table; otherwise each is
    in its own. Only means of shares can be compared here.
    """
    found = {metric.name: metric for metric in metrics if getattr(metric, "is_share", False)}
    shares = [found[name] for name in main if name in found and not hasattr(found[name], "statistic")]
    return [tuple(shares)] if set(main) <= set(HEADLINES) else [(metric,) for metric in shares]


class HeadlineScores:
    """Collects the scores of a run's headline measures from a stream of outcomes that other code reads."""

    def __init__(self, choices: Sequence[tuple[Metric, ...]]) -> None:
        """Take measures as `headline_choices` returns them."""
        self._choices = choices
        self._metrics = [metric for choice in choices for metric in choice]
        self._scores: dict[tuple[str, str, str], dict[str, list[float]]] = {}
        self._clusters: dict[str, dict[str, str]] = {}
        """By benchmark: the cluster of each case. Two benchmarks may have cases with the same id."""
        self._baselines: set[str] = set()
        self._order: dict[tuple[str, str], None] = {}

    def watch(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """Yield the outcomes unchanged, and record the scores of each."""
        for outcome in outcomes:
            trial = outcome.trial
            self._order.setdefault((trial.benchmark, trial.subject.name))
            self._clusters.setdefault(trial.benchmark, {})[trial.case_id] = trial.cluster
            if trial.subject.role == "baseline":
                self._baselines.add(trial.subject.name)
            for metric in self._metrics:
                row = metric.read(outcome)
                if row:
                    own = self._scores.setdefault((trial.benchmark, trial.subject.name, metric.name), {})
                    own.setdefault(trial.case_id, []).append(row[0])
            yield outcome

    def baseline_differences(self, undefined: Collection[tuple[str, str, str]] = ()) -> tuple[Pair, ...]:
        """Compare each provider with each baseline by the first measure of each choice that both have.

        `undefined` are benchmark, subject and name of measures without a value, although some cases have a score, such
        as the recall of a provider that reports no sources. In a run with several models, both must have the same
        model. The p-values of all comparisons are adjusted together.
        """
        values = {  # the mean of the repeats of each case, because a comparison counts each case once
            key: {case: fsum(repeats) / len(repeats) for case, repeats in own.items()}
            for key, own in self._scores.items()
            if key not in undefined
        }
        pairs = []
        for benchmark, provider in self._order:
            for other, baseline in self._order:
                if provider in self._baselines or baseline not in self._baselines or other != benchmark:
                    continue
                if provider.partition(MODEL_MARK)[2] != baseline.partition(MODEL_MARK)[2]:
                    continue  # a difference between memories, not between models
                both = (provider, baseline)
                for choice in self._choices:
                    metric = next((m for m in choice if all((benchmark, n, m.name) in values for n in both)), None)
                    if metric is not None:
                        pairs.append((benchmark, provider, baseline, metric))
        results = holm(
            [
                compare(
                    values[benchmark, provider, metric.name],
                    values[benchmark, baseline, metric.name],
                    self._clusters[benchmark],
                    len(values[benchmark, provider, metric.name]),
                    bounds=SHARE,
                )
                for benchmark, provider, baseline, metric in pairs
            ]
        )
        return tuple(
            Pair(
                benchmark=benchmark,
                first=provider,
                second=baseline,
                measure=metric.name,
                higher_is_better=getattr(metric, "higher_is_better", True),
                comparison=result,
            )
            for (benchmark, provider, baseline, metric), result in zip(pairs, results, strict=True)
        )


def format_p(value: float) -> str:
    """Format a p-value, such as `= 0.042` or `< 0.001`."""
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"
