"""The report of a run over recorded operations: measures, also by day and store, and what changed on the last day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from msgspec.structs import replace

from memorybench.core.measures import Metric
from memorybench.core.report_sections import Case, Cases, Notes, Report
from memorybench.core.trials import Outcome
from memorybench.journal.rows import Run
from memorybench.metrics.drift import drifts
from memorybench.metrics.intervals import cluster_sums
from memorybench.metrics.rates import Mean, Pooled, Rate, Total
from memorybench.suites import report_parts as sections
from memorybench.suites.extraction.measures import measures, ratio
from memorybench.suites.extraction.online import SHARES
from memorybench.suites.failures import failure_text
from memorybench.suites.judge_check import check_document, check_warnings, judge_checks
from memorybench.suites.stored_run import StoredRun

from .plan import DAY, FOUND, FOUND_ANY, JUDGED_COUNT, STORE, SUCCEEDED, USED, USED_COUNT, WRITTEN
from .spec import SEARCHES, WRITES

MEANINGS = {
    "used": "searches of which the reply uses a memory, of those with memories and a reply (judge)",
    "used_memories": "memories that the reply uses, of those that the judge read",
    "found_any": "searches that found something, of those that did not fail",
    "found": "memories per search",
    "precision": "facts written that the user stated, of all facts written (judge)",
    "recall": "facts that the user stated and that were written, of all facts stated (judge)",
    "f1": "harmonic mean of precision and recall",
    "keep_done": "old facts that a write left alone, of those that it should",
    "duplicates": "facts that repeat another",
    "written": "memories written per conversation",
    "succeeded": "searches or writes that did not fail",
}
CASE_NOUN = "operation"
RIGHT = "Right: the search or write did not fail, and no judge found it wrong."
MAIN_MEASURES = ("used", "found_any", "precision", "recall", "f1", "succeeded")
_JUDGED_WRITES = ("precision", "recall", "f1", "keep_done", "duplicates", "hallucinated", "undecided")


METRICS: tuple[Metric, ...] = (
    Rate("used", USED, benchmarks=(SEARCHES,)),
    Pooled("used_memories", (USED_COUNT, JUDGED_COUNT), ratio, benchmarks=(SEARCHES,)),
    Rate("found_any", FOUND_ANY, benchmarks=(SEARCHES,)),
    Mean("found", FOUND, unit="memories", benchmarks=(SEARCHES,)),
    *(
        replace(metric, benchmarks=(WRITES,))
        for metric in measures()
        if metric.name in _JUDGED_WRITES and isinstance(metric, Pooled | Total)
    ),
    Mean("written", WRITTEN, unit="memories", benchmarks=(WRITES,)),
    Rate("succeeded", SUCCEEDED),
)
_DRIFTING = {
    SEARCHES: {USED: "used", FOUND_ANY: "found_any", SUCCEEDED: "succeeded"},
    WRITES: {name: f"macro_{name}" for name in SHARES} | {SUCCEEDED: "succeeded"},
}
"""By kind of operation: the scores whose means are compared by day, each with the name of its mean in reports."""
_MAX_CASES = 15
_Value = tuple[str, float]
"""The trace id of an operation, and the value of one of its scores."""


def metrics(run: StoredRun) -> tuple[Metric, ...]:
    return METRICS


def facts(runs: Sequence[Run]) -> dict[str, str]:
    """Return the lines of the report's header: texts by title."""
    run, spec = runs[0], runs[0].spec
    return {
        "Run ID": run.id,
        "Operations": f"{', '.join(spec['subjects'])} ({run.planned})",
        "Judge": spec["judge"] or "none: use of memories and truth of writes are not measured",
        "Started": sections.started(run.created),
    }


