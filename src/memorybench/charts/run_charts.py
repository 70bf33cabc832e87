"""The charts of a run, of a comparison and of several runs.

The functions return None if there is no data for the chart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from memorybench.core.measures import Measure
from memorybench.journal.rows import Run
from memorybench.journal.run_reader import Stage
from memorybench.reporting import formatting
from memorybench.suites.comparison import HEADLINES, Pair
from memorybench.suites.comparison_tables import type_label
from memorybench.suites.failures import FAILURE_REASONS, TYPE_LABELS, failure_reason
from memorybench.suites.registry import suite_of
from memorybench.suites.report_parts import STEP_LABELS
from memorybench.suites.run_comparison import RunComparison
from memorybench.suites.run_list import list_runs
from memorybench.suites.setting_differences import changed_settings
from memorybench.suites.stored_run import StoredRun
from memorybench.suites.summary import Result, headline, percentile

from . import specs
from .frontier import frontier_spec
from .parts import Change, Estimate, Spec, Spread
from .slope import slope_spec

_IDEAL = "oracle"
_MOST_PANELS = 12
_MOST_ROWS = 40
_MOST_RUNS = 20
_STEPS = ("add", "settle", "wait_until_searchable", "search", "answer", "judge")


class RunCharts(Struct, frozen=True, dict=True):
    """The data of a run for its charts. Each property is computed once."""

    stored: StoredRun

    @cached_property
    def measures(self) -> Mapping[str, Sequence[str]]:
        """The names of the measures to show, by benchmark. In suites that compare providers, only the headline."""
        main = suite_of(self.stored.run).main_measures(self.stored)
        overall = {name: self.stored.summary.overall(name) for name in self.stored.summary.benchmarks}
        if set(main) <= set(HEADLINES):
            return {name: (headline(results),) for name, results in overall.items()}
        return dict.fromkeys(overall, main)

    @cached_property
    def baselines(self) -> frozenset[str]:
        return frozenset(pair.second for pair in self.stored.summary.differences)

    @cached_property
    def failures(self) -> Mapping[tuple[str, str], int]:
        """The number of failed trials by provider and reason, without baselines."""
        counts: Counter[tuple[str, str]] = Counter()
        for outcome in self.stored.outcomes():
            reason = failure_reason(outcome)
            if reason is not None and outcome.trial.subject.role != "baseline":
                counts[outcome.trial.subject.name, reason] += 1
        return counts

    def estimate(self, result: Result, measure: str, name: str) -> Estimate | None:
        found = estimate(result.measure(measure), name, result.subject in self.baselines)
        return found and replace(found, is_ideal=result.subject == _IDEAL)


def estimate(measure: Measure | None, name: str, is_baseline: bool = False) -> Estimate | None:
    """Return a measure as an Estimate; None if it has no value or is not a share from 0 to 1."""
    if measure is None or measure.value is None or measure.unit or not 0 <= measure.value <= 1:
        return None
    text = formatting.with_interval(measure)
    return Estimate(name, measure.value, measure.low, measure.high, text, is_baseline)


def value_range(measure: Measure | None, name: str) -> Estimate | None:
    """Return the range that undecided verdicts leave for a share; None if the share has a value or no range."""
    if measure is None or measure.value is not None or measure.unit or measure.low is None or measure.high is None:
        return None
    middle = (measure.low + measure.high) / 2
    return Estimate(name, middle, measure.low, measure.high, formatting.value(measure), is_range=True)


def forest(charts: RunCharts) -> Spec | None:
    panels: dict[str, list[Estimate]] = {}
    for result in _overall(charts):
        names = charts.measures[result.benchmark]
        for name in names:
            one = len(names) == 1
            title = f"{result.benchmark}: {name} [95%]" if one else f"{result.benchmark} × {result.subject} [95%]"
            label = result.subject if one else name
            found = charts.estimate(result, name, label) or value_range(result.measure(name), label)
            if found is not None:
                panels.setdefault(title, []).append(found)
    panels = dict(list(panels.items())[:_MOST_PANELS])
    return specs.forest(panels) if panels else None


def heat_map(charts: RunCharts) -> Spec | None:
    panels: dict[str, Mapping[tuple[str, str], Estimate]] = {}
    for benchmark, names in charts.measures.items():
        grouped = charts.stored.summary.grouped(benchmark)
        for label in _labels(grouped):
            found = _cells(charts, [result for result in grouped if label in result.group], label, names)
            # a measure that only one group has makes a diagonal, which the forest plot shows already
            if any(len(cells) > len({row for row, _ in cells}) or len(names) == 1 for cells in found.values()):
                panels |= {f"{title} by {label.replace('_', ' ')}": cells for title, cells in found.items()}
                break
    panels = dict(list(panels.items())[:_MOST_PANELS])
    return specs.heat_map(panels) if panels else None


def _cells(
    charts: RunCharts, results: Sequence[Result], label: str, names: Sequence[str]
) -> dict[str, dict[tuple[str, str], Estimate]]:
    """Return the cells of heat maps by title. Columns are providers or, with several measures, the measures."""
    panels: dict[str, dict[tuple[str, str], Estimate]] = {}
    for result in results:
        for name in names:
            found = charts.estimate(result, name, "")
            if found is not None:
                title = f"{result.benchmark}: {name}" if len(names) == 1 else f"{result.benchmark} × {result.subject}"
                column = result.subject if len(names) == 1 else name
                cell = replace(found, text=formatting.share(found.value))
                panels.setdefault(title, {})[result.group[label], column] = cell
    return panels


def score_cost(charts: RunCharts) -> Spec | None:
    """Return the chart of score against cost; None if no provider has a cost above 0.

    Providers of unknown cost are left out, and the chart names them.
    """
    of_benchmarks = charts.stored.summary.question_costs
    if not any(cost for costs in of_benchmarks.values() for cost in costs.values()):
        return None
    return _frontier(charts, of_benchmarks, "dollars per question", "$~g", formatting.about)


def score_latency(charts: RunCharts) -> Spec | None:
    searches = {stage.subject: stage for stage in charts.stored.summary.stages if stage.name == "search"}
    medians = {subject: percentile(stage.seconds, 50) for subject, stage in searches.items()}
    values = {subject: 1000 * value for subject, value in medians.items() if value is not None}
    return _frontier(
        charts, dict.fromkeys(charts.measures, values), "milliseconds per search (median)", "~s", "{:,.2g} ms".format
    )


def score_context(charts: RunCharts) -> Spec | None:
    values: dict[str, dict[str, float]] = {}
    for result in _overall(charts):
        tokens = result.measure("context_tokens")
        if tokens is not None and tokens.value is not None:
            values.setdefault(result.benchmark, {})[result.subject] = tokens.value
    return _frontier(charts, values, "context tokens per question", "~s", "{:,.0f}".format)


def latency(charts: RunCharts) -> Spec | None:
    panels: dict[str, list[Spread]] = {}
    stages = [stage for stage in charts.stored.summary.stages if stage.name in _STEPS]
    for stage in sorted(stages, key=lambda stage: _STEPS.index(stage.name)):
        spread = _spread(stage)
        if spread is not None:
            panels.setdefault(STEP_LABELS.get(stage.name, stage.name), []).append(spread)
    return specs.latency(panels) if panels else None


def failures(charts: RunCharts) -> Spec | None:
    return failure_chart(charts.failures)


def failure_chart(counts: Mapping[tuple[str, str], int]) -> Spec | None:
    """Return the chart of failures by provider and reason, without skipped trials; None if there are no failures."""
    drawn = {key: count for key, count in counts.items() if key[1] != "skipped"}
    return specs.failures(drawn, tuple(FAILURE_REASONS)) if drawn else None


def trend(charts: RunCharts) -> Spec | None:
    """Return the chart of the measures of the run's subjects over the newest runs of its folder."""
    rows = list_runs([charts.stored.folder], suites=[charts.stored.run.suite])[:_MOST_RUNS]
    panels: dict[str, list[Estimate]] = {}
    for result in _overall(charts):
        if result.subject in charts.baselines:
            continue
        for name in charts.measures[result.benchmark]:
            found = [
                (row.run, one)
                for row in reversed(rows)
                for one in row.measures.get((result.benchmark, result.subject), ())
                if one.name == name
            ]
            own = _over_runs(found, result.subject)
            if len(own) > 1:
                panels[f"{result.benchmark} × {result.subject}: {name}"] = own
    panels = dict(list(panels.items())[:_MOST_PANELS])
    return specs.trend(panels) if panels else None


