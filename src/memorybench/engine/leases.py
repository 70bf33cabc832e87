"""Lets several processes share a run. Each takes leases on units of work: the trials of one subject and one cluster."""

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
"""The most leases on units that a process keeps. It keeps them because it has filled the memory for a unit's next
jobs."""
_SECONDS_BETWEEN_TRIES = 0.2
_SECONDS_BETWEEN_READS = 0.5
"""The seconds between two reads of other processes' outcomes, while there are jobs to begin."""
_SECONDS_BETWEEN_WHOLE_READS = 5.0
"""The seconds between two reads of all trials that have ended, which is slow in a large run."""


@asynccontextmanager
async def lease(run_writer: RunWriter, name: str, stopping: Stop) -> AsyncIterator[None]:
    """Wait until no other process has the lease `name`, then hold it while the context is open.

    Raise Interrupted if the run is stopping.
    """
    while not run_writer.try_lease(name):
        await stopping.pause(_SECONDS_BETWEEN_TRIES)
    try:
        yield
    finally:
        run_writer.end_lease(name)


class LeasedJobs:
    """Returns the jobs of a run one by one, each when its unit is leased to this process.

    A job of a unit that another process has leased waits until that process has performed it or ends the lease.
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
        """Keys of trials that have ended in any process. Those that ended a moment ago may be missing."""
        self._next_read = 0.0
        self._next_whole_read = 0.0

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
        """Note that a job that `next` returned has ended: it has an outcome."""
        self._in_flight[_unit(job)] -= 1

    def ended(self) -> int:
        """Return how many trials have ended in all processes: see RunWriter.ended_trials."""
        return len(self._run_writer.ended_trials())

    def is_any_blocked(self) -> bool:
        """Return whether any trial of the run has the outcome `blocked`."""
        return self._run_writer.has_outcome("blocked")

    async def _next_waiting(self) -> Job | None:
        """Return a waiting job whose unit this process could lease; wait while other processes have all of these units.

        Return None when no job is waiting any more.
        """
        async with self._polling:
            while self._waiting:
                self._ended |= self._run_writer.newly_ended_trials()
                self._drop_ended()
                free = next(filter(self._has_lease, dict.fromkeys(map(_unit, self._waiting))), None)
                if free is not None:
                    self._run_writer.end_lost_attempts()  # the process that had the lease may have died
                    job = next(job for job in self._waiting if _unit(job) == free)
                    self._waiting = [one for one in self._waiting if one is not job]
                    return job
                if time.monotonic() >= self._next_whole_read:
                    self._ended = self._run_writer.ended_trials()  # all of them, because some may be missing
                    self._next_whole_read = time.monotonic() + _SECONDS_BETWEEN_WHOLE_READS
                    self._drop_ended()
                if self._waiting:
                    await self._stopping.pause(_SECONDS_BETWEEN_TRIES)
        return None

    def _drop_ended(self) -> None:
        self._waiting = [job for job in self._waiting if job.trial.key not in self._ended]

    def _is_known_to_have_ended(self, job: Job) -> bool:
        """Return whether a job has ended in any process. May be out of date by _SECONDS_BETWEEN_READS."""
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
        """If there are _MOST_UNITS leases, end the least recently used ones that have no job in flight."""
        surplus = len(self._leases) + 1 - _MOST_UNITS
        idle = [unit for unit in self._leases if not self._in_flight[unit]]
        for unit in idle[: max(surplus, 0)]:
            del self._leases[unit]
            self._run_writer.end_lease(unit)


def _unit(job: Job) -> str:
    trial = job.trial
    return f"unit {trial.benchmark}/{trial.subject.key}/{trial.cluster}"
