"""Commits statements in groups: one thread commits together what all callers have queued since its last commit.

COMMIT returns after the rows are on disk (SQLite: WAL and `synchronous=FULL`; Postgres: `synchronous_commit=on`).
Callers that arrive during one commit share the next one, and therefore one sync.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Event, Lock, Thread

from msgspec import Struct

from memorybench.core.errors import JournalError, MemorybenchError

from .contract import Connection, Journal, Values

HEARTBEAT_SECONDS = 10.0
Statement = tuple[str, Values]


class _Entry(Struct, eq=False):
    statements: Sequence[Statement]
    committed: asyncio.Future[None]
    is_resolved: bool = False
    """Whether the event loop has received the result of the commit. Only the loop's thread sets this field and
    `committed`."""


class Writer:
    """Commits statements to a journal."""

    def __init__(self, journal: Journal, *, fault: Callable[[], None] | None = None) -> None:
        """Open the journal for writing.

        `fault` is called before and after each commit; tests kill the process in it.
        """
        self.journal = journal
        self._db = journal.open_for_writing()
        self._lock = Lock()
        self._fault = fault or (lambda: None)
        self._queue: SimpleQueue[_Entry | None] = SimpleQueue()
        self._kept_alive: list[Connection] = []
        self._db.beat()
        self._is_closed = Event()
        self._thread = Thread(target=self._commit_groups, name="journal", daemon=True)
        self._heart = Thread(target=self._beat, name="heartbeat", daemon=True)
        self._thread.start()
        self._heart.start()

    def keep_alive(self, connection: Connection) -> None:
        """Send heartbeats on another connection, too, until `close`."""
        connection.beat()
        self._kept_alive.append(connection)

    async def write(self, statements: Sequence[Statement]) -> None:
        """Commit the statements, all or none of them, and return when they are on disk.

        If the calling task is cancelled, this still waits for the commit, because a queued commit cannot be undone.
        """
        loop = asyncio.get_running_loop()
        entry = _Entry(statements, loop.create_future())
        self._queue.put(entry)
        try:
            await entry.committed  # without `shield`, which adds a future and two callbacks
        except asyncio.CancelledError:
            if not entry.is_resolved:
                entry.committed = loop.create_future()
                await asyncio.wait([entry.committed])
            raise

    def write_now(self, statements: Iterable[Statement]) -> None:
        """Commit the statements, all or none, in the calling thread. Needs no event loop, unlike `write`."""
        self._commit([statements])

    def close(self) -> None:
        self._is_closed.set()
        self._queue.put(None)
        self._thread.join()
        self._heart.join()
        self._db.close()

    def _commit_groups(self) -> None:
        """Commit queued entries, group by group, until `close`. The writer's own thread runs this."""
        closing = False
        while not closing:
            entries = [self._queue.get()]
            while not self._queue.empty():
                entries.append(self._queue.get())
            closing = entries[-1] is None
            if group := [entry for entry in entries if entry is not None]:
                self._commit_group(group)

    def _beat(self) -> None:
        """Send heartbeats until `close`.

        Run in a separate thread, because a commit may take longer than leases last.
        """
        while not self._is_closed.wait(HEARTBEAT_SECONDS):
            for connection in self._kept_alive:
                with suppress(MemorybenchError):  # the next use of a lost connection raises the error
                    connection.beat()
            if self._lock.acquire(blocking=False):  # otherwise a commit uses the connection
                try:
                    with suppress(MemorybenchError):
                        self._db.beat()
                finally:
                    self._lock.release()

    def _commit_group(self, group: Sequence[_Entry]) -> None:
        failure = None
        try:
            self._commit([entry.statements for entry in group])
        except Exception as error:
            if len(group) > 1:  # one invalid entry must not fail the others
                for entry in group:
                    self._commit_group([entry])
                return
            failure = error if isinstance(error, JournalError) else JournalError(f"{self.journal.name}: {error}")
        for loop in {entry.committed.get_loop() for entry in group}:
            entries = [entry for entry in group if entry.committed.get_loop() is loop]
            with suppress(RuntimeError):  # the loop is closed, so there is no waiting caller
                loop.call_soon_threadsafe(_resolve, entries, failure)

    def _commit(self, batch: Sequence[Iterable[Statement]]) -> None:
        with self._lock, self.journal.errors():
            with self._db.batch() as execute:
                for statements in batch:
                    for sql, values in statements:
                        execute(sql, values)
                self._fault()
            self._fault()


def _resolve(entries: Sequence[_Entry], failure: JournalError | None) -> None:
    for entry in entries:
        entry.is_resolved = True
        if entry.committed.done():
            continue  # its caller is cancelled
        if failure is None:
            entry.committed.set_result(None)
        else:
            entry.committed.set_exception(failure)
            entry.committed.exception()  # marks it as retrieved: its caller may be cancelled
