"""What a person and a program are told about an audit: the verdict first, then figures, then the worst failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memorybench.core.trials import Outcome
from memorybench.text.sanitize import sanitize

from . import figures
from .documents import document
from .markdown import cell, listed, stages, titled
from .scorecard import Card, card_markdown, show_card
from .summary import Result, Summary
from .terminal import accounting, caveats

if TYPE_CHECKING:
    from rich.console import Console

CaseOf = Callable[[Outcome], Mapping[str, Any]]
"""From an outcome to its probe, as the journal keeps it."""

_MOST_FAILURES = 12
_KINDS = ("recall_accuracy", "hallucinated_memory_rate", "conflict_resolution_accuracy", "temporal_accuracy")
CARD = Card(
    rows={
        "recall_accuracy": "facts that hold now, and were answered rightly",
        "hallucinated_memory_rate": "things never said, and answered all the same",
        "conflict_resolution_accuracy": "facts that changed, and were answered as they are now",
        "temporal_accuracy": "which of two came first: right whichever is named first",
        "answering_rate": "facts that hold now, and were answered at all",
        "paired_rate": "silent on what is absent and right on its twin that is there",
        "temporal_consistency": "orders answered alike, whichever is named first",
        "dating_accuracy": "durations, and what held at a given time",
    },
    short={
        "recall_accuracy": "recall",
        "hallucinated_memory_rate": "invented",
        "conflict_resolution_accuracy": "conflicts",
        "temporal_accuracy": "order",
    },
    by={"category": _KINDS, "turns_back": _KINDS, "days_back": _KINDS, "conversation": _KINDS},
)
_CAMEL = {
    "recallAccuracy": "recall_accuracy",
    "hallucinatedMemoryRate": "hallucinated_memory_rate",
    "conflictResolutionAccuracy": "conflict_resolution_accuracy",
    "temporalAccuracy": "temporal_accuracy",
    "answeringRate": "answering_rate",
    "pairedRate": "paired_rate",
    "temporalConsistency": "temporal_consistency",
    "datingAccuracy": "dating_accuracy",
}


def verdicts(summary: Summary) -> list[str]:
    """One sentence for each subject."""
    return [_verdict(result) for result in summary.results if not result.group]


def _verdict(result: Result) -> str:
    told = {
        "recall_accuracy": "recalls {} of what it was told",
        "hallucinated_memory_rate": "invents an answer to {} of what it was never told",
        "conflict_resolution_accuracy": "knows the latest value of {} of what changed",
        "temporal_accuracy": "tells {} of orders right",
    }
    parts = []
    for name, phrase in told.items():
        measure = result.measure(name)
        if measure is not None and measure.value is not None:
            parts.append(phrase.format(figures.with_interval(measure)))
    if not parts:
        return f"{result.subject}: nothing was measured."
    silent = result.measure("answering_rate")
    remark = ""
    if silent is not None and silent.value is not None and silent.value < 0.5:
        remark = f" It answers only {figures.share(silent.value)} of what it could: silence invents nothing."
    remark += _little(result)
    return f"{result.subject} {', '.join(parts[:-1])}{' and ' if parts[1:] else ''}{parts[-1]}.{remark}"


def _little(result: Result) -> str:
    """A figure that rests on less than half of what was planned must say so."""
    thin = [m for m in result.measures if m.name in _KINDS and m.value is not None and 2 * m.n < m.planned]
    return "".join(f" {measure.name} rests on {measure.n} of {measure.planned} probes only." for measure in thin)


def show_audit(out: Console, summary: Summary, facts: Mapping[str, Any]) -> None:
    for line in verdicts(summary):
        out.print()
        out.print(sanitize(line), style="bold")
    show_card(out, summary, CARD)
    out.print()
    for line in (*made(facts), accounting(summary)):
        out.print(sanitize(line))
    for line in caveats(summary):
        out.print(line, style="yellow")


def made(spec: Mapping[str, Any]) -> list[str]:
    """How the probes came about: what the gates held back and which facts could not be asked for."""
    kinds = ", ".join(f"{n} {kind}" for kind, n in spec["probes"].items())
    dropped = ", ".join(f"{n} {name}" for name, n in spec["gates"].items() if n)
    skipped = ", ".join(f"{n} {reason}" for reason, n in spec["skipped"].items())
    lines = [f"probes from {spec['facts']} facts of {spec['conversations']} conversations: {kinds}"]
    lines += [f"gates: {dropped}"] if dropped else []
    return lines + ([f"facts not asked for: {skipped}"] if skipped else [])


def audit_markdown(
    summary: Summary, facts: Mapping[str, str], spec: Mapping[str, Any], outcomes: Iterable[Outcome], case: CaseOf
) -> str:
    parts = [titled(f"Memory audit: {', '.join(summary.benchmarks)}", summary)]
    parts += [f"> {line}" for line in caveats(summary)]
    parts += [f"**{cell(line)}**" for line in verdicts(summary)]
    parts += card_markdown(summary, CARD)
    settled = list(outcomes)
    parts += ["## Worst failures", *_failures(settled, case)]
    parts += ["## How it was made", listed({**facts, **_as_facts(made(spec)), **_rewritten(settled)})]
    if summary.stages:
        parts += ["## Time and money", stages(summary)]
    parts.append(accounting(summary))
    return "\n\n".join(parts) + "\n"


def _rewritten(outcomes: Sequence[Outcome]) -> dict[str, str]:
    written = [score for outcome in outcomes if (score := outcome.score("rewritten")) is not None]
    if not written:
        return {}
    return {"Questions by a model": f"{sum(written):.0f} of {len(written)} were asked, the gates held the others back"}


def _as_facts(lines: Sequence[str]) -> dict[str, str]:
    return {name.capitalize(): text for name, _, text in (line.partition(": ") for line in lines)}


def _failures(outcomes: Sequence[Outcome], case: CaseOf) -> list[str]:
    wrong = [outcome for outcome in outcomes if outcome.score("correct") == 0 and outcome.trial.variant != "reversed"]
    if not wrong:
        return ["None: every answer was right."]
    parts = []
    for outcome in _chosen(wrong):
        probe, shown = case(outcome), outcome.shown
        lines = [
            f"**{cell(outcome.trial.labels.get('probe_type', ''))}** · {cell(outcome.trial.subject.name)}"
            f" · `{cell(outcome.trial.case_id)}`",
            f"- asked: {cell(shown.asked)}",
            f"- expected: {cell(shown.expected)}",
            f"- got: {cell(shown.got) or '(nothing)'}",
            *([f"- why: {cell(shown.reason)}"] if shown.reason else []),
            *(f"- from: {cell(_line(turn))}" for turn in probe.get("gold_context", ())),
        ]
        parts.append("\n".join(lines))
    if len(wrong) > len(parts):
        parts.append(f"… and {len(wrong) - len(parts)} more: `memorybench results RUN --failures`")
    return parts


def _chosen(wrong: Sequence[Outcome]) -> list[Outcome]:
    """Of each kind as many, from as many conversations as can be. What is invented is worse than what is outdated,
    and that is worse than what is forgotten."""
    order = ("hallucination", "conflict", "recall", "temporal")
    seen: Counter[tuple[str, str]] = Counter()
    ranked = []
    for outcome in wrong:
        kind = outcome.trial.labels.get("probe_type", "")
        place = kind, outcome.trial.cluster
        ranked.append((seen[place], order.index(kind) if kind in order else len(order), outcome))
        seen[place] += 1
    kept: Counter[int] = Counter()
    chosen = []
    for _, kind_rank, outcome in sorted(ranked, key=lambda row: row[:2]):
        if kept[kind_rank] < _MOST_FAILURES // len(order):
            kept[kind_rank] += 1
            chosen.append((kind_rank, outcome))
    return [outcome for _, outcome in sorted(chosen, key=lambda row: row[0])]


def _line(turn: Mapping[str, Any]) -> str:
    date = f"[{turn['at'][:10]}] " if turn.get("at") else ""
    return f"{date}{turn.get('speaker') or turn['role']}: {turn['content']}"


def audit_document(
    summary: Summary, spec: Mapping[str, Any], outcomes: Iterable[Outcome], case: CaseOf
) -> dict[str, Any]:
    """The document of all suites, and beside it an AuditResult as memaudit calls its fields. With several subjects
    `metrics` are those of the first, which `metricsOf` names; each probe result names its own."""
    first = next((result for result in summary.results if not result.group), None)
    return {
        **document(summary),
        "datasetId": spec["benchmarks"][0],
        "timestamp": summary.created,
        "metrics": {camel: _value(first, name) for camel, name in _CAMEL.items()},
        "metricsOf": first.subject if first else None,
        "probes": dict(spec["probes"]),
        "gates": dict(spec["gates"]),
        "skipped": dict(spec["skipped"]),
        "probeResults": [_probe_result(outcome, case(outcome)) for outcome in outcomes],
    }


def _value(result: Result | None, name: str) -> float | None:
    measure = result.measure(name) if result else None
    return measure.value if measure else None


def _probe_result(outcome: Outcome, probe: Mapping[str, Any]) -> dict[str, Any]:
    correct = outcome.score("correct")
    return {
        "probe": {
            "id": outcome.trial.case_id,
            "type": outcome.trial.labels.get("probe_type", ""),
            "question": outcome.shown.asked,
            "context": [_turn(turn) for turn in probe.get("gold_context", ())],
            "expectedAnswer": outcome.shown.expected,
            "relatedFacts": list(probe.get("related_facts", ())),
        },
        "subject": outcome.trial.subject.name,
        "response": outcome.shown.got,
        "correct": None if correct is None else correct == 1.0,
        "status": outcome.status,
        "reason": outcome.failure.message if outcome.failure else outcome.shown.reason,
        "conversation": outcome.trial.cluster,
        "origin": "model" if outcome.score("rewritten") == 1 else probe.get("origin", ""),
    }


def _turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    told = {"role": turn["role"], "content": turn["content"]}
    return {**told, "timestamp": turn["at"]} if turn.get("at") else told
