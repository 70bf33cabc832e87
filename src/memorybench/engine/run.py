"""Performs a plan: workers take its jobs, perform them and record their outcomes."""

from __future__ import annotations

import asyncio
import resource
import traceback
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from memorybench.core.errors import Blocked, JournalError, Lacking, MemorybenchError, Unreadable
from memorybench.core.garbage import garbage_collected_rarely
from memorybench.core.plans import Job, Plan, Watch
from memorybench.core.trials import Failure, Outcome, Status, Trial
from memorybench.journal.rows import RunStatus, storable
from memorybench.journal.run_writer import RunWriter

from .budget import Budget
from .leases import LeasedJobs, lease
from .steps import JobSteps, RunSteps
from .stopping import Interrupted, Stop, stop_on_signals

if TYPE_CHECKING:
    from .observing import Observer, TrialObserver

_OTHER_FILES = 200
"""How many files a process may have open besides its calls in flight."""


class Ending(Struct, frozen=True):
    """How a run ended."""

    status: RunStatus
    interrupted: bool
    performed: int
    """How many trials this process performed, with any status."""
    paused: str = ""
    """Why the run stopped early without the user's request: a service cannot be reached. Empty if it did not."""
    is_blocked: bool = False
    """Whether the budget is used up and work remains that needs it."""


async def perform(
    plan: Plan,
    run_writer: RunWriter,
    *,
    concurrency: int = 10,
    budget: Budget | None = None,
    watch: Watch | None = None,
    stopping: Stop | None = None,
    observer: Observer | None = None,
) -> Ending:
    """Perform every job of the plan whose trial is not scored in the journal, with at most `concurrency` calls at once.

    None for `budget` means no limit. To stop the run from code, pass a `stopping` and set it; signals set it, too.
    """
    _allow_open_files(concurrency + _OTHER_FILES)
    stopping = stopping or Stop()
    stopping.loop = asyncio.get_running_loop()
    budget = budget or Budget()
    budget.recount = run_writer.recount_spending
    if run_writer.is_shared:
        budget.read_total = run_writer.spending
    run_steps = RunSteps(run_writer, plan.limits, budget, stopping, concurrency, watch)
    queue = _JobQueue(plan, run_writer, stopping)
    with stop_on_signals(stopping), garbage_collected_rarely():
        try:
            if plan.opening is not None and not queue.is_finished:
                async with lease(run_writer, "opening", stopping):
                    await plan.opening(JobSteps(run_steps, _start(observer, None)))
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(concurrency, plan.size)):
                    workers.create_task(_work(queue, run_steps, stopping, watch, observer))
            ending = queue.ending(stopping, budget)
            if ending.status == "complete" and plan.closing is not None:
                async with lease(run_writer, "closing", stopping):
                    await plan.closing(JobSteps(run_steps, _start(observer, None)))
        except* JournalError as group:
            raise group.exceptions[0] from None
        except* Interrupted:  # in `opening` or `closing`: a resumed run performs them
            ending = queue.stopped(stopping)
        except* Blocked:
            # the budget was used up in `opening` or `closing`
            ending = Ending("partial", False, queue.performed, is_blocked=True)
    return ending


