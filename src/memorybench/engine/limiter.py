"""Per subject: how many calls at once, how often, and when to leave it alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from memorybench.core.errors import Denied
from memorybench.core.plans import Limits
from memorybench.core.trials import Subject

from .stopping import Stop


class Gate:
    """What stands between us and one subject."""

    def __init__(self, name: str, limits: Limits, stopping: Stop) -> None:
        self.limits = limits
        self.stopping = stopping
        self._name = name
        self._slots = asyncio.Semaphore(limits.concurrency) if limits.concurrency else None
        self._interval = 1.0 / limits.per_second if limits.per_second else 0.0
        self._next_start = 0.0
        self._paused_until = 0.0
        self._closed: str | None = None

    async def __aenter__(self) -> None:
        """One call. Waits for a slot and for its turn; refuses once the subject has denied us."""
        if self._slots is None:
            await self._turn()
            return
        await self._slots.acquire()
        try:
            await self._turn()
        except BaseException:
            self._slots.release()
            raise

    async def __aexit__(self, *_: object) -> None:
        if self._slots is not None:
            self._slots.release()

    def pause(self, seconds: float) -> None:
        """Nobody calls before that: a 429 is meant for all of us."""
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)

    def close(self, reason: str) -> None:
        """The subject denied us (401, 402, 403): it is asked nothing more in this run."""
        self._closed = self._closed or reason

    async def _turn(self) -> None:
        while True:
            if self._closed is not None:
                raise Denied(f"{self._name} is not asked any more: {self._closed}")
            now = time.monotonic()
            if self._paused_until > now:
                await self.stopping.pause(self._paused_until - now)
                continue
            if not self._interval:
                return
            mine = max(now, self._next_start)
            self._next_start = mine + self._interval
            if mine <= now:
                return
            await self.stopping.pause(mine - now)
            if self._closed is None and self._paused_until <= time.monotonic():
                return


class Gates:
    def __init__(self, limits: Mapping[str, Limits], stopping: Stop) -> None:
        self._limits = limits
        self._stopping = stopping
        self._gates: dict[str, Gate] = {}

    def of(self, subject: Subject | None) -> Gate:
        key = subject.key if subject else ""
        gate = self._gates.get(key)
        if gate is None:
            name = f"{subject.role} {subject.name}" if subject else "the step"
            gate = self._gates[key] = Gate(name, self._limits.get(key, Limits()), self._stopping)
        return gate
