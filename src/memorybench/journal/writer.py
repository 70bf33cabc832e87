"""One writing thread with group commit: what returns is on disk, and a hundred concurrent steps share one fsync.

A single step pays one commit; under load the commits of all that wait are one. `synchronous=FULL` holds always.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from memorybench.vocabulary.errors import JournalError

from .database import open_for_writing, translated

Statement = tuple[str, Sequence[Any]]
_Entry = tuple[Sequence[Statement], "asyncio.Future[None] | Future[None]"]


class Writer:
    def __init__(self, folder: Path, *, fault: Callable[[], None] | None = None) -> None:
        """`fault` is called before and after every commit: tests kill the process there."""
        self.path = folder / "results.db"
        self._db = open_for_writing(folder)
        self._fault = fault or (lambda: None)
        self._queue: SimpleQueue[_Entry | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="journal", daemon=True)
        self._thread.start()

    async def write(self, statements: Sequence[Statement]) -> None:
        """Returns when the statements are on disk, all or none of them."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.put((statements, future))
        await future

    def write_now(self, statements: Sequence[Statement]) -> None:
        """The same for callers outside a loop: opening and closing a run."""
        future: Future[None] = Future()
        self._queue.put((statements, future))
        future.result()

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()
        self._db.close()

    def _serve(self) -> None:
        while True:
            first = self._queue.get()
            if first is None:
                return
            batch, last = [first], False
            while not self._queue.empty():
                entry = self._queue.get()
                if entry is None:
                    last = True
                    break
                batch.append(entry)
            self._settle(batch)
            if last:
                return

    def _settle(self, batch: list[_Entry]) -> None:
        try:
            self._commit([statement for statements, _ in batch for statement in statements])
        except Exception as error:
            if len(batch) > 1:
                for entry in batch:  # one bad entry must not take its neighbours down
                    self._settle([entry])
                return
            failed = error if isinstance(error, JournalError) else JournalError(f"{self.path}: {error}")
            _resolve(batch, failed)
        else:
            _resolve(batch, None)

    def _commit(self, statements: Sequence[Statement]) -> None:
        with translated(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                for sql, values in statements:
                    self._db.execute(sql, values)
                self._fault()
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        self._fault()


def _resolve(batch: list[_Entry], error: Exception | None) -> None:
    waiting: list[asyncio.Future[None]] = []
    for _, future in batch:
        if isinstance(future, asyncio.Future):
            waiting.append(future)
        else:
            _tell([future], error)
    if waiting:
        with suppress(RuntimeError):  # the loop is gone: nobody waits any more, and the rows are on disk
            waiting[0].get_loop().call_soon_threadsafe(_tell, waiting, error)


def _tell(futures: Sequence[asyncio.Future[None] | Future[None]], error: Exception | None) -> None:
    for future in futures:
        if future.done():  # its task was cancelled while the commit ran
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)


def connection(path: Path) -> sqlite3.Connection:
    """A second connection for reads from the event loop: short look-ups by key."""
    with translated(path):
        return sqlite3.connect(path, isolation_level=None, timeout=120.0, check_same_thread=False)
