"""The report of a run over recorded searches: measures, also by day and store, and what changed on the last day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memorybench.core.measures import Metric
from memorybench.core.report_sections import Case, Cases, Notes, Report
from memorybench.core.trials import Outcome
from memorybench.journal.rows import Run
from memorybench.metrics.drift import drifts
from memorybench.metrics.rates import Mean, Pooled, Rate
from memorybench.suites import report_parts as sections
from memorybench.suites.judge_check import check_document, check_warnings, judge_checks
from memorybench.suites.stored_run import StoredRun

from .plan import DAY, FOUND, FOUND_ANY, JUDGED_COUNT, STORE, SUCCEEDED, USED, USED_COUNT

MEANINGS = {
    "used": "searches of which the reply uses a memory, of those with memories and a reply (judge)",
    "used_memories": "memories that the reply uses, of those that the judge read",
    "found_any": "searches that found something, of those that did not fail",
    "succeeded": "searches that did not fail",
    "found": "memories per search",
}
MAIN_MEASURES = ("used", "found_any", "succeeded")


def _share(sums: Sequence[float]) -> float | None:
    used, judged = sums
    return used / judged if judged else None


METRICS: tuple[Metric, ...] = (
    Rate("used", USED),
    Pooled("used_memories", (USED_COUNT, JUDGED_COUNT), _share),
    Rate("found_any", FOUND_ANY),
    Rate("succeeded", SUCCEEDED),
    Mean("found", FOUND, unit="memories"),
)
_DRIFTING = (USED, FOUND_ANY, SUCCEEDED)
"""Scores that the last day is compared by; each is also the name of its mean."""
_MAX_CASES = 15


def metrics(run: StoredRun) -> tuple[Metric, ...]:
    return METRICS


def facts(runs: Sequence[Run]) -> dict[str, str]:
    """What the header says about a run."""
    run, spec = runs[0], runs[0].spec
    return {
        "Run ID": run.id,
        "Searches": f"{', '.join(spec['subjects'])} ({run.planned})",
        "Judge": spec["judge"] or "none: whether memories are used is not measured",
        "Started": sections.started(run.created),
    }


def report(run: StoredRun) -> Report:
    summary, checks = run.summary, judge_checks(run, {})
    changes = last_day_lines(run.outcomes())
    return Report(
        title="Recorded searches",
        warnings=sections.warnings(summary),
        sections=(
            *check_warnings(checks),
            *sections.score_tables(summary, MEANINGS, (DAY, STORE), (*MAIN_MEASURES, "used_memories", "found")),
            *([Notes(tuple(changes))] if changes else []),
            _unused(run.outcomes()),
            sections.provenance(facts(run.runs)),
            *sections.step_tables(summary),
            Notes((sections.accounting(summary),)),
        ),
        document={**sections.document(summary), **check_document(checks)},
    )


def last_day_lines(outcomes: Iterable[Outcome]) -> list[str]:
    """Compare the last day with all days before it; nothing if there is only one day."""
    by_day: dict[str, dict[str, list[float]]] = {}
    for outcome in outcomes:
        day = outcome.trial.labels.get(DAY)
        for name in _DRIFTING:
            value = outcome.score(name)
            if day is not None and value is not None:
                by_day.setdefault(day, {}).setdefault(name, []).append(value)
    *earlier, last = sorted(by_day) or [""]
    if not earlier:
        return []
    before = {name: [value for day in earlier for value in by_day[day].get(name, ())] for name in _DRIFTING}
    today = {name: values for name in _DRIFTING if (values := by_day[last].get(name)) and before[name]}
    return [f"{last}: {change.sentence('that day', 'before')}" for change in drifts(today, before)]


def _unused(outcomes: Iterable[Outcome]) -> Cases:
    wrong = [one for one in outcomes if one.score(USED) == 0 or one.score(SUCCEEDED) == 0 or one.status != "scored"]
    cases = []
    for outcome in wrong[:_MAX_CASES]:
        shown = outcome.shown
        why = outcome.failure.message if outcome.failure else shown.reason or "the search failed"
        fields = (("search", shown.asked), ("found", shown.context), ("reply", shown.got), ("why", why))
        cases.append(Case((outcome.trial.case_id, outcome.trial.labels.get(DAY, outcome.status)), fields))
    return Cases("Searches that failed or whose memories were not used", tuple(cases), len(wrong), "None.")
