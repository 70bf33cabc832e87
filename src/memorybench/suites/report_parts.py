"""Parts of reports that all suites share: the JSON document, tables of measures and steps, and the trial counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from memorybench.core.measures import Measure
from memorybench.core.report_sections import Column, Duration, Money, Notes, Provenance, Table, text_column
from memorybench.core.trials import STATUSES, Outcome
from memorybench.journal.rows import Fingerprint
from memorybench.journal.run_reader import Stage
from memorybench.metrics.intervals import Interval
from memorybench.metrics.rates import NARROW, is_wide
from memorybench.metrics.retrieval import PROVENANCE_UNKNOWN
from memorybench.reporting import formatting
from memorybench.text.quantities import quantity
from memorybench.text.sanitize import shorten

from .comparison import Pair
from .search_limits import OVER_BUDGET
from .suite import SCOPE_SUFFIX, STARTED_WITH
from .summary import Result, Summary, percentile

_MAX_GROUPS = 30
"""A table shows at most this many groups of a label; report.json has them all."""
_MAX_UNSCORED = 0.02
STEP_LABELS = {"settle": "time to searchable", "wait_until_searchable": "time to searchable"}
"""By name of a step: the name in reports, if it differs.

Earlier versions recorded waiting until searchable as `settle`.
"""
_TIMED_STEPS = ("add", "settle", "wait_until_searchable", "search", "answer", "judge", "canary")
_PERFORMANCE = (SCOPE_SUFFIX, STARTED_WITH, "concurrency", "budget", "reuse", "gate", "timing")
"""Keys of a saved spec that do not affect any figure. report.json has them under `circumstances`."""
_SHORT_TEXT = 4000
_SELF_JUDGED = "self-judged"
_LONGEST_REASON = 160
VERDICTS = ("correct", "rubric_met", "passed", "recall@5", "succeeded")
"""The first of these scores that a trial has decides whether it is a failure. `recall@5` decides if nothing was
judged, `succeeded` for a search or write of another program whose result was not judged. A search or write that did
not succeed is a failure in any case."""
NO_VERDICTS = frozenset(
    {
        "context_tokens",
        "bytes_per_memory",
        OVER_BUDGET,
        PROVENANCE_UNKNOWN,
        "answer_f1",
        "exact_match",
        "similarity",
        "forbidden_hit",
        "drift",
    }
)
"""Names of scores that do not say whether a result is right."""


def document(summary: Summary) -> dict[str, Any]:
    """Return the JSON document of a report, the same for all suites (docs/report.schema.json)."""
    differences = [
        {
            "benchmark": pair.benchmark,
            "subject": pair.first,
            "baseline": pair.second,
            "measure": pair.measure,
            **pair.comparison.model_dump(include={"difference", "low", "high", "n", "p", "adjusted_p", "significant"}),
            "tells_apart": pair.comparison.significant,  # the old name of `significant`
        }
        for pair in summary.differences
    ]
    return {
        "run_id": summary.run_id,
        "suite": summary.suite,
        "status": summary.status,
        "counts": dict(summary.counts),
        "results": [
            {
                "benchmark": result.benchmark,
                "subject": result.subject,
                "group": dict(result.group),
                "measures": [
                    _measure(measure) for measure in result.measures if _has_data(measure) or not result.group
                ],
            }
            for result in summary.results
        ],
        "samples": [{"benchmark": name, **sample} for name, sample in summary.samples.items()],
        "failures": [failed.model_dump() for failed in summary.failures],
        "differences_from_baseline": differences,
        "lifts": differences,  # the old name, for one release
        "notes": [{"kind": kind, "text": text} for kind, text in summary.notes],
        "possibly_charged_twice": summary.possibly_charged_twice,
        "provenance": {
            "settings": {key: value for key, value in summary.spec.items() if key not in _PERFORMANCE},
            "fingerprints": {name: _fingerprint(mark) for name, mark in sorted(summary.fingerprints.items())},
        },
        # everything else is the same, byte by byte, in two runs of one spec
        "circumstances": {
            "program": summary.program,
            "created": summary.created,
            "finished": summary.finished,
            "timing": summary.timing,
            "command_line": [],
            "versions": {},
            **summary.spec.get(STARTED_WITH, {}),
            **{key: summary.spec.get(key) for key in ("concurrency", "budget", "reuse")},
            "spent": summary.spent.model_dump(),
            "known_cost": summary.known_cost,
            "calls_of_unknown_cost": summary.calls_of_unknown_cost,
            "possibly_spent": summary.possibly_spent,
            "stages": [
                {
                    "name": stage.name,
                    "label": STEP_LABELS.get(stage.name, stage.name),
                    "subject": stage.subject,
                    "steps": stage.steps,
                    "reused": stage.reused,
                    "seconds_p50": percentile(stage.seconds, 50),
                    "seconds_p95": percentile(stage.seconds, 95),
                    "spent": stage.spent.model_dump(),
                }
                for stage in summary.stages
            ],
        },
    }


def _fingerprint(mark: Fingerprint) -> dict[str, str]:
    """Return the digest and, if it is short, the text that it was computed from, such as a prompt."""
    text = mark.text
    return {"digest": mark.digest, **({"text": text} if text is not None and len(text) <= _SHORT_TEXT else {})}


def _measure(measure: Measure) -> dict[str, Any]:
    fields = measure.model_dump(include={"name", "value", "low", "high", "n", "planned", "higher_is_better"})
    return {**fields, "unit": measure.unit} if measure.unit else fields


def title(text: str, summary: Summary) -> str:
    """Return the title of a report; it ends in "(self-judged)" if a model has judged its own answers."""
    return f"{text} ({_SELF_JUDGED})" if _self_judged(summary) else text


def self_judged_notes(summary: Summary) -> list[Notes]:
    lines = _self_judged(summary)
    return [Notes(tuple(lines), warning=True)] if lines else []


def _self_judged(summary: Summary) -> list[str]:
    return [f"{kind}: {text}" for kind, text in summary.notes if kind == _SELF_JUDGED]


def warnings(summary: Summary) -> tuple[str, ...]:
    """Return warnings that a reader must know before relying on the figures, one sentence each."""
    lines = []
    counts = summary.counts
    if summary.status != "complete":
        state = "has not ended" if summary.status == "running" else f"is {summary.status}"
        is_begun = summary.pending < counts["planned"]
        part = (
            ": the figures cover only the trials finished so far; those of the remaining trials may differ"
            if is_begun
            else ""
        )
        lines.append(f"The run {state}{part}.")
    if counts["planned"] and counts["unscored"] / counts["planned"] > _MAX_UNSCORED:
        share = formatting.share(counts["unscored"] / counts["planned"])
        lines.append(f"Inconclusive: {share} of the trials could not be scored.")
    for one in summary.failures:
        reason = (
            f"{one.reason[:_LONGEST_REASON].rstrip('. ')} ({one.times} of them)" if one.reason else "unknown reason"
        )
        lines.append(f"{one.benchmark} × {one.subject}: {quantity(one.failed, 'trial')} failed, most often: {reason}")
    if counts["failed"]:
        lines.append(f"{quantity(counts['failed'], 'trial')} failed: memorybench results {summary.run_id} --failures")
    if "with queue" in summary.timing and summary.stages:
        lines.append("Durations include waits for a thread of memorybench: an earlier version began the run.")
    if summary.possibly_charged_twice:
        lines.append(f"{formatting.lost_calls(summary.possibly_charged_twice)}.")
    others = [(kind, text) for kind, text in summary.notes if kind != _SELF_JUDGED]
    return (*lines, *(text if text.startswith(kind) else f"{kind}: {text}" for kind, text in others))


def accounting(summary: Summary) -> str:
    """Return `planned 60 = 58 scored + 2 failed + …; spent $0`. The states always add up to planned."""
    counts = summary.counts
    parts = " + ".join(f"{counts[status]} {status}" for status in STATUSES)
    pending = f" + {summary.pending} pending" if summary.pending else ""
    spent = formatting.spent(
        summary.spent.cost, summary.known_cost, summary.calls_of_unknown_cost, summary.possibly_spent
    )
    return f"planned {counts['planned']} = {parts}{pending}; spent {spent}"


def wide_interval_notes(summary: Summary, benchmark: str, name: str) -> list[Notes]:
    """Return notes on which intervals of a measure are wide, and how many questions would narrow them."""
    wide: dict[tuple[int, int], dict[str, int | None]] = {}
    for result in summary.overall(benchmark):
        measure = result.measure(name)
        if measure is not None and is_wide(Interval(measure.value, measure.low, measure.high)):
            wide.setdefault((measure.n, measure.clusters), {})[result.subject] = measure.needed
    lines = []
    for (n, clusters), subjects in wide.items():
        histories = "history" if clusters == 1 else "histories"
        line = f"Wide interval of {', '.join(subjects)}: {n} question{'s' * (n != 1)} of {clusters} {histories}"
        needed = max(filter(None, subjects.values()), default=0)  # unknown if all questions have one score
        if needed > n:
            line += f"; about {needed:,} questions are needed for ±{100 * NARROW:.0f} points"
            available = summary.samples[benchmark].get("cases_available", needed)
            line += f", and {benchmark} has {available:,}" if needed > available else ""
        lines.append(f"{line}.")
    return [Notes(tuple(lines), warning=True)] if lines else []


def provenance(facts: Mapping[str, str]) -> Provenance:
    return Provenance(facts, title="How it was made")


def started(created: str) -> str:
    return created.replace("T", " ")[:19] + " UTC"


def measure_table(title: str, results: Iterable[Result], meanings: Mapping[str, str], *, level: int = 3) -> Table:
    """Return a table with one row per measure, with its meaning."""
    rows = []
    for result in results:
        for name, meaning in meanings.items():
            measure = result.measure(name)
            if measure is not None and (measure.planned or measure.n):
                better = "" if measure.higher_is_better else " (lower is better)"
                rows.append((name, measure, measure, meaning + better))
    columns = (
        text_column("measure"),
        Column("value [95%]", "interval"),
        Column("n", "n"),
        text_column("meaning", priority=1),
    )
    return Table(title, columns, tuple(rows), level=level)


def score_tables(
    summary: Summary,
    meanings: Mapping[str, str],
    labels: Iterable[str],
    group_measures: tuple[str, ...],
) -> list[Table]:
    """Return, for each benchmark and subject, a table of all measures, then a table for each label.

    The table of a label has a row per group with data, at most _MAX_GROUPS; with fewer than two rows, it is left out.
    """
    tables = []
    for benchmark in summary.benchmarks:
        for result in summary.overall(benchmark):
            tables.append(measure_table(f"{benchmark} × {result.subject}", [result], meanings))
            for label in labels:
                table = _group_table(summary, result, label, group_measures)
                if len(table.rows) > 1:  # a single group equals the whole
                    tables.append(table)
    return tables


def difference_tables(summary: Summary, benchmark: str) -> list[Table]:
    """Return one table per measure: the difference of each provider from each baseline on a benchmark.

    Return [] if the run has no providers or no baselines. Providers without a value of the headline measure are
    compared by another measure.
    """
    pairs = [pair for pair in summary.differences if pair.benchmark == benchmark]
    return [
        _difference_table(measure, {(pair.first, pair.second): pair for pair in pairs if pair.measure == measure})
        for measure in dict.fromkeys(pair.measure for pair in pairs)
    ]


def _difference_table(measure: str, pairs: Mapping[tuple[str, str], Pair]) -> Table:
    baselines = list(dict.fromkeys(baseline for _, baseline in pairs))
    rows = [
        (provider, *(pairs[provider, b].cell() if (provider, b) in pairs else None for b in baselines))
        for provider in dict.fromkeys(provider for provider, _ in pairs)
    ]
    columns = (text_column(""), *(Column(f"minus {baseline}") for baseline in baselines))
    lower = "" if all(pair.higher_is_better for pair in pairs.values()) else "; lower is better"
    title = f"Difference from baseline in {measure}, points [95%] (* significant after Holm's correction{lower})"
    return Table(title, columns, tuple(rows), level=3)


def _group_table(summary: Summary, whole: Result, label: str, names: tuple[str, ...]) -> Table:
    groups = [
        result
        for result in summary.grouped(whole.benchmark)
        if result.subject == whole.subject and label in result.group
    ]
    shown = [name for name in names if any((measure := group.measure(name)) and _has_data(measure) for group in groups)]
    rows = []
    for group in sorted(groups, key=lambda group: _natural_order(group.group[label]))[:_MAX_GROUPS]:
        measures = [group.measure(name) for name in shown]
        if any(measure and _has_data(measure) for measure in measures):
            rows.append((group.group[label], *measures))
    columns = (Column(name, "value_of_n", priority=place) for place, name in enumerate(shown, 1))
    return Table(f"by {label.replace('_', ' ')}", (text_column(""), *columns), tuple(rows), level=3)


def _has_data(measure: Measure) -> bool:
    """Whether anything was measured. If all cases are undecided, there is an interval, but no value and no n."""
    return bool(measure.n) or measure.low is not None


def _natural_order(text: str) -> tuple[int, float, str]:
    """Return a sort key that puts 10 after 9, and words after numbers."""
    leading = re.match(r"\d+", text)
    return (0, float(leading[0]), text) if leading else (1, 0.0, text)


def step_tables(summary: Summary, *, detail: bool = True) -> list[Table]:
    """Return tables of time, tokens and cost of each kind of step."""
    if not summary.stages:
        return []
    columns = (
        text_column("step"),
        text_column("subject", wrap=True),
        Column("p50"),
        Column("p95", priority=1),
        Column("steps", priority=2),
        Column("calls", priority=5),
        Column("tokens in", priority=3),
        Column("tokens out", priority=4),
        Column("cost"),
    )
    timed = [stage for stage in summary.stages if stage.name in _TIMED_STEPS and stage.seconds]
    # "clearing" only marks that a clear has begun
    others = [stage for stage in summary.stages if stage not in timed and stage.name != "clearing"]
    timed.sort(key=lambda stage: (_TIMED_STEPS.index(stage.name), stage.subject))
    rows, other_rows = (tuple(_step_row(stage) for stage in stages) for stages in (timed, others))
    if not rows:
        detail = True
    return [Table("Time and cost", columns, rows, other_rows, detail=detail)]


def _step_row(stage: Stage) -> tuple[str | int | Duration | Money | None, ...]:
    return (
        STEP_LABELS.get(stage.name, stage.name),
        stage.subject,
        Duration(percentile(stage.seconds, 50)),
        Duration(percentile(stage.seconds, 95)),
        stage.steps,
        stage.spent.calls or None,
        stage.spent.input_tokens or None,
        stage.spent.output_tokens or None,
        Money(stage.spent.cost),
    )


def is_failure(outcome: Outcome) -> bool:
    """Whether a trial has no score, its first score in VERDICTS is 0, or it is a recorded operation that failed."""
    verdict = next((value for name in VERDICTS if (value := outcome.score(name)) is not None), None)
    return outcome.status != "scored" or verdict == 0 or outcome.score("succeeded") == 0


def is_undecided(outcome: Outcome) -> bool:
    """Whether no score of a trial says if it is right, as for an unanswered question without gold evidence.

    An extraction has many counts, but no score `correct` as long as pairs of facts are undecided.
    """
    if outcome.status != "scored":
        return False
    if outcome.trial.suite == "extraction":
        return outcome.score("correct") is None
    return NO_VERDICTS.issuperset(score.name for score in outcome.scores)


def gold_turns(case: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return the turns that contain the answer, as the case records them; None if they are not recorded."""
    turns = case.get("evidence", case.get("gold_context"))
    return None if turns is None else list(turns)


def gold_lines(case: Mapping[str, Any]) -> list[str]:
    """Return a line for each turn that contains the answer; only their ids if the run did not record the text."""
    ids = [*case.get("gold_turns", ()), *case.get("gold_sessions", ())]
    lines = [_turn_line(turn) for turn in gold_turns(case) or ()]
    return lines or ([f"{', '.join(ids)} (text not recorded)"] if ids else [])


def _turn_line(turn: Mapping[str, Any]) -> str:
    """Return a recorded turn on one line, such as `[2024-05-01, s3:5] Anna: text`."""
    place = ", ".join(part for part in ((turn.get("at") or "")[:10], turn.get("id")) if part)
    return f"{f'[{place}] ' if place else ''}{turn.get('speaker') or turn['role']}: {turn['content']}"


def shorten_line(text: str, longest: int) -> str:
    """Return a text on one line of at most `longest` characters; … replaces the end of a longer one."""
    return shorten(" ".join(text.split()), longest)
