"""Concurrency and rate limits of one subject."""

from __future__ import annotations

import asyncio
import time

from memorybench.core.errors import Denied, ServiceError
from memorybench.core.plans import Limits
from memorybench.journal.run_writer import RunWriter

from .stopping import Stop

_SECONDS_BETWEEN_TRIES = 0.05


class RateLimiter:
    """Delays calls to one subject until its limits allow them: `async with limiter` around each call.

    A call is rejected instead if the subject denied access earlier, or asked for a wait that is longer than the limits
    allow.
    """

    def __init__(self, name: str, limits: Limits, stopping: Stop, shared_by: RunWriter | None = None) -> None:
        """Limit the calls of this process; with `shared_by`, those of all processes that write this run, together."""
        self.limits = limits
        self.stopping = stopping
        self.name = name
        self.failed_connections = 0
        """How many connections have failed in a row, since the last reply."""
        self._slots = asyncio.Semaphore(limits.concurrency) if limits.concurrency else None
        self._interval = 1.0 / limits.per_second if limits.per_second else 0.0
        self._next_start = 0.0
        self._paused_until = 0.0
        self._closed: str | None = None
        self._shared_by = shared_by
        self._shared_slots: list[int] = []
        """The numbers of the shared slots that this process holds."""

    async def __aenter__(self) -> None:
        if self._slots is not None:
            await self._slots.acquire()
            try:
                await self._take_shared_slot()
            except BaseException:
                self._slots.release()
                raise
        try:
            await self._wait_for_turn()
        except BaseException:
            await self.__aexit__()
            raise

    async def __aexit__(self, *_: object) -> None:
        if self._slots is not None:
            if self._shared_by is not None and not self.limits.per_process:
                self._shared_by.end_lease(self._slot_name(self._shared_slots.pop()))
            self._slots.release()

    async def _take_shared_slot(self) -> None:
        """Take one of the slots that all processes of the run share; wait for it if needed. Each slot is a lease.

        Do nothing if the limit applies to each process.
        """
        if self._shared_by is None or self.limits.per_process:
            return
        while True:
            for slot in range(self.limits.concurrency or 0):
                if slot not in self._shared_slots and self._shared_by.try_lease(self._slot_name(slot)):
                    self._shared_slots.append(slot)
                    return
            await self.stopping.pause(_SECONDS_BETWEEN_TRIES)

    def _slot_name(self, slot: int) -> str:
        return f"slot {slot} of {self.name}"

    def pause(self, seconds: float) -> None:
        """Start no call to the subject for some seconds, in any process of the run, because a 429 applies to all."""
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)
        if self._shared_by is not None:
            self._shared_by.pause(self.name, seconds)

    def close(self, reason: str) -> None:
        """Reject all further calls, because the subject denied access (401, 402, 403)."""
        self._closed = self._closed or reason

    def _pause_left(self, now: float) -> float:
        left = self._paused_until - now
        return left if self._shared_by is None else max(left, self._shared_by.pause_left(self.name))

    def _next_turn(self, now: float) -> float:
        """Reserve the next time at which the rate limit allows a call, and return it."""
        if self._shared_by is not None:
            return now + self._shared_by.next_turn(self.name, self._interval)
        start = max(now, self._next_start)
        self._next_start = start + self._interval
        return start

    async def _wait_for_turn(self) -> None:
        start = None
        while True:
            if self._closed is not None:
                raise Denied(f"{self.name}: not called, because it denied access earlier in this run: {self._closed}")
            now = time.monotonic()
            if (left := self._pause_left(now)) > self.limits.longest_delay:
                raise ServiceError(
                    f"{self.name}: not called, because it asked earlier in this run to wait, for another {left:.0f} s;"
                    " resume the run later"
                )
            if left > 0:
                start = None  # the turn is lost, so that callers do not all start when the pause ends
                await self.stopping.pause(left)
                continue
            if not self._interval:
                return
            if start is None:
                start = self._next_turn(now)
            if start <= now:
                return
            await self.stopping.pause(start - now)
