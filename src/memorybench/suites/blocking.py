"""Runs a coroutine to its end from ordinary code."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from memorybench.engine.stopping import Stop

T = TypeVar("T")


def blocking(work: Coroutine[Any, Any, T], stopping: Stop | None = None) -> T:
    """Run a coroutine and return its result; in a separate thread if an event loop is already running (a notebook).

    Signals do not reach that thread: Ctrl-C sets `stopping`, and this waits until the coroutine has ended.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        ended = thread.submit(asyncio.run, work)
        try:
            return ended.result()
        except KeyboardInterrupt:
            if stopping is None:
                raise
            with suppress(RuntimeError):  # the work has ended, and its event loop is closed
                stopping.set_from_thread()
            return ended.result()