def _allow_open_files(count: int) -> None:
    """Allow this process to open so many files, if the system lets it. macOS allows 256 unless a process asks."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class _JobQueue:
    """Returns the jobs that are still to do, in the order of the plan, and counts how they end."""

    def __init__(self, plan: Plan, run_writer: RunWriter, stopping: Stop) -> None:
        ended = run_writer.ended_trials() if run_writer.is_shared else run_writer.scored()
        self._size = plan.size
        self._ended_before = len(ended)
        self.is_finished = len(ended) >= plan.size
        # a finished run is resumed without creating its jobs again
        self._jobs: Iterator[Job] = iter(
            () if self.is_finished else (job for job in plan.jobs if job.trial.key not in ended)
        )
        self._leased = LeasedJobs(self._jobs, run_writer, stopping) if run_writer.is_shared else None
        self.performed = 0
        self.blocked = 0

    async def next(self) -> Job | None:
        return next(self._jobs, None) if self._leased is None else await self._leased.next()

    def end(self, job: Job) -> None:
        if self._leased is not None:
            self._leased.end(job)

    def stopped(self, stopping: Stop) -> Ending:
        return Ending("partial", not stopping.reason, self.performed, stopping.reason)

    def ending(self, stopping: Stop, budget: Budget) -> Ending:
        budget.refresh()  # other processes may have used it up while this one waited for them
        is_any_blocked = self.blocked > 0 or (self._leased is not None and self._leased.is_any_blocked())
        is_blocked = budget.exhausted and is_any_blocked
        # another process may have resumed the run meanwhile, so that trials which ended are tried again
        done = self._leased.ended() if self._leased else self.performed + self._ended_before
        if stopping.is_set() and done < self._size:
            return self.stopped(stopping)
        is_complete = done >= self._size and not is_blocked
        return Ending("complete" if is_complete else "partial", False, self.performed, is_blocked=is_blocked)


def _start(observer: Observer | None, trial: Trial | None) -> TrialObserver | None:
    if observer is not None:
        with suppress(Exception):  # an error in an observer must not stop the run
            return observer.start(trial)
    return None


def _end(observer: TrialObserver | None, outcome: Outcome | None) -> None:
    if observer is not None:
        with suppress(Exception):
            observer.end(outcome)


async def _work(
    queue: _JobQueue, run_steps: RunSteps, stopping: Stop, watch: Watch | None, observer: Observer | None
) -> None:
    """Perform jobs from the queue, one after the other, until none is left or the run stops."""
    while not stopping.is_set():
        observed = None
        try:
            job = await queue.next()
            if job is None:
                return
            observed = _start(observer, job.trial)
            outcome = await _perform_job(job, JobSteps(run_steps, observed))
        except Interrupted:
            _end(observed, None)
            return
        await run_steps.run_writer.record_outcome(outcome, job.ordinal, job.case)
        _end(observed, outcome)
        queue.end(job)
        queue.performed += 1
        queue.blocked += outcome.status == "blocked"
        if watch is not None:
            with suppress(Exception):  # an error in showing progress must not stop the run
                watch.add_outcome(outcome)


async def _perform_job(job: Job, steps: JobSteps) -> Outcome:
    try:
        performed = await job.perform(steps)
    except (Interrupted, JournalError):
        raise
    except (Exception, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise  # this worker was cancelled; otherwise the subject's own code cancelled something
        status, failure = _failure(error)
        return Outcome(trial=job.trial, status=status, steps=tuple(steps.keys), failure=failure, shown=job.shown)
    return Outcome(
        trial=job.trial,
        status="unscored" if performed.unscored else "scored",
        scores=performed.scores,
        steps=tuple(steps.keys),
        failure=performed.unscored,
        shown=performed.shown,
    )


_STATUS_BY_ERROR: tuple[tuple[type[MemorybenchError], Status], ...] = (
    (Unreadable, "unscored"),
    (Lacking, "skipped"),
    (Blocked, "blocked"),
)


def _failure(error: BaseException) -> tuple[Status, Failure]:
    kind, message = type(error).__name__, storable(str(error))
    if isinstance(error, MemorybenchError):
        # failures of shared steps are stored for other jobs: drop the frames they passed through
        error.__traceback__ = error.__cause__ = error.__context__ = None
        status: Status = next((status for type_, status in _STATUS_BY_ERROR if isinstance(error, type_)), "failed")
        return status, Failure(kind=kind, message=message)
    # unexpected: this job fails, the others go on, and the traceback is recorded
    return "failed", Failure(kind=kind, message=message, traceback=storable("".join(traceback.format_exception(error))))
