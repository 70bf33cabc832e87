"""Shows one case as report sections: a row per trial, or everything about one trial.

A suite whose steps are not searches, answers and verdicts describes its trials in `case_sections` of its report module.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from memorybench.core.report_sections import (
    Column,
    Duration,
    Money,
    Provenance,
    Report,
    Row,
    Section,
    Table,
    Text,
    text_column,
)
from memorybench.core.spending import NOTHING
from memorybench.journal.run_reader import StepRecord

from .case_view import CaseTrial, CaseView, case_document, memories_of, rubric_of
from .failures import not_found_text
from .registry import named_as_in_reports
from .report_parts import gold_lines, shorten_line

_MAIN_SCORES = ("correct", "rubric_score", "passed", "killed", "convicted", "answer_f1", "recall@5")
_MOST_MEMORIES = 10
_MOST_PROMPTS = 6
_MOST_ALIKE = 3
"""If more consecutive steps than this have the same name, such as the adds of a history, one table row shows them
all."""


def trials_report(view: CaseView) -> Report:
    """Return a report with one row per trial of a case."""
    shown = view.trials[0].outcome.shown
    texts = {"Question": shown.asked, "Expected": shown.expected}
    same = len({trial.outcome.shown.asked for trial in view.trials}) == 1  # variants of a scenario differ
    sections = [view.trials[0].text(title, text) for title, text in texts.items() if text and same]
    return Report(
        f"{view.benchmark}: {view.id}",
        (*sections, *gold_sections(view.trials[0]), _trial_table(view)),
        document=case_document(view),
    )


def _trial_table(view: CaseView) -> Table:
    """Return a table with one row per trial of a case."""
    has_score = {score.name for trial in view.trials for score in trial.outcome.scores}
    score = next((name for name in _MAIN_SCORES if name in has_score), "score")
    columns = (
        text_column("provider"),
        text_column("variant", priority=2),
        text_column("repeat"),
        text_column("status"),
        Column(score),
        Column("first hit", priority=1),
        text_column("answer" if any(trial.named("answer") for trial in view.trials) else "result", wrap=True),
        text_column("why", priority=3, wrap=True),
    )
    return _filled_table(
        f"{view.benchmark}: {view.id}", columns, [_trial_row(view, trial, score) for trial in view.trials]
    )


def _trial_row(view: CaseView, trial: CaseTrial, score: str) -> Row:
    outcome = trial.outcome
    value = outcome.score(score)
    uncounted = set(view.case.get("gold_sessions", ())) if view.counts_turns else set()
    found = [one for step in trial.named("search")[:1] for one in memories_of(trial, step)]
    hits = [one["rank"] for one in found if set(one["hits"]) - uncounted]
    why = outcome.failure.message if outcome.failure else outcome.shown.reason or not_found_text(outcome)
    return (
        outcome.trial.subject.name,
        outcome.trial.variant or None,
        str(outcome.trial.repeat) if view.has_repeats else None,
        outcome.status,
        None if value is None else f"{value:.2f}",
        hits[0] if hits else None,
        shorten_line(named_as_in_reports(outcome).shown.got, 200) or None,
        shorten_line(why, 120) or None,
    )


def _filled_table(title: str, columns: Sequence[Column], rows: Sequence[Row]) -> Table:
    """Return a table without the columns that are empty in every row."""
    filled = [place for place in range(len(columns)) if any(row[place] is not None for row in rows)]
    kept_rows = tuple(tuple(row[place] for place in filled) for row in rows)
    return Table(title, tuple(columns[place] for place in filled), kept_rows)


def trial_report(view: CaseView, trial: CaseTrial, own: Sequence[Section] | None = None) -> Report:
    """Return a report of one trial.

    `own` are the sections of a suite that describes its trials itself. They replace those on searches, answers and
    verdicts.
    """
    title = f"{view.benchmark}: {view.id}"
    return Report(title, tuple(trial_sections(view, trial, own)), document=case_document(view))


def trial_sections(view: CaseView, trial: CaseTrial, own: Sequence[Section] | None = None) -> list[Section]:
    outcome = trial.outcome
    facts = {
        "Run ID": view.run_id,
        "Benchmark": view.benchmark,
        "Case": view.id,
        outcome.trial.subject.role.capitalize(): outcome.trial.subject.name,
        "Variant": outcome.trial.variant,
        "Repeat": str(outcome.trial.repeat) if view.has_repeats else "",
        "Labels": ", ".join(f"{name}={value}" for name, value in outcome.trial.labels.items()),
        "Status": outcome.status,
    }
    sections: list[Section] = [Provenance({name: fact for name, fact in facts.items() if fact})]
    sections += asked_sections(trial) if own is None else own
    if outcome.failure is not None:
        traceback = outcome.failure.traceback if trial.full else None
        sections.append(
            Text("Failure", f"{outcome.failure.kind}: {outcome.failure.message}\n{traceback or ''}".strip())
        )
    if outcome.scores:
        values = "  ".join(f"{score.name}={score.value:.4g}" for score in outcome.scores)
        reasons = [f"{score.name}: {score.reason}" for score in outcome.scores if score.reason]
        sections.append(Text("Scores", "\n".join([values, *reasons])))
    if trial.steps:
        sections.append(_step_table(trial.steps))
    return sections


def asked_sections(trial: CaseTrial) -> list[Section]:
    """Return sections with question, gold answer, memories, prompts, answers and verdicts of a trial."""
    shown = trial.outcome.shown
    sections: list[Section] = []
    if shown.asked:  # a suite of another package may ask no questions
        sections.append(trial.text("Question", shown.asked))
    if shown.asked or shown.expected:
        sections.append(trial.text("Expected", shown.expected or "(no gold answer)"))
    sections += gold_sections(trial)
    sections += [_memory_table(trial, step) for step in trial.named("search")]
    sections += _rubric_sections(trial)
    sections += prompt_sections(trial)
    if not trial.named("answer") and shown.got:
        sections.append(trial.text("Answer", shown.got))
    if not trial.named("search", "answer") and shown.context:
        count = (
            f"{shown.memories_shown} memor{'y' if shown.memories_shown == 1 else 'ies'}, not recorded one by one; "
            if shown.memories_shown
            else ""
        )
        sections.append(Text("Context", f"{count}it begins:\n{shown.context}"))
    why = shown.reason or not_found_text(trial.outcome)
    if why in [_reply(step.result).partition("\n")[0] for step in trial.named("judge")]:
        why = ""  # the section with the judge's reply has it
    return [*sections, *([trial.text("Why", why)] if why else [])]


def gold_sections(trial: CaseTrial) -> list[Section]:
    """Return the turns that contain the answer as sections; only their ids if the run did not record the text."""
    lines = gold_lines(trial.case)
    return [trial.text("Gold turns", "\n".join(lines))] if lines else []


def _rubric_sections(trial: CaseTrial) -> list[Section]:
    """Return a table of the items of the question's rubric with their scores; an empty list without a rubric."""
    items = rubric_of(trial.case, trial.steps)
    if not items:
        return []
    rows: list[Row] = [
        (
            None if one["score"] is None else f"{one['score']:g}",
            f"{one['weight']:g}" if len({item["weight"] for item in items}) > 1 else None,
            trial.excerpt(one["item"]),
            None if one["reply"] is None else trial.excerpt(one["reply"]),
        )
        for one in items
    ]
    columns = (Column("score"), Column("weight"), text_column("item", wrap=True), text_column("reply", wrap=True))
    return [_filled_table("Rubric", columns, rows)]


