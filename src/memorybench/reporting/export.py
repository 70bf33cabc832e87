"""Exports one row per trial, for spreadsheets, scripts and data frames (docs/exports.md describes the columns)."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any, Literal

from msgspec import Struct

from memorybench.core.trials import Outcome
from memorybench.journal.run_reader import RecordedTrial
from memorybench.text.sanitize import csv_safe

Format = Literal["csv", "json", "jsonl"]
Kind = Literal["text", "number", "integer", "time", "list", "lists", "numbers"]
COLUMNS: Mapping[str, Kind] = {
    "run": "text",
    "benchmark": "text",
    "provider": "text",
    "item": "text",
    "question": "text",
    "expected": "text",
    "actual": "text",
    "score": "number",
    "correct": "integer",
    "status": "text",
    "metadata": "text",
    "created": "time",
    "suite": "text",
    "cluster": "text",
    "variant": "text",
    "repeat": "integer",
    "reason": "text",
    "failure": "text",
    "gold_sessions": "list",
    "gold_turns": "list",
    "rubric_items": "list",
    "rubric_weights": "numbers",
    "rubric_item_scores": "numbers",
    "ranking": "list",
    "ranking_sources": "lists",
    "seconds": "number",
    "search_seconds": "number",
    "answer_seconds": "number",
    "judge_seconds": "number",
    "calls": "integer",
    "input_tokens": "integer",
    "output_tokens": "integer",
    "cost": "number",
}
"""The columns of every export and their types. After them come one column per label and one per score."""
_HEADLINE_SCORES = ("correct", "rubric_score", "answer_f1", "recall@5", "passed")


class Layout(Struct, frozen=True):
    """The columns of one export."""

    kinds: Mapping[str, Kind]
    labels: Mapping[str, str]
    """The name of the column of each label."""
    scores: Mapping[str, str]
    """The name of the column of each score, except of `correct`, whose column every export has."""


def layout(outcomes: Iterable[Outcome]) -> Layout:
    """Return the columns for these outcomes.

    A label or score whose name is taken gets a prefix, `label_` or `score_`.
    """
    labels: dict[str, None] = {}
    scores: dict[str, None] = {}
    for outcome in outcomes:
        labels |= dict.fromkeys(outcome.trial.labels)
        scores |= dict.fromkeys(score.name for score in outcome.scores)
    scores.pop("correct", None)  # COLUMNS has it
    score_columns = {name: f"score_{name}" if name in COLUMNS else name for name in scores}
    taken = {*COLUMNS, *score_columns.values()}
    label_columns = {name: f"label_{name}" if name in taken else name for name in labels}
    kinds: dict[str, Kind] = {
        **COLUMNS,
        **dict.fromkeys(label_columns.values(), "text"),
        **dict.fromkeys(score_columns.values(), "number"),
    }
    return Layout(kinds, label_columns, score_columns)


def rows(trials: Iterable[RecordedTrial], columns: Layout) -> Iterator[dict[str, Any]]:
    """Yield one row per trial, with a value or None for each column."""
    for trial in trials:
        outcome = trial.outcome
        values = {
            **{columns.labels.get(name, ""): text for name, text in outcome.trial.labels.items()},
            **{columns.scores.get(score.name, ""): score.value for score in outcome.scores},
            **_trial_values(trial),
            **_step_values(trial),
        }
        yield {name: values.get(name) for name in columns.kinds}


def _trial_values(recorded: RecordedTrial) -> dict[str, Any]:
    outcome = recorded.outcome
    trial, shown = outcome.trial, outcome.shown
    correct = outcome.score("correct")
    reasons = (score.reason for score in outcome.scores if score.reason)
    return {
        "run": recorded.run,
        "benchmark": trial.benchmark,
        "provider": trial.subject.name,
        "item": trial.case_id,
        "repeat": trial.repeat,
        "question": shown.asked,
        "expected": shown.expected,
        "actual": shown.got,
        "score": next((s for name in _HEADLINE_SCORES if (s := outcome.score(name)) is not None), None),
        "correct": None if correct is None else int(correct == 1.0),
        "status": outcome.status,
        "metadata": {
            **trial.labels,
            "scores": {score.name: score.value for score in outcome.scores},
            **({"failure": outcome.failure.message} if outcome.failure else {}),
        },
        "created": recorded.finished,
        "suite": trial.suite,
        "cluster": trial.cluster or None,
        "variant": trial.variant or None,
        "reason": shown.reason or next(reasons, None),
        "failure": outcome.failure.message if outcome.failure else None,
        "gold_sessions": recorded.case.get("gold_sessions"),
        "gold_turns": _gold_turns(recorded.case),
        **_rubric_values(recorded),
    }


def _rubric_values(recorded: RecordedTrial) -> dict[str, Any]:
    """Return the rubric columns: items, weights and, if every item was judged, scores; {} without a rubric."""
    rubric = recorded.case.get("rubric")
    if not rubric:
        return {}
    scores = {
        step.result["item"]: step.result["score"]
        for step in recorded.steps
        if step.name == "judge" and step.result and step.result.get("item")
    }
    items = [text for text, _ in rubric]
    return {
        "rubric_items": items,
        "rubric_weights": [weight for _, weight in rubric],
        "rubric_item_scores": [scores[text] for text in items] if scores.keys() >= set(items) else None,
    }


def _gold_turns(case: Mapping[str, Any]) -> list[str] | None:
    """Return the ids of the gold turns; None if the case has none. An audit probe has whole turns instead of ids."""
    turns = case.get("gold_context")
    found: list[str] | None = case.get("gold_turns") if turns is None else [turn["id"] for turn in turns if turn["id"]]
    return found


def _step_values(recorded: RecordedTrial) -> dict[str, Any]:
    steps, spent = recorded.own_steps, recorded.spent
    seconds: dict[str, float] = {}
    for step in steps:
        seconds[step.name] = seconds.get(step.name, 0.0) + (step.seconds or 0.0)
    search = next((step for step in steps if step.name == "search"), None)
    memories = search.result["memories"] if search else None
    return {
        "ranking": None if memories is None else [memory["id"] for memory in memories],
        "ranking_sources": None if memories is None else [memory.get("sources") or [] for memory in memories],
        "seconds": sum(seconds.values()) if steps else None,
        **{f"{name}_seconds": seconds.get(name) for name in ("search", "answer", "judge")},
        "calls": spent.calls,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "cost": spent.cost,
    }


def write(rows: Iterable[dict[str, Any]], columns: Layout, form: Format, file: IO[str]) -> int:
    """Write rows one by one in the format `form`, and return how many there were."""
    written = 0
    csv_writer = csv.writer(file, lineterminator="\n")
    if form == "csv":
        csv_writer.writerow(columns.kinds)
    for row in rows:
        if form == "csv":
            csv_writer.writerow(_csv_cell(row[name]) for name in columns.kinds)
        elif form == "json":
            file.write((",\n " if written else "[\n ") + json.dumps(row, ensure_ascii=False))
        else:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        written += 1
    if form == "json":
        file.write("\n]\n" if written else "[]\n")
    return written


def _csv_cell(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False)
    return csv_safe(value) if isinstance(value, str) else value
