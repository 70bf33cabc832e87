"""Several processes share a run: each takes leases on units of work, the questions of one history and subject."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from memorybench.core.plans import Job
from memorybench.journal.run_writer import RunWriter

from .stopping import Stop

_MOST_UNITS = 64
"""Leases that a process keeps, so that jobs of the same unit that follow later find its memory filled."""
_SECONDS_BETWEEN_TRIES = 0.2
_SECONDS_BETWEEN_READS = 0.5
"""How often the outcomes of other processes are read while there are jobs to begin."""


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
        self._ended: set[str] = set()
        """Keys of trials that have ended, in any process; some may be missing."""
        self._next_read = 0.0

    async def next(self) -> Job | None:
        """Return the next job; None if every job has an outcome or is in flight in this process."""
        while True:
            job = next(self._jobs, None)
            if job is None:
                job = await self._next_waiting()
                if job is None:
                    return None
            unit = _unit(job)
            if self._is_known_to_have_ended(job):
                continue
            if not self._has_lease(unit):
                self._waiting.append(job)
            elif not self._run_writer.has_ended(job.trial.key):
                self._in_flight[unit] += 1
                return job

    def end(self, job: Job) -> None:
        """The job has an outcome, or was interrupted."""
        self._in_flight[_unit(job)] -= 1

    def ended(self) -> int:
        """Return how many trials have ended, in any process."""
        return len(self._run_writer.ended_trials())

    def is_any_blocked(self) -> bool:
        """Return whether the budget has blocked a job of any process."""
        return self._run_writer.has_outcome("blocked")

    async def _next_waiting(self) -> Job | None:
        """Return a job whose unit is free by now; wait while other processes work on all of them."""
        async with self._polling:
            while self._waiting:
                self._ended |= self._run_writer.newly_ended_trials()
                self._drop_ended()
                free = next((job for job in self._waiting if self._has_lease(_unit(job))), None)
                if free is not None:
                    self._run_writer.end_lost_attempts()  # the process that had the lease may have died
                    self._waiting = [job for job in self._waiting if job is not free]
                    return free
                self._ended = self._run_writer.ended_trials()  # all of them: none may be missing now
                self._drop_ended()
                if self._waiting:
                    await self._stopping.pause(_SECONDS_BETWEEN_TRIES)
        return None

    def _drop_ended(self) -> None:
        self._waiting = [job for job in self._waiting if job.trial.key not in self._ended]

    def _is_known_to_have_ended(self, job: Job) -> bool:
        """Answer without a query most of the time: with many processes, most jobs end elsewhere."""
        if time.monotonic() >= self._next_read:
            self._ended |= self._run_writer.newly_ended_trials()
            self._next_read = time.monotonic() + _SECONDS_BETWEEN_READS
        return job.trial.key in self._ended

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
