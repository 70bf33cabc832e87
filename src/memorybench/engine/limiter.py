"""Concurrency and rate limits of one subject."""

from __future__ import annotations

import asyncio
import time

from memorybench.core.errors import Denied
from memorybench.core.plans import Limits

from .stopping import Stop


class RateLimiter:
    """Delays calls to one subject until its limits allow them: `async with limiter` around each call."""

    def __init__(self, name: str, limits: Limits, stopping: Stop) -> None:
        self.limits = limits
        self.stopping = stopping
        self.name = name
        self.failed_connections = 0
        """Connections that failed since the last reply."""
        self._slots = asyncio.Semaphore(limits.concurrency) if limits.concurrency else None
        self._interval = 1.0 / limits.per_second if limits.per_second else 0.0
        self._next_start = 0.0
        self._paused_until = 0.0
        self._closed: str | None = None

    async def __aenter__(self) -> None:
        if self._slots is not None:
            await self._slots.acquire()
        try:
            await self._wait_for_turn()
        except BaseException:
            await self.__aexit__()
            raise

    async def __aexit__(self, *_: object) -> None:
        if self._slots is not None:
            self._slots.release()

    def pause(self, seconds: float) -> None:
        """Delay all calls: a 429 applies to every caller."""
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)

    def close(self, reason: str) -> None:
        """Refuse all further calls: the subject denied access (401, 402, 403)."""
        self._closed = self._closed or reason

    async def _wait_for_turn(self) -> None:
        start = None
        while True:
            if self._closed is not None:
                raise Denied(f"{self.name}: access denied earlier in this run: {self._closed}")
            now = time.monotonic()
            if self._paused_until > now:
                start = None  # the turn is lost, so that callers do not all start when the pause ends
                await self.stopping.pause(self._paused_until - now)
                continue
            if not self._interval:
                return
            if start is None:
                start = max(now, self._next_start)
                self._next_start = start + self._interval
            if start <= now:
                return
            await self.stopping.pause(start - now)
