"""The first Ctrl-C (or SIGTERM) drains: running steps are finished and recorded. The second leaves at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from memorybench.processes.programs import abandon_all

from .stopping import Stop

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
EXIT_INTERRUPTED = 130


@contextmanager
def draining(stopping: Stop) -> Iterator[None]:
    """While open, signals set `stopping` instead of raising in the middle of anything."""
    loop = asyncio.get_running_loop()

    def heard() -> None:
        if stopping.is_set():
            # every finished step is on disk already: nothing is left to save
            print("\nleft at once; calls under way may have been charged", file=sys.stderr, flush=True)
            abandon_all()  # an agent that goes on alone would go on spending
            os._exit(EXIT_INTERRUPTED)
        stopping.set()
        print("\nfinishing the calls under way (Ctrl-C again leaves at once) …", file=sys.stderr, flush=True)

    try:
        for number in _SIGNALS:
            loop.add_signal_handler(number, heard)
    except (ValueError, RuntimeError, NotImplementedError):
        yield  # not in the main thread: whoever is there has the signals
        return
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