def prompt_sections(trial: CaseTrial) -> Iterator[Section]:
    """Yield the prompt and the reply of each model call; only of the first few, unless `trial.full` is set."""
    calls = [step for step in trial.steps if isinstance(step.inputs, dict) and "prompt" in step.inputs]
    most = len(calls) if trial.full else _MOST_PROMPTS
    for step in calls[:most]:
        name = step.name.capitalize()
        yield trial.text(f"{name} prompt ({step.subject})", str(step.inputs["prompt"]))
        yield trial.text(name if step.name == "answer" else f"{name} reply", _reply(step.result))
    if len(calls) > most:
        yield Text("More prompts", f"{len(calls) - most} more with --full")


def _reply(result: Any) -> str:
    """Return the text of a recorded completion or verdict; any other result as JSON."""
    if isinstance(result, dict) and "text" in result:
        return str(result["text"])
    if isinstance(result, dict) and "correct" in result:
        flags = "".join(f" [{flag}]" for flag in result.get("flags", ()))
        verdict = f"verdict: {'correct' if result['correct'] else 'wrong'}"
        if result.get("score") is not None:
            verdict = f"score: {result['score']:g}"
        return f"{result.get('reply') or result.get('reason', '')}{flags}\n{verdict}"
    return as_text(result)


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _memory_table(trial: CaseTrial, step: StepRecord) -> Table:
    """Return a table of memories: the first ones, including all that the model saw, and those with gold evidence.

    With --full, all memories are in the table.
    """
    memories = memories_of(trial, step)
    seen = trial.outcome.shown.memories_shown
    most = len(memories) if trial.full else max(seen or 0, _MOST_MEMORIES)
    rows: list[Row] = [
        (
            one["rank"],
            hit_text(one["hits"], trial.case),
            None if one["score"] is None else f"{one['score']:.4g}",
            trial.excerpt(one["content"]),
        )
        for one in memories
        if one["rank"] <= most or one["hits"]
    ]
    title = "Memories" if trial.is_own_search(step) else f'Memories for "{shorten_line(step.inputs["query"], 60)}"'
    title += f": {len(memories)} returned"
    if seen is not None:
        part = f"the first {seen}" if seen < len(memories) else "all"
        title += f", {part} {'shown to the model' if trial.named('answer') else 'are the context'}"
    title += f"; {len(memories) - len(rows)} more with --full" if len(rows) < len(memories) else ""
    columns = (
        Column("rank"),
        text_column("gold hit", wrap=True),
        Column("score", priority=1),
        text_column("memory", wrap=True),
    )
    return Table(title, columns, tuple(rows))


