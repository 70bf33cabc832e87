"""Measures how long a service or other target worked, without the time that memorybench itself waited or worked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

T = TypeVar("T")

TIMING = "target"
"""Saved with each run, to say that its durations are target times. Older runs do not have it; their durations include
the time that memorybench itself waited."""


class TargetTime:
    """Measures the seconds of its `with` block, minus the seconds of the `excluded` blocks in it."""

    __slots__ = ("_start", "_token", "excluded", "seconds")

    def __init__(self) -> None:
        self.excluded = 0.0
        self.seconds = 0.0

    def __enter__(self) -> TargetTime:
        self._token = _current.set(self)
        self._start = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = max(0.0, time.monotonic() - self._start - self.excluded)
        _current.reset(self._token)


_current: ContextVar[TargetTime | None] = ContextVar("memorybench_target_time", default=None)


@contextmanager
def excluded() -> Iterator[None]:
    """Exclude the time of the `with` block from the target time, because memorybench itself waits or works in it."""
    start = time.monotonic()
    try:
        yield
    finally:
        _exclude(time.monotonic() - start)


async def call_on_thread(thread: Executor | None, work: Callable[..., T], *arguments: Any) -> T:
    """Call `work` on the executor `thread` (None: the event loop's default) and return its result.

    Waiting for a free thread does not count as target time.
    """
    context = copy_context()  # so that spending is charged to the current step
    submitted = start = end = time.monotonic()

    def call() -> T:
        nonlocal start, end
        start = time.monotonic()
        try:
            return context.run(work, *arguments)
        finally:
            end = time.monotonic()

    try:
        return await asyncio.get_running_loop().run_in_executor(thread, call)
    finally:
        _exclude(start - submitted + time.monotonic() - end)


def _exclude(seconds: float) -> None:
    current = _current.get()
    if current is not None:
        current.excluded += seconds
