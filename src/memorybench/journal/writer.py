"""Group commit, in two stages.

A row is first *written*: committed without waiting for the disk. That takes microseconds and happens on the event loop;
from then on the row outlives this process. Then it *lands*: a thread waits for the disk, once for all that was written
meanwhile; from then on it outlives a power cut, too. So the results of a killed process are lost only while they are
on the network, and nobody who has to be sure waits for more than one or two turns of the disk.

SQLite's own name for this is `synchronous=NORMAL`, whose commits keep their order and are never torn; that they have
reached the disk is what the thread sees to. (A thread that inserts and commits, too, loses the interpreter lock at
every row and gets it back 5 ms later.)
"""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

from memorybench.core.errors import JournalError

from .database import BUSY_SECONDS, FILE_NAME, log_of, open_for_writing, translated

Statement = tuple[str, Sequence[Any] | Mapping[str, Any]]
Landing = asyncio.Future[None]
"""Done when rows are on disk."""

_TIDIED_EVERY = 1000
"""Rows after which the log is moved into the file."""
_LONG_LOG = 8_000
"""Pages. A log of that length is not left to grow on."""
_OUR_TURN = 20
_TIDYING = 2_000
"""Milliseconds to wait for others while the log is tidied: usually, and where it must not grow on."""
_FEW = 8
_PAUSE = 0.003
"""Seconds. Where more than a few land at a time, the thread rests a little, so that still more land at the next."""


class _Entry(NamedTuple):
    statements: Sequence[Statement]
    landing: Landing
    written: Callable[[], None] | None


class _Handed(NamedTuple):
    """To the thread."""

    landings: list[Landing]
    tidy: bool
    loop: asyncio.AbstractEventLoop


