"""What the engine and its journal cost per item, with steps that take no time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from memorybench.core.plans import Job, Performed, Plan, Steps
from memorybench.core.trials import Case, Score, Subject, Trial
from memorybench.engine.run import perform
from memorybench.journal.rows import Run
from memorybench.journal.run_opening import open_run, reopen_run
from perf.measuring import Line, Setup, Usage, at_most, usage_measured

SUBJECT = Subject(role="provider", name="instant")
SCORES = (Score(name="correct", value=1.0),)


def measure(setup: Setup) -> Iterator[Line]:
    few = [setup.run(run, f"few{n}", setup.few) for n in range(setup.rounds)]
    many = setup.run(run, "many", setup.many)
    per_item_of_few = median(usage.cpu for usage in few) / setup.few
    sizes = f"{setup.many:,} items / {setup.few:,} items"
    yield at_most(f"CPU per item, {sizes}", many.cpu / setup.many / per_item_of_few, 1.2)
    yield at_most(f"memory, {sizes}", many.megabytes / few[0].megabytes, 1.5)
    yield at_most(
        f"resume of a finished run of {setup.many:,} steps", setup.run(resume, "many", setup.many).wall, 3, "s"
    )


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


def run(folder: Path, items: int) -> Usage:
    row = Run(id="instant", suite="bench", spec={}, planned=items)
    with usage_measured() as usage, open_run(folder, row) as run_writer:
        asyncio.run(perform(Plan(jobs=jobs(items), size=items), run_writer, concurrency=100))
        run_writer.end("complete")
    return usage


def resume(folder: Path, items: int) -> Usage:
    with usage_measured() as usage, reopen_run(folder, "instant", fingerprints={}) as run_writer:
        ending = asyncio.run(perform(Plan(jobs=jobs(items), size=items), run_writer, concurrency=100))
        run_writer.end("complete")
    assert ending.performed == 0
    return usage
