"""Group commit: what returns is on disk, and a hundred concurrent steps share one fsync.

A single step pays one commit; under load the commits of all that wait are one. `synchronous=FULL` holds always.
Rows are inserted on the event loop, which takes microseconds; only what can block, the commit and the wait for other
processes, goes to a thread. (A thread that inserts, too, loses the interpreter lock at every row and gets it back
5 ms later.) The pump is a generator, which goes on in the very callback by which the thread reports: a busy loop comes
round to a task later than the disk to the next commit.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from memorybench.vocabulary.errors import JournalError

from .database import BUSY_SECONDS, FILE_NAME, open_for_writing, translated

Statement = tuple[str, Sequence[Any] | Mapping[str, Any]]
_Entry = tuple[Sequence[Statement], "asyncio.Future[None]"]
_Pump = Generator[Callable[[], None], None, None]
"""Yields what is to be done in the thread."""


class Writer:
    def __init__(self, folder: Path, *, fault: Callable[[], None] | None = None) -> None:
        """`fault` is called before and after every commit: tests kill the process there."""
        self.path = folder / FILE_NAME
        self._db = open_for_writing(folder)
        self._fault = fault or (lambda: None)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._waiting: list[_Entry] = []
        self._pumped_by: asyncio.AbstractEventLoop | None = None
        """The loop whose callbacks keep the pump going; None: it rests."""

    async def write(self, statements: Sequence[Statement]) -> None:
        """Returns when the statements are on disk, all or none of them."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.append((statements, future))
        if self._pumped_by is not loop:
            self._pumped_by = loop
            loop.call_soon(self._advance, self._pumping(), None, loop)  # when all who are ready now have come
        await future

    def write_now(self, statements: Sequence[Statement]) -> None:
        """The same for callers outside a loop: opening and closing a run."""
        with translated(self.path):
            self._begin()
            self._insert(statements)
            self._commit()

    def close(self) -> None:
        self._thread.shutdown()
        self._db.close()

    def _advance(self, pump: _Pump, error: Exception | None, loop: asyncio.AbstractEventLoop) -> None:
        """Goes on up to the next thing that can block, and leaves that to the thread."""
        self._pumped_by = None  # should it end here, whichever way
        try:
            work = next(pump) if error is None else pump.throw(error)
        except StopIteration:
            return
        self._pumped_by = loop
        self._thread.submit(self._perform, work, pump, loop)

    def _perform(self, work: Callable[[], None], pump: _Pump, loop: asyncio.AbstractEventLoop) -> None:
        failed = None
        try:
            work()
        except Exception as error:
            failed = error
        loop.call_soon_threadsafe(self._advance, pump, failed, loop)

    def _pumping(self) -> _Pump:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            yield from self._settling(batch)

    def _settling(self, batch: list[_Entry]) -> _Pump:
        try:
            with translated(self.path):
                if not self._begins_at_once():
                    yield self._begin
                for statements, _ in batch:
                    self._insert(statements)
                yield self._commit
        except Exception as error:
            self._roll_back()
            if len(batch) > 1:
                for entry in batch:  # one bad entry must not take its neighbours down
                    yield from self._settling([entry])
                return
            failed = error if isinstance(error, JournalError) else JournalError(f"{self.path}: {error}")
            _tell(batch, failed)
        else:
            _tell(batch, None)

    def _begins_at_once(self) -> bool:
        """Without waiting; False where another process is committing just now."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                return False
            raise
        return True

    def _begin(self) -> None:
        """Waits for our turn among the processes that share the file."""
        patience_ends = time.monotonic() + BUSY_SECONDS
        while not self._begins_at_once():
            if time.monotonic() > patience_ends:
                raise JournalError(f"{self.path}: other processes held it for {BUSY_SECONDS:.0f} s; resume the run")
            time.sleep(random.uniform(0.001, 0.01))  # uneven, so that nobody is always second

    def _insert(self, statements: Sequence[Statement]) -> None:
        for sql, values in statements:
            self._db.execute(sql, values)

    def _commit(self) -> None:
        self._fault()
        self._db.execute("COMMIT")
        self._fault()

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")


def _tell(batch: list[_Entry], error: Exception | None) -> None:
    for _, future in batch:
        if future.done():  # its task was cancelled while the commit ran
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)


def connection(path: Path) -> sqlite3.Connection:
    """A second connection for reads from the event loop: short look-ups by key."""
    with translated(path):
        return sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False)
