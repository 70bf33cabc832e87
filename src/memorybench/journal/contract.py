"""The interface of a database that stores runs. sqlite.py and postgres.py implement it.

SQL is written once, with the parameters of SQLite (`?` and `:name`); postgres.py translates it.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

Values = Sequence[Any] | Mapping[str, Any]


class Row(Protocol):
    """A row whose columns are read by name."""

    def keys(self) -> Iterable[str]: ...

    def __getitem__(self, column: str, /) -> Any: ...


class Cursor(Protocol):
    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection to the database. Without `transaction`, each statement is committed on its own."""

    def execute(self, sql: str, values: Values = ..., /) -> Cursor:
        """Run a statement and return a cursor, which yields its rows as tuples."""

    def rows(self, sql: str, values: Values, *, many: bool) -> Iterator[Row]:
        """Yield the rows of a query. With `many`, not all are in memory at once. Other queries may run meanwhile."""

    def has_table(self, table: str) -> bool: ...

    def transaction(self) -> AbstractContextManager[None]:
        """Commit all statements of the block together; the rows are on disk when the block ends."""

    def batch(self) -> AbstractContextManager[Callable[[str, Values], object]]:
        """Like `transaction`, for statements that return no rows. Yields a function that the block calls with each one.

        A process that is stopped or killed in the block holds no locks for which other processes would wait.
        """

    def try_lease(self, name: str) -> bool:
        """Take the lease of this name; return False if another connection has it.

        A lease is an exclusive lock. It ends with the connection, also if the process dies.
        """

    def end_lease(self, name: str) -> None: ...

    def beat(self) -> None:
        """Tell the database that this process is alive.

        After the first call, the leases end if the connection is not used for some time. So it must be called at least
        every `writer.HEARTBEAT_SECONDS`, from any thread.
        """

    def close(self) -> None: ...


class Lock(Protocol):
    is_alone: bool
    """Whether no other process has the lock of the run."""

    def share(self) -> None:
        """Let other processes take the lock as well, if it was taken with `shared`."""

    def release(self) -> None: ...


class Journal(ABC):
    """The database of a results folder."""

    folder: Path
    """The results folder: reports and other files of the runs are in it."""
    can_share: bool
    """Whether several processes may write one run."""
    name: str
    """The name of the database in error messages: the path of a file, or an address without password."""

    @abstractmethod
    def exists(self) -> bool:
        """Return whether the database exists and has the tables of memorybench."""

    @abstractmethod
    def open_for_writing(self) -> Connection:
        """Open the database; create or migrate the tables if needed."""

    @abstractmethod
    def open_for_reading(self, *, thorough: bool = True) -> Connection:
        """Open the database; raise BadInput if it is missing or was written by a newer version.

        `thorough` checks the whole file for damage.
        """

    @abstractmethod
    def open_beside_writer(self) -> Connection:
        """Open another connection to a database that `open_for_writing` has opened."""

    @abstractmethod
    def attach_outcomes(
        self, connection: Connection, db: sqlite3.Connection, schema: str, run: str, first: int
    ) -> None:
        """Attach a database with the name `schema` to the SQLite connection `db`.

        Its table `outcomes` has at least the run's rows from the row number `first` on.
        """

    @abstractmethod
    def errors(self) -> AbstractContextManager[None]:
        """Return a context manager that replaces errors of the driver by those of memorybench, which say what to do."""

    @abstractmethod
    def lock(self, run: str, *, shared: bool = False) -> Lock:
        """Lock a run for writing; raise RunConflict if another process has it. A dead process has no lock.

        `shared` locks do not exclude each other if the journal can share runs.
        """

    @abstractmethod
    def is_locked(self, run: str) -> bool:
        """Return whether a process is writing the run."""

    @abstractmethod
    def free_space(self) -> None:
        """Return the space of deleted rows to the file system, where the database does not do so by itself."""
