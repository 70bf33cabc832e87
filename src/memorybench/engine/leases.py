"""Several processes share a run: each takes leases on units of work, the questions of one history and subject."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from memorybench.core.plans import Job
from memorybench.journal.run_writer import RunWriter

from .stopping import Stop

_MOST_UNITS = 64
"""Leases that a process keeps, so that jobs of the same unit that follow later find its memory filled."""
_SECONDS_BETWEEN_TRIES = 0.2


@asynccontextmanager
async def lease(run_writer: RunWriter, name: str, stopping: Stop) -> AsyncIterator[None]:
    """Wait until no other process has the lease, and take it. Raise Interrupted if the run is stopping."""
    while not run_writer.try_lease(name):
        await stopping.pause(_SECONDS_BETWEEN_TRIES)
    try:
        yield
    finally:
        run_writer.end_lease(name)


class LeasedJobs:
    """Hands out jobs whose unit no other process works on.

    A job whose unit another process has a lease on waits until that process ends the job or the lease.
    """

    def __init__(self, jobs: Iterator[Job], run_writer: RunWriter, stopping: Stop) -> None:
        self._jobs = jobs
        self._run_writer = run_writer
        self._stopping = stopping
        self._waiting: list[Job] = []
        self._polling = asyncio.Lock()
        self._leases: OrderedDict[str, None] = OrderedDict()
        """Units that this process has a lease on, the least recently used first."""
        self._in_flight: Counter[str] = Counter()
        self.ended_elsewhere = 0

    async def next(self) -> Job | None:
        """Return the next job; None if every job has an outcome or is in flight in this process."""
        while True:
            job = next(self._jobs, None)
            if job is None:
                job = await self._next_waiting()
                if job is None:
                    return None
            unit = _unit(job)
            if not self._has_lease(unit):
                self._waiting.append(job)
            elif self._run_writer.has_ended(job.trial.key):
                self.ended_elsewhere += 1
            else:
                self._in_flight[unit] += 1
                return job

    def end(self, job: Job) -> None:
        """The job has an outcome, or was interrupted."""
        self._in_flight[_unit(job)] -= 1

    def is_any_blocked(self) -> bool:
        """Return whether the budget has blocked a job of any process."""
        return self._run_writer.has_outcome("blocked")

    async def _next_waiting(self) -> Job | None:
        """Return a job whose unit is free by now; wait while other processes work on all of them."""
        async with self._polling:
            while self._waiting:
                ended = self._run_writer.ended_trials()
                waiting = [job for job in self._waiting if job.trial.key not in ended]
                self.ended_elsewhere += len(self._waiting) - len(waiting)
                free = next((job for job in waiting if self._has_lease(_unit(job))), None)
                self._waiting = [job for job in waiting if job is not free]
                if free is not None:
                    return free
                if waiting:
                    await self._stopping.pause(_SECONDS_BETWEEN_TRIES)
        return None

    def _has_lease(self, unit: str) -> bool:
        if unit not in self._leases:
            if not self._run_writer.try_lease(unit):
                return False
            self._end_oldest()
            self._leases[unit] = None
        self._leases.move_to_end(unit)
        return True

    def _end_oldest(self) -> None:
        """Make room for one more lease, if units without a job in flight have leases."""
        surplus = len(self._leases) + 1 - _MOST_UNITS
        idle = [unit for unit in self._leases if not self._in_flight[unit]]
        for unit in idle[: max(surplus, 0)]:
            del self._leases[unit]
            self._run_writer.end_lease(unit)


def _unit(job: Job) -> str:
    trial = job.trial
    return f"unit {trial.benchmark}/{trial.subject.key}/{trial.cluster}"