def trend_of(points: Sequence[tuple[Run, Measure]], subject: str, title: str) -> Spec | None:
    """Return the chart of one share of a subject over the newest of these runs, which are oldest first.

    None if fewer than two of them have the share.
    """
    found = _over_runs(points[-_MOST_RUNS:], subject)
    return specs.trend({title: found}) if len(found) > 1 else None


def _over_runs(points: Iterable[tuple[Run, Measure]], subject: str) -> list[Estimate]:
    """Return an Estimate per run whose measure has a value.

    Its `line` is that of the run before, unless settings or questions have changed.
    """
    found: list[Estimate] = []
    line, before = 0, None
    for run, measure in points:
        one = estimate(measure, f"{run.id}\n{run.created[:10]}")
        if one is None:
            continue
        line += before is not None and bool(changed_settings(before, run, subject))
        found.append(replace(one, text=formatting.share(one.value), line=line))
        before = run
    return found


CHARTS: Mapping[str, tuple[str, Callable[[RunCharts], Spec | None]]] = {
    "forest": ("the main measure of each provider with its interval", forest),
    "heat-map": ("the main measure by question type", heat_map),
    "score-cost": ("the main measure against dollars per question", score_cost),
    "score-latency": ("the main measure against the time of a search", score_latency),
    "score-context": ("the main measure against context tokens", score_context),
    "latency": ("how long steps take: median, middle half, 5th to 95th percentile", latency),
    "failures": ("failures of each provider by reason", failures),
    "trend": ("the main measure over the runs of the results folder", trend),
}
"""The description and the function of each chart of one run, by name. `slope` is missing: it needs two sides."""
SLOPE = "two providers or runs by question type"


