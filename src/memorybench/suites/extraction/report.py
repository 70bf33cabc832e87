"""The report of an extraction run: measures, facts written by mistake, and failed cases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, get_args

from memorybench.core.errors import Malformed
from memorybench.core.measures import Metric
from memorybench.core.report_sections import (
    Case,
    Cases,
    Column,
    Notes,
    Report,
    Row,
    Section,
    State,
    Table,
    Text,
    text_column,
)
from memorybench.core.trials import Outcome
from memorybench.journal.rows import Run
from memorybench.journal.run_reader import RunReader, StepRecord
from memorybench.judging.facts import MemoryFact, normal_category
from memorybench.judging.matching_judge import STEP as ENTAIL
from memorybench.metrics.drift import Drift, drifts
from memorybench.reporting import formatting
from memorybench.suites import report_parts as sections
from memorybench.suites.case_sections import as_text, prompt_sections
from memorybench.suites.case_view import CaseTrial
from memorybench.suites.judge_check import check_document, check_warnings, judge_checks
from memorybench.suites.noise import measure_noise, noise_document, noise_sections
from memorybench.suites.shards import count_in_shards
from memorybench.suites.stored_run import StoredRun
from memorybench.suites.summary import Result, Summary
from memorybench.text.quantities import quantity

from .cases import ExtractionCase
from .findings import Label, possibly_merged
from .measures import measures
from .online import DAY, SHARES
from .rescoring import replay_matching
from .scores import IN_TEXT, UNREADABLE
from .transcripts import transcript

_PROBLEMS = {"add": "missed", "keep": "lost", "remove": "stale"}
"""By what should happen to a gold fact (keep, add or remove): the label of the remark if it did not happen."""
_COUNTED = {
    "tp": "facts to add that were added, and facts to remove that were removed",
    "fp": "written facts that are not expected, and facts to keep that were lost",
    "fn": "facts to add that were not added, and facts to remove that are still stored",
}
_LABELS = "|".join(get_args(Label))
_REMARK = re.compile(rf"(?:^|; )({_LABELS}): (.*?)(?=; (?:{_LABELS}): |$)", re.DOTALL)
"""Matches one remark in the text of a trial: its label, and the fact with what it is about."""


def case_sections(trial: CaseTrial) -> list[Section] | None:
    """Return sections with counts, facts, memory before, conversation and memory after.

    None for a recorded trace, which has no gold.
    """
    if "conversation" not in trial.case:
        return None
    case, shown = ExtractionCase.model_validate(trial.case), trial.outcome.shown
    extracted = [step.result["memory"] for step in trial.named("extract")]
    verdicts = trial.named(ENTAIL)
    sections: list[Section] = [
        *(_count_table(trial.outcome) if extracted else ()),
        *(table for memory in extracted for table in _fact_table(case, memory, shown.reason, verdicts)),
        trial.text("Memory before", as_text(case.existing_memory) if case.existing_memory else "(empty)"),
        trial.text("Conversation", transcript(case.conversation)),
        trial.text("Expected memory after", as_text(case.expected_output)),
    ]
    if case.must_not_store:
        sections.append(trial.text("Must not be stored", "\n".join(case.must_not_store)))
    sections += [trial.text("Memory after", as_text(memory)) for memory in extracted]
    sections += prompt_sections(trial)
    return [*sections, *([Text("Remarks", shown.reason.replace("; ", "\n"))] if shown.reason else [])]


def _count_table(outcome: Outcome) -> list[Table]:
    """Return a table of true positives, false positives and false negatives: the least and the most each can be."""
    rows: list[Row] = []
    for name, meaning in _COUNTED.items():
        certain, possible = outcome.score(name), outcome.score(f"{name}_open")
        if certain is not None:
            rows.append((name.upper(), int(certain), int(certain + (possible or 0)), meaning))
    columns = (text_column("count"), Column("at least"), Column("at most"), text_column("what it counts", wrap=True))
    return [Table("Changes", columns, tuple(rows))] if rows else []


def _fact_table(case: ExtractionCase, memory: Any, remarks: str, verdicts: Sequence[StepRecord] = ()) -> list[Table]:
    """Return a table of each expected fact with the written fact that matches it, then of the wrong written facts.

    `verdicts` are the recorded steps in which the judge compared facts.
    """
    try:
        matching = replay_matching(case, memory, verdicts)
    except Malformed:
        return []
    gold = case.gold
    kinds = ["keep"] * len(gold.kept) + ["add"] * len(gold.added) + ["remove"] * len(gold.removed)
    earlier = list(map(_in_earlier_form, gold.targets))
    paths = {fact.with_path for fact in gold.targets}
    targets = paths.union(old.with_path for old in earlier)
    labels = {label for label, _ in _REMARK.findall(remarks)}
    is_unclear = labels == {"undecided"} and bool(possibly_merged(matching))
    rows: list[Row] = []
    for place, (kind, fact, old) in enumerate(zip(kinds, gold.targets, earlier, strict=True)):
        # the first versions named the last category only
        names = {fact.with_path, *({old.with_path} - paths), *({str(old)} - targets)}
        state = _written_state(kind, place in matching.pairs) if is_unclear else _state(kind, names, remarks)
        possible = matching.undecided.get(place) if state.good is None else None
        found = matching.pairs.get(place, possible)
        written = None if found is None else matching.grid.found[found].with_path
        rows.append((kind, fact.with_path, written, (state,)))
    short = set(map(str, earlier))
    for label, fact in _REMARK.findall(remarks):
        is_target = label in _PROBLEMS.values() and (fact in targets or fact in short)
        if not is_target and label != "undecided":
            rows.append((None, None, fact, (State(f"FP: {label}", False),)))
    columns = (
        text_column("to do"),
        text_column("expected", wrap=True),
        text_column("written", wrap=True),
        text_column("result"),
    )
    return [Table("Facts", columns, tuple(rows))] if rows else []


def _in_earlier_form(fact: MemoryFact) -> MemoryFact:
    """Return a fact with the categories that remarks of earlier versions have: in lower case, the last one singular."""
    last = [normal_category(fact.category)] if fact.categories else []
    return MemoryFact(fact.text, (*fact.path[:-1], *last))


def _written_state(kind: str, is_written: bool) -> State:
    """Return the state of an expected fact if it is unknown how many facts were written: only a match is certain."""
    if not is_written:
        return State("undecided", None)
    return State("FN: stale", False) if kind == "remove" else State("kept" if kind == "keep" else "TP", True)


def _state(kind: str, names: Iterable[str], remarks: str) -> State:
    fact = "|".join(map(re.escape, names))
    if re.search(rf"{_PROBLEMS[kind]}: (?:{fact})(?:;|$)", remarks):
        return State(f"{'FP' if kind == 'keep' else 'FN'}: {_PROBLEMS[kind]}", False)
    if re.search(rf"undecided: .*\((?:{fact})\)(?:;|$)", remarks):
        return State("undecided", None)
    return State("kept" if kind == "keep" else "TP", True)


MEANINGS = {
    "precision": "written facts that are expected (strict, one to one)",
    "recall": "expected facts that are written",
    "f1": "harmonic mean of precision and recall",
    "conflict_resolution": "the new value is stored and the old one removed",
    "minimalism": "unchanged where nothing worth storing was said",
    "must_not_store": "cases in which nothing forbidden was written",
    "coverage_precision": "written facts that all expected facts together say; without a judge, known only if matched",
    "coverage_recall": "expected facts that all written facts together say; without a judge, known only if matched",
    "coverage_f1": "harmonic mean of both",
    "macro_precision": "mean over cases",
    "macro_recall": "mean over cases",
    "macro_f1": "mean over cases",
    "text_precision": "added facts that the user said, expected or not",
    "add_done": "facts to add that were added",
    "update_done": "facts whose old value is gone and whose new value is stored",
    "delete_done": "facts to remove that were removed",
    "keep_done": "facts to keep that were left alone",
    "duplicates": "facts that repeat another",
}
CASE_NOUN = "case"
RIGHT = "Right: every expected fact was written, and nothing else."
MAIN_MEASURES = ("precision", "recall", "f1", "conflict_resolution", "minimalism")
_COUNTS = ("hallucinated", "unexpected", "unlisted", "contradiction", "misfiled", "violations", "undecided")
_MAX_FAILURES = 15


def metrics(run: StoredRun) -> tuple[Metric, ...]:
    return measures()


def facts(runs: Sequence[Run]) -> dict[str, str]:
    """Return what the header says about a run, or about shards of one run."""
    run, spec = runs[0], runs[0].spec
    answerer = spec.get("answerer", spec.get("reader"))
    model = f" with {answerer}" if answerer else ""
    return {
        "Run ID": " + ".join(shard.id for shard in runs),
        "Traces" if spec["mode"] == "online" else "Cases": ", ".join(
            f"{name} ({n})" for name, n in count_in_shards(runs, "questions").items()
        ),
        "Extractor": f"{', '.join(spec['subjects'])}{model}",
        **({"Repeats": f"{spec['repeats']} per case"} if spec.get("repeats", 1) > 1 else {}),
        "Judge": spec["judge"] or "none: pairs that code cannot decide stay undecided",
        "Started": sections.started(run.created),
    }


def report(run: StoredRun) -> Report:
    summary = run.summary
    drift_lines = [drift.sentence() for drift in baseline_drifts(*run.parts[0])]
    remarks = Notes((*_count_lines(summary), *drift_lines))
    checks = judge_checks(run, {})
    is_decided = not any((one := result.measure("undecided")) and one.value for result in summary.results)
    noise = measure_noise(run, dict.fromkeys(summary.benchmarks, ("macro_f1",))) if is_decided else ()
    return Report(
        title=f"Extraction: {', '.join(summary.benchmarks)}",
        warnings=sections.warnings(summary),
        sections=(
            *check_warnings(checks),
            *sections.self_judged_notes(summary),
            *sections.score_tables(summary, MEANINGS, ("scenario", "domain", DAY), MAIN_MEASURES),
            *noise_sections(noise),
            *([remarks] if remarks.lines else []),
            _failures(list(run.outcomes())),
            sections.provenance(facts(run.runs)),
            *sections.step_tables(summary),
            Notes((sections.accounting(summary),)),
        ),
        document={**sections.document(summary), **noise_document(noise), **check_document(checks)},
    )


def passes(run: StoredRun) -> bool:
    """Whether an online run is not worse than its baseline run; True if it has none."""
    return not any(drift.worse for drift in baseline_drifts(*run.parts[0]))


def _count_lines(summary: Summary) -> list[str]:
    """Return lines on facts written by mistake, by kind, and on how much undecided pairs could change measures."""
    lines = []
    for result in summary.results:
        if result.group:
            continue
        counts = {name: measure.value for name in _COUNTS if (measure := result.measure(name)) and measure.value}
        if counts:
            kinds = ", ".join(f"{value:.0f} {name}" for name, value in counts.items())
            lines.append(f"{result.subject}: {kinds}")
        lines += _undecided_line(result, has_judge=bool(summary.spec.get("judge")))
        unreadable = result.measure(UNREADABLE)
        if unreadable and unreadable.value:
            lines.append(
                f"{result.subject}: {quantity(round(unreadable.value), 'question')} to the judge without a"
                f" verdict; --resume {summary.run_id} asks again"
            )
        in_text = result.measure(IN_TEXT)
        if in_text and in_text.value:
            replies = quantity(round(in_text.value), "reply", "replies")
            lines.append(f"{result.subject}: {replies} had text around the JSON, which was ignored")
    return lines


def _undecided_line(result: Result, *, has_judge: bool) -> list[str]:
    ranges = []
    for name in ("precision", "recall", "f1"):
        least, most = result.measure(f"{name}_least"), result.measure(f"{name}_most")
        if least and most and least.value is not None and most.value is not None:
            ranges.append(f"{name} {formatting.share(least.value)} to {formatting.share(most.value)}")
    if not ranges:
        return []
    return [
        f"{result.subject}: however undecided pairs are decided, the sample has {', '.join(ranges)}; where the table"
        f" has wider ranges, they add the 95% interval.{'' if has_judge else ' --judge-model decides the pairs.'}"
    ]


def _failures(outcomes: Sequence[Outcome]) -> Cases:
    wrong = [outcome for outcome in outcomes if outcome.score("correct") == 0 or outcome.status != "scored"]
    cases = []
    for outcome in wrong[:_MAX_FAILURES]:
        shown = outcome.shown
        why = outcome.failure.message if outcome.failure else shown.reason
        fields = (("said", shown.asked), ("expected", shown.expected), ("written", shown.got), ("why", why))
        cases.append(Case((outcome.trial.case_id, outcome.trial.labels.get("scenario", outcome.status)), fields))
    undecided = sum(map(sections.is_undecided, outcomes))
    none = f"None, but {undecided} of {len(outcomes)} are undecided." if undecided else "None: every case passed."
    return Cases("Failed cases", tuple(cases), len(wrong), none)


def baseline_drifts(run_reader: RunReader, run: Run) -> tuple[Drift, ...]:
    """Compare an online run with its baseline run, and return the changes of its measures."""
    baseline = run.spec.get("baseline")
    if baseline is None:
        return ()
    return drifts(_scores(run_reader, run.id), _scores(run_reader, baseline))


def _scores(run_reader: RunReader, run: str) -> dict[str, Sequence[float]]:
    """Return the scores of all traces, by the name of their mean (`macro_…`). Tables show the pooled value instead."""
    scores: dict[str, list[float]] = {f"macro_{name}": [] for name in SHARES}
    for outcome in run_reader.outcomes(run):
        for name in SHARES:
            value = outcome.score(name)
            if value is not None:
                scores[f"macro_{name}"].append(value)
    return dict(scores)
