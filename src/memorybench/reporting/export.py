"""Exports one row per trial, for spreadsheets and scripts."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from typing import IO, Any, Literal

from memorybench.core.trials import Outcome
from memorybench.text.sanitize import csv_safe

Format = Literal["csv", "json", "jsonl"]
COLUMNS = (
    "run",
    "benchmark",
    "provider",
    "item",
    "question",
    "expected",
    "actual",
    "score",
    "correct",
    "status",
    "metadata",
    "created",
)
_HEADLINE_SCORES = ("correct", "answer_f1", "recall@5")


def rows(run: str, settled: Iterable[tuple[str, Outcome]]) -> Iterator[dict[str, Any]]:
    """One row per outcome, from the times and outcomes of a run."""
    for created, outcome in settled:
        trial, shown = outcome.trial, outcome.shown
        correct = outcome.score("correct")
        yield {
            "run": run,
            "benchmark": trial.benchmark,
            "provider": trial.subject.name,
            "item": trial.case_id,
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
            "created": created,
        }


def write(rows: Iterable[dict[str, Any]], form: Format, file: IO[str]) -> int:
    """Writes rows as they come and returns how many there were."""
    written = 0
    csv_writer = csv.writer(file, lineterminator="\n")
    if form == "csv":
        csv_writer.writerow(COLUMNS)
    for row in rows:
        if form == "csv":
            cells = {**row, "metadata": json.dumps(row["metadata"], ensure_ascii=False)}
            csv_writer.writerow(csv_safe(cell) if isinstance(cell, str) else cell for cell in cells.values())
        elif form == "json":
            file.write((",\n " if written else "[\n ") + json.dumps(row, ensure_ascii=False))
        else:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        written += 1
    if form == "json":
        file.write("\n]\n" if written else "[]\n")
    return written
