"""Instant doubles: what the engine and its journal cost by themselves, at any size."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

from memorybench.core.plans import Job, Performed, Plan, Steps
from memorybench.core.trials import Case, Score, Subject, Trial
from memorybench.engine.run import perform
from memorybench.journal.rows import Run
from memorybench.journal.run_writer import open_run, reopen_run
from perf.gauges import Gauges, measured

SUBJECT = Subject(role="provider", name="instant")
SCORES = (Score(name="correct", value=1.0),)


def jobs(items: int) -> Iterator[Job]:
    for n in range(items):
        yield _job(n)


def _job(n: int) -> Job:
    async def reply() -> str:
        return "an answer of ordinary length, as a model would give it"

    async def perform_job(steps: Steps) -> Performed:
        await steps.once("answer", {"model": "instant", "prompt": f"question {n}"}, reply, str, on=SUBJECT)
        return Performed(scores=SCORES)

    trial = Trial(suite="bench", case_id=f"q{n}", subject=SUBJECT, benchmark="instant")
    return Job(trial=trial, perform=perform_job, ordinal=n, case=Case(id=f"q{n}"))


def run(folder: Path, items: int) -> Gauges:
    row = Run(id="instant", suite="bench", spec={}, planned=items)
    with measured() as gauges, open_run(folder, row) as run_writer:
        asyncio.run(perform(Plan(jobs=jobs(items), size=items), run_writer, concurrency=100))
        run_writer.end("complete")
    return gauges


def resume(folder: Path, items: int) -> Gauges:
    with measured() as gauges, reopen_run(folder, "instant", fingerprints={}) as run_writer:
        ending = asyncio.run(perform(Plan(jobs=jobs(items), size=items), run_writer, concurrency=100))
        run_writer.end("complete")
    assert ending.performed == 0
    return gauges


if __name__ == "__main__":
    what, folder, items = sys.argv[1:]
    print({"run": run, "resume": resume}[what](Path(folder), int(items)).as_json())