class Writer:
    def __init__(self, folder: Path, *, fault: Callable[[], None] | None = None) -> None:
        """`fault` is called before and after every commit: tests kill the process there."""
        self.path = folder / FILE_NAME
        self._db = open_for_writing(folder)
        self._tidier = connection(self.path)
        """The thread's own: two threads at once confuse a connection."""
        self._log: int | None = None
        self._rows = 0
        self._fault = fault or (lambda: None)
        self._handed: SimpleQueue[_Handed | None] = SimpleQueue()
        self._thread = Thread(target=self._keep_landing, name="journal", daemon=True)
        self._thread.start()
        self._waiting: list[_Entry] = []
        self._alone = 0
        """How many of those that wait are committed each by itself: one of them is bad."""
        self._flushed_by: asyncio.AbstractEventLoop | None = None
        """The loop that is about to write what waits; None: nothing waits."""
        self._written: list[Landing] = []
        self._told_to: asyncio.AbstractEventLoop | None = None
        """The loop that hears from the thread next; None: the thread rests."""
        self._patience_ends: float | None = None

    def write(self, statements: Sequence[Statement], written: Callable[[], None] | None = None) -> Landing:
        """All of the statements or none, after all that was handed in before. `written` is called as soon as they
        outlive this process; who awaits what is returned knows them on disk."""
        loop = asyncio.get_running_loop()
        landing: Landing = loop.create_future()
        self._waiting.append(_Entry(statements, landing, written))
        if self._flushed_by is not loop:
            self._flushed_by, self._patience_ends = loop, None
            loop.call_soon(self._flush, loop)  # when all who are ready now have come
        return landing

    def write_now(self, statements: Sequence[Statement]) -> None:
        """The same for callers outside a loop: opening and closing a run."""
        with translated(self.path):
            self._patience_ends = None
            while not self._begins():
                time.sleep(_moment())
            self._commit([statements])
            self._reach_disk()

    def close(self) -> None:
        self._handed.put(None)
        self._thread.join()
        self._tidier.close()
        self._db.close()
        if self._log is not None:
            # nobody need wait while the file system frees the log, which is gone by now
            Thread(target=os.close, args=(self._log,)).start()

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        self._flushed_by = None
        try:
            with translated(self.path):
                begun = self._begins()
        except Exception as error:
            failed, self._waiting = self._waiting, []
            _tell([entry.landing for entry in failed], self._told(error))
            return
        if begun:
            self._settle(self._taken())
            self._hand_to_thread(loop)
        if self._waiting:
            self._flushed_by = loop
            loop.call_later(0 if begun else _moment(), self._flush, loop)

    def _taken(self) -> list[_Entry]:
        size = 1 if self._alone else len(self._waiting)
        self._alone = max(0, self._alone - 1)
        batch, self._waiting = self._waiting[:size], self._waiting[size:]
        return batch

    def _settle(self, batch: list[_Entry]) -> None:
        """In the transaction that has begun."""
        try:
            with translated(self.path):
                self._commit([entry.statements for entry in batch])
        except Exception as error:
            if len(batch) > 1:  # one bad entry must not take its neighbours down
                self._waiting = batch + self._waiting
                self._alone = len(batch)
            else:
                _tell([entry.landing for entry in batch], self._told(error))
            return
        for entry in batch:
            self._written.append(entry.landing)
            if entry.written is not None:
                with suppress(RuntimeError):  # who waits for that was of a loop that has ended
                    entry.written()

    def _begins(self) -> bool:
        """Whether it is our turn among the processes that share the file. Raises where it never comes."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:  # the rest of it tells what keeps them busy
                raise
            now = time.monotonic()
            self._patience_ends = self._patience_ends or now + BUSY_SECONDS
            if now > self._patience_ends:
                self._patience_ends = None
                held = f"other processes held it for {BUSY_SECONDS:.0f} s"
                raise JournalError(f"{self.path}: {held}; resume the run") from error
            return False
        self._patience_ends = None
        return True

    def _commit(self, batch: Sequence[Sequence[Statement]]) -> None:
        try:
            execute = self._db.cursor().execute
            for statements in batch:
                self._rows += len(statements)
                for sql, values in statements:
                    execute(sql, values)
            self._fault()
            self._db.execute("COMMIT")
            self._fault()
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _hand_to_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._told_to is loop or not self._written:
            return
        landings, self._written, self._told_to = self._written, [], loop
        tidy = self._rows >= _TIDIED_EVERY
        if tidy:
            self._rows = 0
        self._handed.put(_Handed(landings, tidy, loop))

    def _keep_landing(self) -> None:
        """The thread."""
        while (handed := self._handed.get()) is not None:
            failed = None
            try:
                with translated(self.path):
                    self._reach_disk()
                    if handed.tidy:
                        self._tidy()
            except Exception as error:
                failed = self._told(error)
            with suppress(RuntimeError):  # its loop has ended meanwhile: nobody waits any more
                handed.loop.call_soon_threadsafe(self._heard, handed.landings, failed, handed.loop)

    def _heard(self, landings: list[Landing], failed: JournalError | None, loop: asyncio.AbstractEventLoop) -> None:
        if len(landings) > _FEW:
            loop.call_later(_PAUSE, self._hand_on, loop)
        else:
            self._hand_on(loop)
        _tell(landings, failed)

    def _hand_on(self, loop: asyncio.AbstractEventLoop) -> None:
        self._told_to = None
        self._hand_to_thread(loop)

    def _reach_disk(self) -> None:
        try:
            if self._log is None:
                self._log = os.open(log_of(self.path), os.O_RDWR)
            _sync(self._log)
        except OSError as error:
            raise JournalError(f"{self.path}: {error}; free or mend the disk, then resume the run") from error

    def _tidy(self) -> None:
        """Moves the log into the file, as far as others who read just now allow: most of it while we go on writing, the
        rest while nobody writes, so that the log is then written over. One that is cut off instead would take twice as
        long to reach the disk."""
        with suppress(sqlite3.OperationalError):  # what has landed has landed; the next time will do
            self._moved("PASSIVE", _OUR_TURN)
            pages, moved = self._moved("FULL", _OUR_TURN)
            if pages > max(moved, _LONG_LOG):
                self._moved("RESTART", _TIDYING)  # another process writes faster than we tidy: it has to wait for once

    def _moved(self, how: str, milliseconds: int) -> tuple[int, int]:
        """Pages of the log, and how many of them are in the file."""
        self._tidier.execute(f"PRAGMA busy_timeout={milliseconds}")
        _, pages, moved = self._tidier.execute(f"PRAGMA wal_checkpoint({how})").fetchone()
        return pages, moved

    def _told(self, error: Exception) -> JournalError:
        return error if isinstance(error, JournalError) else JournalError(f"{self.path}: {error}")


def _tell(landings: list[Landing], error: JournalError | None) -> None:
    for landing in landings:
        # a task may have been cancelled meanwhile, and a loop may have ended: nobody waits there any more
        if landing.done() or landing.get_loop().is_closed():
            continue
        if error is None:
            landing.set_result(None)
        else:
            landing.set_exception(error)
            landing.exception()  # seen: who was to await it may have been stopped meanwhile


def _moment() -> float:
    """Uneven, so that among several processes nobody is always second."""
    return random.uniform(0.001, 0.01)


_sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)


def connection(path: Path) -> sqlite3.Connection:
    """One more connection to a file that is being written."""
    with translated(path):
        return sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False)
