"""Shows the outcomes that all processes of a run record, not only those of this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from memorybench.core.errors import MemorybenchError
from memorybench.core.plans import Adding, Watch
from memorybench.core.trials import Outcome
from memorybench.journal.run_writer import RunWriter

from .budget import Budget

_SECONDS_BETWEEN_READS = 1.0
_LATE_ROWS = 1000
"""How many rows before the newest one are read again, because rows may be committed out of order."""


@asynccontextmanager
async def following(run_writer: RunWriter, budget: Budget, watch: Watch) -> AsyncIterator[Watch]:
    """Pass the outcomes of other processes to `watch` while the context is open.

    Yield the Watch that the outcomes of this process are added to.
    """
    feed = OutcomeFeed(run_writer, budget, watch)
    task = asyncio.create_task(feed.follow())
    try:
        yield feed
        feed.read()
    finally:
        task.cancel()


class OutcomeFeed:
    """Passes the outcomes of all processes to a Watch, each once. It is a Watch for the outcomes of this process."""

    def __init__(self, run_writer: RunWriter, budget: Budget, watch: Watch) -> None:
        self._run_writer = run_writer
        self._budget = budget
        self._watch = watch
        self._newest = 0
        self._shown: set[str] = set()
        self._next = 0.0

    def add_outcome(self, outcome: Outcome) -> None:
        if outcome.trial.key not in self._shown:
            self._shown.add(outcome.trial.key)
            with suppress(Exception):  # an error in showing progress must not stop the run
                self._watch.add_outcome(outcome)

    def add_sessions(self, adding: Adding) -> None:
        self._watch.add_sessions(adding)

    async def follow(self) -> None:
        """Show new outcomes until the task is cancelled."""
        while True:
            with suppress(MemorybenchError):  # the run itself notices that the database is lost
                self.read_sometimes()
            await asyncio.sleep(_SECONDS_BETWEEN_READS)

    def read_sometimes(self) -> None:
        """Show new outcomes.

        Do nothing if the last call was too recent, so that this takes at most a tenth of the time.
        """
        began = time.monotonic()
        if began >= self._next:
            self.read()
            self._next = time.monotonic() + 9 * (time.monotonic() - began)

    def read(self) -> None:
        """Show new outcomes, and what all processes have spent."""
        self._budget.refresh()
        for row, trial, body in self._run_writer.outcomes_after(self._newest - _LATE_ROWS):
            self._newest = max(self._newest, row)
            if trial not in self._shown:
                self.add_outcome(Outcome.model_validate_json(body))
