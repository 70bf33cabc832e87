"""Workers fed by an iterator, and how a run ends."""

from __future__ import annotations

import asyncio
import gc
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from memorybench.core.errors import Blocked, JournalError, Lacking, MemorybenchError, Unreadable
from memorybench.core.plans import Job, Plan
from memorybench.core.trials import Failure, Outcome, Status
from memorybench.journal.rows import RunStatus, storable
from memorybench.journal.run_writer import RunWriter
from memorybench.journal.writer import Landing

from .budget import Budget
from .limiter import Gates
from .signals import draining
from .steps import JobSteps, SharedSteps
from .stopping import Interrupted, Stop

Watch = Callable[[Outcome], None]


@dataclass(frozen=True, slots=True)
class Ending:
    status: RunStatus
    interrupted: bool
    performed: int
    """Trials settled now; those settled before are not done again."""


async def perform(
    plan: Plan,
    run_writer: RunWriter,
    *,
    concurrency: int = 10,
    budget: Budget | None = None,
    watch: Watch | None = None,
) -> Ending:
    """Performs every job the journal does not hold as scored, with at most `concurrency` calls at once."""
    stopping = Stop()
    budget = budget or Budget()
    shared = SharedSteps(run_writer, Gates(plan.limits, stopping), budget, stopping, concurrency)
    feed = _Feed(plan, run_writer.scored())
    watch = watch or (lambda outcome: None)
    with draining(stopping), collecting_rarely():
        try:
            if plan.opening is not None and not feed.finished:
                await plan.opening(JobSteps(shared))
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(_begun_at_once(concurrency), plan.size)):
                    workers.create_task(_work(feed, shared, stopping, watch))
                    await asyncio.sleep(0)  # the first call leaves before the last job begins
            ending = _ending(feed, stopping, budget)
            if ending.status == "complete" and plan.closing is not None:
                await plan.closing(JobSteps(shared))
        except* JournalError as group:
            raise group.exceptions[0] from None
        except* Interrupted:
            ending = _ending(feed, stopping, budget)  # while opening or closing: no job was cut off
        except* Blocked:
            ending = Ending("partial", False, feed.settled)  # the budget did not even reach the first job
    return ending


def _begun_at_once(concurrency: int) -> int:
    """Jobs: while some call, others wait for the disk, and what others were told is read and scored. Where one call is
    made at a time, one job is."""
    return concurrency + 3 * (concurrency // 2)


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Many small objects live for one call each; looking for cycles among them every 700 costs a tenth of the CPU."""
    usual = gc.get_threshold()
    gc.set_threshold(20_000, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _ending(feed: _Feed, stopping: Stop, budget: Budget) -> Ending:
    if stopping.is_set() and (feed.dropped or feed.next()):
        return Ending("partial", True, feed.settled)
    whole = feed.settled + feed.scored == feed.size and not (budget.exhausted and feed.blocked)
    return Ending("complete" if whole else "partial", False, feed.settled)


class _Feed:
    """Hands out jobs in the order of the plan, leaving out what is scored already."""

    def __init__(self, plan: Plan, scored: set[str]) -> None:
        self._jobs = self._pending(plan, scored)
        self.size = plan.size
        self.scored = len(scored)
        self.finished = len(scored) >= plan.size
        self.settled = 0
        self.blocked = 0
        self.dropped = 0

    @staticmethod
    def _pending(plan: Plan, scored: set[str]) -> Iterator[Job]:
        if len(scored) >= plan.size:
            return  # a finished run is resumed without making its jobs again
        for job in plan.jobs:
            if job.trial.key not in scored:
                yield job

    def next(self) -> Job | None:
        return next(self._jobs, None)


async def _work(feed: _Feed, shared: SharedSteps, stopping: Stop, watch: Watch) -> None:
    """One job after the other, each while the outcome of the one before reaches the disk: the steps that an outcome
    rests on are there already, so a power cut that takes it costs no call."""
    landing: Landing | None = None
    while not stopping.is_set():
        job = feed.next()
        if job is None:
            break
        steps = JobSteps(shared)
        try:
            outcome = await _settle(job, steps)
        except Interrupted:
            feed.dropped += 1
            break
        if landing is not None:
            await landing
        landing = shared.run_writer.record_outcome(outcome, job.ordinal, job.case)
        feed.settled += 1
        feed.blocked += outcome.status == "blocked"
        watch(outcome)
    if landing is not None:
        await landing


async def _settle(job: Job, steps: JobSteps) -> Outcome:
    try:
        performed = await job.perform(steps)
    except (Interrupted, JournalError):
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise  # it is us who are to stop
        return _failed(job, steps, error)  # something below was cancelled: the subject's failure, not the end
    except Exception as error:
        return _failed(job, steps, error)
    return Outcome(
        trial=job.trial,
        status="unscored" if performed.unscored else "scored",
        scores=performed.scores,
        steps=tuple(steps.keys),
        failure=performed.unscored,
        shown=performed.shown,
    )


def _failed(job: Job, steps: JobSteps, error: BaseException) -> Outcome:
    status, failure = _failure(error)
    return Outcome(trial=job.trial, status=status, steps=tuple(steps.keys), failure=failure, shown=job.shown)


_STATUS_OF: tuple[tuple[type[MemorybenchError], Status], ...] = (
    (Unreadable, "unscored"),
    (Lacking, "skipped"),
    (Blocked, "blocked"),
)


def _failure(error: BaseException) -> tuple[Status, Failure]:
    if isinstance(error, MemorybenchError):
        # shared steps keep their failure for later siblings: let it not keep the frames it passed through
        error.__traceback__ = error.__cause__ = error.__context__ = None
        status: Status = next((status for kind, status in _STATUS_OF if isinstance(error, kind)), "failed")
        return status, Failure(kind=type(error).__name__, message=storable(str(error)))
    # not foreseen: one job fails, its siblings go on, and the traceback waits in the journal
    return "failed", Failure(
        kind=type(error).__name__,
        message=storable(str(error)),
        traceback=storable("".join(traceback.format_exception(error))),
    )
