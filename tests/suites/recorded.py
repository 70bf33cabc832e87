"""Runs made by hand: outcomes of every kind, without a memory or a model to bring them about."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memorybench.core.questions import Question
from memorybench.core.spending import Spending
from memorybench.core.trials import Exhibit, Failure, Outcome, Score, Status, Subject, Trial
from memorybench.journal.rows import Run, RunStatus, Step
from memorybench.journal.run_opening import open_run

SPEC = {
    "answered": True,
    "benchmarks": ["quiz"],
    "corrected": False,
    "evidence": {"quiz": "session"},
    "judge": "scripted/judge",
    "methods": {"quiz": "llm-judge"},
    "providers": ["shelf"],
    "questions": {"quiz": 4},
    "reader": "scripted/quote",
}


def _trial(case: str, subject: str = "shelf", variant: str = "", repeat: int = 1) -> Trial:
    return Trial(
        suite="bench",
        benchmark="quiz",
        case_id=case,
        subject=Subject(role="provider", name=subject, settings={"k": 3}),
        labels={"question_type": "temporal"},
        variant=variant,
        cluster="home",
        repeat=repeat,
    )


def scored(case: str, correct: float, **more: Any) -> Outcome:
    return Outcome(
        trial=_trial(case, **more),
        status="scored",
        scores=(
            Score(name="correct", value=correct),
            Score(name="recall@1", value=0.0),
            Score(name="recall@5", value=0.5),
        ),
        shown=Exhibit(asked=f"{case}?", expected="a | b", got="ä 猫", context="a memory", reason="it says so"),
    )


def undone(case: str, status: Status, failure: Failure | None) -> Outcome:
    return Outcome(trial=_trial(case), status=status, failure=failure, shown=Exhibit(asked=f"{case}?", expected="a"))


def record(
    folder: Path, outcomes: Sequence[Outcome], status: RunStatus = "complete", id: str = "r", **changes: Any
) -> None:
    """A run with these outcomes, and one paid answer."""
    spent = Spending(calls=1, input_tokens=30, output_tokens=4, cost=0.25)
    step = Step("a" * 32, "answer", "scripted/quote", "{}", "{}", "2026-01-01T00:00:00.000+00:00", 0.1, spent=spent)

    async def record_outcome() -> None:
        await run_writer.record_step(step)
        for ordinal, outcome in enumerate(outcomes):
            case = Question(id=outcome.trial.case_id, haystack="home", question="?", answers=("a", "b"))
            await run_writer.record_outcome(outcome, ordinal, case)

    run = Run(id=id, suite="bench", spec={**SPEC, **changes}, program="memorybench 9", planned=4)
    with open_run(folder, run) as run_writer:
        asyncio.run(record_outcome())
        run_writer.end(status)
