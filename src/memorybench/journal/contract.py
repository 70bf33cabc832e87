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
        """Run one statement and return a cursor that yields the result rows as tuples."""

    def rows(self, sql: str, values: Values, *, many: bool) -> Iterator[Row]:
        """Yield the rows of a query. With `many`, the rows are loaded in parts. Other queries may run meanwhile."""

    def has_table(self, table: str) -> bool: ...

    def transaction(self) -> AbstractContextManager[None]:
        """Commit the statements of the block together, at its end; undo them if it raises.

        Committed rows are on disk.
        """

    def batch(self) -> AbstractContextManager[Callable[[str, Values], object]]:
        """Like `transaction`, for statements that return no rows. The block passes each to the function that it gets.

        A process that is suspended or killed inside the block does not make other processes wait for its locks.
        """

    def try_lease(self, name: str) -> bool:
        """Take the lease of this name; return False if another connection has it.

        A lease is an exclusive lock with a name. `end_lease` ends it, and so does the end of the connection or process.
        """

    def end_lease(self, name: str) -> None: ...

    def beat(self) -> None:
        """Tell the database that this process is alive.

        After the first call, an idle connection is closed after some time, which ends its leases. So call this at least
        every `writer.HEARTBEAT_SECONDS`, from any thread.
        """

    def close(self) -> None: ...


class Lock(Protocol):
    is_alone: bool
    """Whether the lock is exclusive; False if other processes have it, or may take it, as well."""

    def share(self) -> None:
        """Allow other processes to take the lock as well. Has no effect unless the lock was taken with `shared`."""

    def release(self) -> None: ...


class Journal(ABC):
    """The database of a results folder."""

    folder: Path
    """The results folder, which contains the reports and other files of the runs."""
    can_share: bool
    """Whether several processes may write the same run at the same time."""
    shared_tables: Sequence[str] = ()
    """Tables of what the processes of a run share while they perform it. Their rows have no checksums."""
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
        """Open the database; raise BadInput if it is missing, damaged, or written by a newer version.

        With `thorough`, the whole SQLite file is checked for damage, unless it is very large.
        """

    @abstractmethod
    def open_beside_writer(self) -> Connection:
        """Open another connection to the database, after `open_for_writing` has created or migrated it."""

    @abstractmethod
    def attach_outcomes(
        self, connection: Connection, db: sqlite3.Connection, schema: str, run: str, first: int
    ) -> None:
        """Attach a database under the name `schema` to the SQLite connection `db`, so that `db` can query outcomes.

        The table `outcomes` of the attached database has the run's rows from row number `first` on, and maybe others.
        """

    @abstractmethod
    def errors(self) -> AbstractContextManager[None]:
        """Return a context manager that replaces exceptions of the database driver by MemorybenchErrors."""

    @abstractmethod
    def lock(self, run: str, *, shared: bool = False) -> Lock:
        """Lock a run for writing; raise RunConflict if another process has locked it. The lock ends with its process.

        If `can_share`, several processes can take the lock with `shared`, once the first has called `Lock.share`.
        """

    @abstractmethod
    def is_locked(self, run: str) -> bool:
        """Return whether a process is writing the run."""

    @abstractmethod
    def free_space(self) -> None:
        """Make the space of deleted rows available to other programs, unless the database does so itself."""
