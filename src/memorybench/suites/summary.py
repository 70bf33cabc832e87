"""Summarises the outcomes of a run, or of several runs that are shards of one spec."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field
from pydantic import Field

from memorybench.core.measures import Measure, Metric, Selective
from memorybench.core.reasons import Reasons
from memorybench.core.records import Record
from memorybench.core.spending import NOTHING, Spending
from memorybench.core.trials import STATUSES, Outcome, Trial
from memorybench.journal.rows import Fingerprint, Run, RunStatus
from memorybench.journal.run_reader import RunReader, Stage
from memorybench.metrics.rates import mean_row

from .comparison import HEADLINES, HeadlineScores, Pair, headline_choices
from .run_costs import RunCosts

_OF_THE_JUDGE = ("judge", "canary")
"""Steps whose cost is not counted as that of the provider, because they only measure."""
_KEPT_ROWS = 1000
"""Up to this many different rows of scores are shared, so that equal ones are one object: most are 0 or 1."""
NOTHING_SELECTED: Mapping[str, int] = MappingProxyType({})


class Result(Record):
    """The measures of one subject on one benchmark: over all trials, or over those with the label in `group`."""

    benchmark: str
    subject: str
    group: Mapping[str, str]
    measures: tuple[Measure, ...]

    def measure(self, name: str) -> Measure | None:
        return next((measure for measure in self.measures if measure.name == name), None)


class Failed(Record):
    """The failed trials of one subject on one benchmark."""

    benchmark: str
    subject: str
    failed: int
    reason: str
    """The message of the most frequent reason."""
    times: int
    """The number of trials that failed for that reason."""


class Summary(Record):
    run_id: str
    suite: str
    status: RunStatus
    counts: Mapping[str, int]
    """The number of planned trials (`planned`), and of trials in each of the five states.

    In a complete run, the numbers of the five states add up to `planned`.
    """
    results: tuple[Result, ...]
    failures: tuple[Failed, ...] = ()
    differences: tuple[Pair, ...] = ()
    """The comparisons of each provider with each baseline of the run."""
    samples: Mapping[str, Mapping[str, int]] = {}
    """By benchmark: how many cases and clusters the run has, and how many the benchmark has (`cases_available` …)."""
    stages: tuple[Stage, ...] = ()
    spent: Spending = NOTHING
    known_cost: float = 0.0
    """Dollars. Calls of unknown cost are not included."""
    calls_of_unknown_cost: int = 0
    question_costs: Mapping[str, Mapping[str, float | None]] = Field(default_factory=dict)
    """By benchmark and subject: dollars per scored trial, without the judge; None if a price is unknown."""
    possibly_charged_twice: int = 0
    possibly_spent: float = 0.0
    """Dollars that calls without a recorded reply may have cost. The budget counts them; `spent` does not."""
    notes: tuple[tuple[str, str], ...] = ()
    created: str = ""
    finished: str | None = None
    program: str = ""
    timing: str = ""
    """What durations include: "target" for the work of the called service only; "with queue" also waits, in runs of
    earlier versions."""
    spec: Mapping[str, Any] = Field(default_factory=dict)
    """The saved spec; for several shards, the values that are the same in all of them."""
    fingerprints: Mapping[str, Fingerprint] = Field(default_factory=dict)

    @property
    def pending(self) -> int:
        return self.counts["planned"] - sum(self.counts[status] for status in STATUSES)

    def overall(self, benchmark: str) -> list[Result]:
        return [result for result in self.results if result.benchmark == benchmark and not result.group]

    def grouped(self, benchmark: str) -> list[Result]:
        return [result for result in self.results if result.benchmark == benchmark and result.group]

    @property
    def benchmarks(self) -> list[str]:
        return list(dict.fromkeys(result.benchmark for result in self.results))


class _Accumulator(Struct):
    """Collects the numbers that metrics need from the outcomes of one result, without keeping the outcomes."""

    items: int = 0
    concerned: Counter[str] = field(default_factory=Counter)
    rows: dict[str, list[tuple[float, ...]]] = field(default_factory=dict)
    clusters: dict[str, list[str]] = field(default_factory=dict)

    def take(
        self, trial: Trial, cluster: str, rows: Mapping[str, tuple[float, ...]], selective: Sequence[Selective]
    ) -> None:
        """Add the numbers of one item: `rows` has them by metric."""
        self.items += 1
        for one in selective:
            self.concerned[one.name] += one.concerns(trial)
        for name, row in rows.items():
            self.rows.setdefault(name, []).append(row)
            self.clusters.setdefault(name, []).append(cluster)

    def measures(
        self,
        metrics: Sequence[Metric],
        selective: Sequence[Selective],
        planned: int,
        selected: Mapping[str, int],
        elsewhere: Iterable[str],
    ) -> tuple[Measure, ...]:
        """Return the measures. `elsewhere` are the names of metrics of other benchmarks, whose `planned` is 0 here."""
        concerned = {one.name: max(self.concerned[one.name], selected.get(one.name, 0)) for one in selective}
        concerned |= dict.fromkeys(elsewhere, 0)
        return tuple(
            metric.measure(
                self.rows.get(metric.name, []),
                self.clusters.get(metric.name, []),
                concerned.get(metric.name, planned),
            )
            for metric in metrics
        )


class _QuestionCosts(Struct):
    """Adds up the costs of each subject's trials. A step that several trials share counts once."""

    trials: Counter[tuple[str, str]] = field(default_factory=Counter)
    dollars: dict[tuple[str, str], float | None] = field(default_factory=dict)

    def watch(self, run_reader: RunReader, run: str, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """Yield the outcomes of a run unchanged, and add the costs of their steps."""
        paid = run_reader.paid_steps(run, leave_out=_OF_THE_JUDGE)
        counted: set[tuple[str, str, str]] = set()
        for outcome in outcomes:
            if paid and outcome.status == "scored":
                subject = (outcome.trial.benchmark, outcome.trial.subject.name)
                self.trials[subject] += 1
                total = self.dollars.setdefault(subject, 0.0)
                for key in outcome.steps:
                    if key in paid and (*subject, key) not in counted:
                        counted.add((*subject, key))
                        cost = paid[key]
                        total = None if cost is None or total is None else total + cost
                self.dollars[subject] = total
            yield outcome

    def averages(self) -> dict[str, dict[str, float | None]]:
        found: dict[str, dict[str, float | None]] = {}
        for (benchmark, subject), total in self.dollars.items():
            average = None if total is None else total / self.trials[benchmark, subject]
            found.setdefault(benchmark, {})[subject] = average
        return found


def _rows(repeats: Sequence[Outcome], metrics: Sequence[Metric]) -> dict[str, tuple[float, ...]]:
    """Return, by metric, the numbers it reads from the outcomes of one item: one outcome, or one per repeat."""
    rows = {}
    for metric in metrics:
        row = metric.read(repeats[0]) if len(repeats) == 1 else mean_row(map(metric.read, repeats))
        if row is not None:
            rows[metric.name] = row
    return rows


def measure(
    outcomes: Iterable[Outcome],
    metrics: Sequence[Metric],
    planned: Mapping[str, int],
    subjects: Sequence[str] = (),
    selected: Mapping[str, int] = NOTHING_SELECTED,
) -> tuple[Result, ...]:
    """Measure each subject on all trials, and on those with each label.

    Adjacent repeats of an item are averaged and count once. `planned` is the number of trials by benchmark, which may
    include pending ones. `selected` is the same number by selective metric, which applies to some trials only.
    `subjects` without an outcome get results without values.
    """
    groups: dict[tuple[str, str, tuple[str, str] | None], _Accumulator] = {
        (benchmark, subject, None): _Accumulator() for benchmark in planned for subject in subjects
    }
    selective = [metric for metric in metrics if isinstance(metric, Selective)]  # slow: once only
    measured_on = {metric.name: on for metric in metrics if (on := getattr(metric, "benchmarks", ()))}
    clusters: dict[str, str] = {}  # one object for equal names, and for equal rows: a run may have a million outcomes
    known_rows: dict[tuple[float, ...], tuple[float, ...]] = {}
    for (benchmark, subject, *_), same in groupby(outcomes, key=lambda outcome: outcome.trial.item):
        repeats = tuple(same)
        trial, rows = repeats[0].trial, _rows(repeats, metrics)
        if len(known_rows) < _KEPT_ROWS:
            known_rows.update((row, row) for row in rows.values() if row not in known_rows)
        rows = {name: known_rows.get(row, row) for name, row in rows.items()}
        cluster = clusters.setdefault(trial.cluster, trial.cluster)
        for group in (None, *trial.labels.items()):
            groups.setdefault((benchmark, subject, group), _Accumulator()).take(trial, cluster, rows, selective)
    return tuple(
        Result(
            benchmark=benchmark,
            subject=subject,
            group=dict([group]) if group else {},
            measures=one.measures(
                metrics,
                selective,
                one.items if group else max(one.items, planned.get(benchmark, 0)),
                NOTHING_SELECTED if group else selected,
                [name for name, on in measured_on.items() if benchmark not in on],
            ),
        )
        for (benchmark, subject, group), one in groups.items()
    )


def _counted(outcomes: Iterable[Outcome], totals: dict[str, int]) -> Iterator[Outcome]:
    """Yield the outcomes and count them by status."""
    for outcome in outcomes:
        totals[outcome.status] += 1
        yield outcome


def summarise(
    parts: Sequence[tuple[RunReader, Run]],
    metrics: Sequence[Metric],
    outcomes: Iterable[Iterable[Outcome]],
    main: Collection[str],
) -> Summary:
    """Summarise one run, or several shards of one run.

    `outcomes` are those of each shard, read once. `main` are the names of the suite's main measures.
    """
    runs = [run for _, run in parts]
    planned: Counter[str] = Counter()
    for run in runs:
        asked = run.spec.get("questions", {})
        planned.update({name: asked[name] for name in run.spec.get("benchmarks", asked) if name in asked})
    stages = [stage for run_reader, run in parts for stage in run_reader.stages(run.id)]
    costs = [RunCosts.of(run_reader, run) for run_reader, run in parts]
    headlines, question_costs = HeadlineScores(headline_choices(metrics, main)), _QuestionCosts()
    totals: dict[str, int] = dict.fromkeys(STATUSES, 0)
    watched = (
        question_costs.watch(run_reader, run.id, own) for (run_reader, run), own in zip(parts, outcomes, strict=True)
    )
    results = measure(
        headlines.watch(_counted(chain.from_iterable(watched), totals)),
        metrics,
        planned,
        subjects_of(runs[0]),
        sum((Counter(run.spec.get("selected", NOTHING_SELECTED)) for run in runs), Counter()),
    )
    undefined = {
        (result.benchmark, result.subject, measure.name)
        for result in results
        for measure in result.measures
        if not result.group and measure.value is None
    }
    return Summary.model_construct(  # validating what was just computed takes longer than computing it
        run_id=" + ".join(run.id for run in runs),
        suite=runs[0].suite,
        status=next((run.status for run in runs if run.status != "complete"), "complete"),
        counts={"planned": sum(run.planned for run in runs), **totals},
        results=results,
        samples={name: _sample(name, n, results, runs[0].spec) for name, n in planned.items()},
        failures=_failures(chain.from_iterable(one.failed_outcomes(run.id) for one, run in parts)),
        differences=headlines.baseline_differences(undefined),
        stages=_merged(stages),
        spent=sum((stage.spent for stage in stages), NOTHING),
        known_cost=sum(one.known_cost for one in costs),
        calls_of_unknown_cost=sum(one.calls_of_unknown_cost for one in costs),
        question_costs=question_costs.averages(),
        possibly_charged_twice=sum(one.possibly_charged_twice for one in costs),
        possibly_spent=sum(one.possibly_spent for one in costs),
        notes=tuple(note for run_reader, run in parts for note in run_reader.notes(run.id)),
        created=min(run.created for run in runs),
        finished=max((run.finished or "" for run in runs), default="") or None,
        program=", ".join(dict.fromkeys(run.program for run in runs)),
        timing=", ".join(dict.fromkeys(run.spec.get("timing", "with queue") for run in runs)),
        spec={key: value for key, value in runs[0].spec.items() if all(run.spec.get(key) == value for run in runs)},
        fingerprints=runs[0].fingerprints,
    )


def _sample(benchmark: str, cases: int, results: Sequence[Result], spec: Mapping[str, Any]) -> dict[str, int]:
    """Return how many cases and clusters the run has of a benchmark, and how many the benchmark has.

    Clusters are counted in the outcomes, because shards may have the same ones. The numbers of the benchmark were saved
    with the run.
    """
    saved = spec.get("samples", {}).get(benchmark, {})
    counted = [m.clusters for one in results if one.benchmark == benchmark and not one.group for m in one.measures]
    return {**saved, "cases": cases, "clusters": max(counted, default=0)}


def _failures(outcomes: Iterable[Outcome]) -> tuple[Failed, ...]:
    failed: Counter[tuple[str, str]] = Counter()
    reasons: dict[tuple[str, str], Reasons] = {}
    for outcome in outcomes:
        key = (outcome.trial.benchmark, outcome.trial.subject.name)
        failed[key] += 1
        reasons.setdefault(key, Reasons()).add(outcome.failure.message if outcome.failure else "")
    found = {key: one.most_frequent for key, one in reasons.items()}
    return tuple(
        Failed(benchmark=key[0], subject=key[1], failed=failed[key], reason=reason, times=times)
        for key, (reason, times) in found.items()
    )


def subjects_of(run: Run) -> Sequence[str]:
    """Return the names of a run's subjects. A run of the suite bench saves them as `providers`."""
    names: Sequence[str] = run.spec.get("subjects", run.spec.get("providers", ()))
    return names


def headline(results: Sequence[Result]) -> str:
    """Return the first headline measure for which any of these results has a value or a range; else the last one."""
    measured = {
        one.name for result in results for one in result.measures if one.value is not None or one.low is not None
    }
    return next((name for name in HEADLINES if name in measured), HEADLINES[-1])


def percentile(ordered: Sequence[float], percent: float) -> float | None:
    """Return a percentile of sorted values, interpolated linearly; None if there are no values."""
    if not ordered:
        return None
    place = (len(ordered) - 1) * percent / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _merged(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Merge stages with the same name and subject, as shards have them."""
    grouped: dict[tuple[str, str], list[Stage]] = {}
    for stage in stages:
        grouped.setdefault((stage.name, stage.subject), []).append(stage)
    return tuple(
        Stage(
            name=name,
            subject=subject,
            steps=sum(stage.steps for stage in same),
            seconds=tuple(sorted(chain.from_iterable(stage.seconds for stage in same))),
            spent=sum((stage.spent for stage in same), NOTHING),
            reused=sum(stage.reused for stage in same),
        )
        for (name, subject), same in grouped.items()
    )
