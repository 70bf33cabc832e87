"""Group commit: what returns is on disk, and a hundred concurrent steps share one fsync.

A single step pays one commit; under load the commits of all that wait are one. `synchronous=FULL` holds always.
Rows are inserted on the event loop, which takes microseconds; only what can block, the commit and the wait for other
processes, goes to a thread. (A thread that inserts, too, loses the interpreter lock at every row and gets it back
5 ms later.)
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from memorybench.vocabulary.errors import JournalError

from .database import BUSY_SECONDS, FILE_NAME, open_for_writing, translated

Statement = tuple[str, Sequence[Any] | Mapping[str, Any]]
_Entry = tuple[Sequence[Statement], "asyncio.Future[None]"]


class Writer:
    def __init__(self, folder: Path, *, fault: Callable[[], None] | None = None) -> None:
        """`fault` is called before and after every commit: tests kill the process there."""
        self.path = folder / FILE_NAME
        self._db = open_for_writing(folder)
        self._fault = fault or (lambda: None)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._waiting: list[_Entry] = []
        self._pump: asyncio.Task[None] | None = None

    async def write(self, statements: Sequence[Statement]) -> None:
        """Returns when the statements are on disk, all or none of them."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.append((statements, future))
        if self._pump is None:
            self._pump = loop.create_task(self._pumping(loop))
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

    async def _pumping(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                await self._settle(batch, loop)
        finally:
            self._pump = None

    async def _settle(self, batch: list[_Entry], loop: asyncio.AbstractEventLoop) -> None:
        try:
            with translated(self.path):
                if not self._begins_at_once():
                    await loop.run_in_executor(self._thread, self._begin)
                for statements, _ in batch:
                    self._insert(statements)
                await loop.run_in_executor(self._thread, self._commit)
        except Exception as error:
            self._roll_back()
            if len(batch) > 1:
                for entry in batch:  # one bad entry must not take its neighbours down
                    await self._settle([entry], loop)
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