def hit_text(hits: Sequence[str], case: Mapping[str, Any]) -> str:
    """Return which gold evidence a memory comes from, such as `turn s3:5`; `session s3` if it has no gold turn."""
    sessions = case.get("gold_sessions", ())
    turns = [hit for hit in hits if hit not in sessions]
    return "\n".join([f"turn {hit}" for hit in turns] or [f"session {hit}" for hit in hits])


def _step_table(steps: Sequence[StepRecord]) -> Table:
    columns = (
        text_column("step"),
        text_column("subject"),
        Column("time"),
        Column("tries"),
        Column("tokens in", priority=2),
        Column("tokens out", priority=3),
        Column("cost"),
        text_column("remark", priority=1, wrap=True),
    )
    rows: list[Row] = []
    for (name, subject, failed), group in groupby(steps, key=lambda step: (step.name, step.subject, bool(step.error))):
        same = list(group)
        for part in [same] if len(same) > _MOST_ALIKE else [[step] for step in same]:
            spent = sum((step.spent for step in part), NOTHING)
            reused = next((f"reused from {step.reused_from}" for step in part if step.reused_from), "")
            rows.append(
                (
                    f"{name} × {len(part)}" if len(part) > 1 else name,
                    subject,
                    Duration(sum(step.seconds for step in part)),
                    sum(step.tries for step in part),
                    spent.input_tokens or None,
                    spent.output_tokens or None,
                    Money(spent.cost),
                    f"failed: {shorten_line(part[0].error, 200)}" if failed else reused or None,
                )
            )
    return _filled_table("Steps", columns, rows)