def slope(comparison: RunComparison) -> Spec | None:
    """Return the chart of the two best sides of a comparison, by the first measure that several question types have."""
    drawn = [pair for pair in comparison.comparisons if _slope(pair) is not None]
    if not drawn:
        return None
    pairs = [pair for pair in drawn if (pair.benchmark, pair.measure) == (drawn[0].benchmark, drawn[0].measure)]
    sign = 1 if drawn[0].higher_is_better else -1
    return _slope(max(pairs, key=lambda pair: sign * ((pair.first_value or 0.0) + (pair.second_value or 0.0))))


def _slope(pair: Pair) -> Spec | None:
    label = type_label(pair)
    changes = [
        Change(group.value, group.first, group.second)
        for group in pair.groups
        if group.label == label and group.first is not None and group.second is not None
    ]
    is_share = not pair.unit and all(0 <= value <= 1 for one in changes for value in (one.first, one.second))
    if label is None or len(changes) < 2 or not is_share:
        return None
    title = f"{pair.benchmark}: {pair.measure} by {label.replace('_', ' ')}"
    return slope_spec(*pair.names, changes, title)


def _overall(charts: RunCharts) -> list[Result]:
    return [result for result in charts.stored.summary.results if not result.group]


def _labels(grouped: Sequence[Result]) -> list[str]:
    """Return the names of labels with 2 to _MOST_ROWS values in these groups, those of TYPE_LABELS first."""
    values: dict[str, set[str]] = {}
    for result in grouped:
        for name, value in result.group.items():
            values.setdefault(name, set()).add(value)
    usable = [name for name, found in values.items() if 2 <= len(found) <= _MOST_ROWS]
    return [name for name in dict.fromkeys((*TYPE_LABELS, *usable)) if name in usable]


def _frontier(
    charts: RunCharts,
    costs: Mapping[str, Mapping[str, float | None]],
    x_title: str,
    x_format: str,
    cost_text: Callable[[float], str],
) -> Spec | None:
    """Return the chart of shares against `costs` for the first benchmark that has both for at least two providers.

    `costs` has a cost by benchmark and subject. Subjects whose cost is None are left out, and the chart names them.
    """
    for benchmark, names in charts.measures.items():
        points, left_out = [], []
        for result in charts.stored.summary.overall(benchmark):
            found = charts.estimate(result, names[0], result.subject)
            cost = costs.get(benchmark, {}).get(result.subject)
            if found is not None and cost is not None:
                points.append((cost, found))
            elif found is not None and result.subject in costs.get(benchmark, {}):
                left_out.append(result.subject)
        if len(points) > 1:
            note = f"left out, because a price is unknown: {', '.join(left_out)}" if left_out else ""
            return frontier_spec(points, x_title, f"{benchmark}: {names[0]}", x_format, note, cost_text)
    return None


def _spread(stage: Stage) -> Spread | None:
    seconds = [value for value in stage.seconds if value > 0]
    values = [value for percent in (5, 25, 50, 75, 95) if (value := percentile(seconds, percent)) is not None]
    if not values:
        return None
    p5, p25, p50, p75, p95 = values
    text = f"{formatting.seconds(p50)}, n {len(seconds):,}"
    return Spread(stage.subject, p5, p25, p50, p75, p95, text)