def report(run: StoredRun) -> Report:
    summary, checks = run.summary, judge_checks(run, {})
    changes = last_day_lines(run.outcomes())
    return Report(
        title="Recorded operations on a memory",
        warnings=sections.warnings(summary),
        sections=(
            *check_warnings(checks),
            *sections.score_tables(
                summary, MEANINGS, (DAY, STORE), (*MAIN_MEASURES, "used_memories", "found", "written")
            ),
            *([Notes(tuple(changes))] if changes else []),
            *_failures(run.outcomes()),
            sections.provenance(facts(run.runs)),
            *sections.step_tables(summary),
            Notes((sections.accounting(summary),)),
        ),
        document={**sections.document(summary), **check_document(checks)},
    )


def last_day_lines(outcomes: Iterable[Outcome]) -> list[str]:
    """Return one line per measure that compares its mean on the last day with its mean on all earlier days.

    Searches and writes are compared separately. Empty if all operations are of one day.
    """
    by_day: dict[str, dict[str, dict[str, list[_Value]]]] = {kind: {} for kind in _DRIFTING}
    for outcome in outcomes:
        kind, day = outcome.trial.benchmark, outcome.trial.labels.get(DAY)
        for score, name in _DRIFTING.get(kind, {}).items():
            value = outcome.score(score)
            if day is not None and value is not None:
                by_day[kind].setdefault(day, {}).setdefault(name, []).append((outcome.trial.cluster, value))
    return [line for kind, days in by_day.items() for line in _changes(kind, days)]


def _changes(kind: str, by_day: Mapping[str, Mapping[str, list[_Value]]]) -> list[str]:
    *earlier, last = sorted(by_day) or [""]
    if not earlier:
        return []
    names = _DRIFTING[kind].values()
    before = {name: [value for day in earlier for value in by_day[day].get(name, ())] for name in names}
    today = {name: _by_trace(values) for name in names if (values := by_day[last].get(name)) and before[name]}
    where = last if kind == SEARCHES else f"{last}, {kind}"
    return [
        f"{where}: {change.sentence('that day', 'before')}"
        for change in drifts(today, {name: _by_trace(before[name]) for name in today})
    ]


def _by_trace(values: Sequence[_Value]) -> list[float]:
    """Return one value per trace, for a significance test, because the operations of a trace are not independent.

    The mean of the returned values is the mean of all values. The value of a trace is this mean plus the summed
    deviations of the trace's operations from it, divided by the average number of operations per trace (the linearised
    ratio of sums to counts).
    """
    traces, numbers = zip(*values, strict=True)
    mean = fmean(numbers)
    deviations = cluster_sums([(number - mean,) for number in numbers], traces)
    if len(deviations) == len(numbers):
        return list(numbers)
    return [mean + deviation * len(deviations) / len(numbers) for (deviation,) in deviations]


def _failures(outcomes: Iterable[Outcome]) -> list[Cases]:
    """Return the failures of each kind of operation: the first ones, and how many there are."""
    cases: dict[str, list[Case]] = {SEARCHES: [], WRITES: []}
    counts, measured = dict.fromkeys(cases, 0), set()
    for outcome in outcomes:
        kind, shown = outcome.trial.benchmark, outcome.shown
        measured.add(kind)
        scores = (outcome.score(name) for name in (USED, SUCCEEDED, "correct"))
        if outcome.status == "scored" and 0 not in scores and not shown.reason.startswith("not judged"):
            continue
        counts[kind] += 1
        if len(cases[kind]) < _MAX_CASES:
            why = failure_text(outcome)
            fields = _SHOWN[kind]
            texts = tuple((label, str(getattr(shown, name)) or "–") for label, name in fields.items())
            names = (outcome.trial.case_id, outcome.trial.labels.get(DAY, outcome.status))
            cases[kind].append(Case(names, (*texts, ("why", why))))
    return [
        Cases(_TITLES[kind], tuple(found), counts[kind], "None.") for kind, found in cases.items() if kind in measured
    ]


_TITLES = {
    SEARCHES: "Searches that failed or whose memories were not used",
    WRITES: "Writes that failed, differ from what the user stated, or could not be judged",
}
_SHOWN = {
    SEARCHES: {"search": "asked", "found": "context", "reply": "got"},
    WRITES: {"said": "asked", "stated": "expected", "written": "got"},
}
