"""Runs of commands that ask one model, such as `audit probes`. Repeating such a command resumes its run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from memorybench import __version__
from memorybench.core.contracts import Model
from memorybench.core.plans import Plan
from memorybench.core.records import digest
from memorybench.engine.budget import Budget
from memorybench.engine.run import Ending, perform
from memorybench.engine.stopping import Stop
from memorybench.journal.places import journal_of
from memorybench.journal.rows import Fingerprint, Run
from memorybench.journal.run_opening import open_run, reopen_run
from memorybench.journal.run_reader import RunReader
from memorybench.journal.run_writer import RunWriter

from .blocking import blocking
from .estimates import PROMPT_TOKENS, REPLY_TOKENS
from .wiring import ResolvedModel, Wiring


def perform_with_model(
    plan: Callable[[Model], Plan],
    run: Run,
    model: ResolvedModel,
    results: Path,
    wiring: Wiring,
    *,
    concurrency: int = 10,
    budget: float | None = None,
) -> Ending:
    """Perform a plan with one model; a run that was already begun is resumed.

    Stop when `budget` dollars are spent, including what earlier commands spent on this run. None: no limit.
    """
    spending, marks = Budget(budget), run.fingerprints
    if _was_begun(results, run.id):
        with RunReader.open(results) as run_reader:
            spending.add_recorded(run_reader, run.id)
        spending.estimate = lambda: model.price(PROMPT_TOKENS, REPLY_TOKENS) or 0.0
        opened = reopen_run(results, run.id, fingerprints=marks, redact=wiring.redact, fault=wiring.fault())
    else:
        opened = open_run(results, run, redact=wiring.redact, fault=wiring.fault())
    with opened as run_writer:
        stopping = Stop()
        return blocking(_perform(plan, model, run_writer, concurrency, spending, stopping), stopping)


def model_run(
    suite: str, prefix: str, data: str, model: ResolvedModel, marks: Mapping[str, Fingerprint], planned: int
) -> Run:
    """Return a new run that asks one model about `data`. Its id is `prefix` and a digest of the fingerprints."""
    return Run(
        id=f"{prefix}_{digest(marks)[:8]}",
        suite=suite,
        spec={"benchmarks": [data], "providers": [model.name]},
        fingerprints=marks,
        program=f"memorybench {__version__}",
        planned=planned,
    )


async def _perform(
    plan: Callable[[Model], Plan],
    model: ResolvedModel,
    run_writer: RunWriter,
    concurrency: int,
    budget: Budget,
    stopping: Stop,
) -> Ending:
    async with AsyncExitStack() as stack:
        opened = plan(await model.open(stack))
        ending = await perform(opened, run_writer, concurrency=concurrency, budget=budget, stopping=stopping)
    run_writer.end(ending.status)
    return ending


def _was_begun(results: Path, run_id: str) -> bool:
    if not journal_of(results).exists():
        return False
    with RunReader.open(results) as run_reader:
        return run_reader.has(run_id)
