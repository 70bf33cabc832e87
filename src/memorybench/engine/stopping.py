"""Stops a run. The first Ctrl-C or SIGTERM lets running calls finish and be recorded; the second exits at once.

A terminal that is closed sends SIGHUP, which counts like a first SIGTERM: otherwise an agent would go on spending. It
may send SIGHUP twice, so SIGHUP never ends the calls in flight.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_EXIT_INTERRUPTED = 130


class Interrupted(BaseException):
    """Raised in a job if the run is stopping. The job gets no outcome; a resumed run performs it.

    Not a subclass of Exception, so that no suite handles it as a failure of its subject.
    """


class Stop(asyncio.Event):
    """An event that is set when the run must stop: the user asks for it, or a service cannot be reached."""

    reason = ""
    """Why the run stops; "" if the user asked for it, or if the run is not stopping."""
    at_once: Callable[[], None] | None = None
    """Called at the second Ctrl-C, to end the work of processes that this one started; None: there are none."""
    last_words = ""
    """Printed at the second Ctrl-C: how to continue the run."""
    loop: asyncio.AbstractEventLoop | None = None
    """The event loop of the run; None before `perform` is called."""

    def set_from_thread(self) -> None:
        """Stop the run from another thread. Calls in flight finish and are recorded."""
        if self.loop is None:
            self.set()
        else:
            self.loop.call_soon_threadsafe(self.set)

    def give_up(self, reason: str) -> None:
        """Stop the run because of a problem, unless it is stopping already. Calls in flight finish and are recorded."""
        if not self.is_set():
            self.reason = reason
            self.set()

    def check(self) -> None:
        """Raise Interrupted if the run is stopping."""
        if self.is_set():
            raise Interrupted

    async def pause(self, seconds: float) -> None:
        """Sleep for `seconds`. Raise Interrupted as soon as the run is stopping."""
        self.check()
        try:
            await asyncio.wait_for(self.wait(), seconds)
        except TimeoutError:
            return
        raise Interrupted


@contextmanager
def stop_on_signals(stopping: Stop) -> Iterator[None]:
    """While the context is open, let the first SIGINT, SIGTERM or SIGHUP set `stopping`; the second exits the process.

    A second SIGHUP does nothing. SIGHUP stays ignored if it is (`nohup`). Do nothing outside the main thread.
    """
    loop = asyncio.get_running_loop()
    numbers = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]

    def handle_signal(number: int) -> None:
        if stopping.is_set():
            if number == signal.SIGHUP:
                return
            from memorybench.processes.programs import abandon_all

            # finished steps are already on disk
            _print("\nstopped at once; calls in flight may have been charged")
            abandon_all()  # an agent that keeps running would keep spending
            if stopping.at_once is not None:
                stopping.at_once()
            if stopping.last_words:
                _print(stopping.last_words)
            os._exit(_EXIT_INTERRUPTED)
        stopping.set()
        _print("\nfinishing the calls in flight (Ctrl-C again stops at once) …")

    try:
        for number in numbers:
            loop.add_signal_handler(number, handle_signal, number)
    except (ValueError, RuntimeError, NotImplementedError):
        yield  # not in the main thread: the main thread handles signals
        return
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _print(text: str) -> None:
    with suppress(OSError):  # the terminal is closed
        print(text, file=sys.stderr, flush=True)
