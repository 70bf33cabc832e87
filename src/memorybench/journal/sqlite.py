"""The journal in a SQLite file of the results folder, which is the default.

A file that fails a check is never written to.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path

from memorybench.core.errors import BadInput, JournalError, MemorybenchError

from .contract import Connection, Journal, Row, Values
from .lock import RunLock, is_held
from .migrations import MIGRATIONS

FILE_NAME = "results.db"
APPLICATION_ID = 0x6D656D62  # "memb" in ASCII: distinguishes our files from those of other programs
BUSY_SECONDS = 120.0  # many processes may share a folder: each waits for its turn to commit
AFTER_DISK_FULL = "recorded results are safe; free some disk space, then resume the run"
_CHECK_LIMIT = 256 * 1024 * 1024  # checking a larger file would make every start slow; rows have checksums


class SqliteConnection(sqlite3.Connection):
    """A `Connection` to a SQLite file. Only one process writes a run, so a lease is always free."""

    def rows(self, sql: str, values: Values, *, many: bool) -> Iterator[Row]:
        cursor = self.cursor()
        cursor.row_factory = sqlite3.Row
        return cursor.execute(sql, values)

    def try_lease(self, name: str) -> bool:
        return True  # one process writes a run

    def end_lease(self, name: str) -> None:
        pass

    def beat(self) -> None:
        pass

    def has_table(self, table: str) -> bool:
        sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        return self.execute(sql, (table,)).fetchone() is not None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        finally:
            if self.in_transaction:
                self.execute("ROLLBACK")

    @contextmanager
    def batch(self) -> Iterator[Callable[[str, Values], object]]:
        with self.transaction():
            yield self.execute


class SqliteJournal(Journal):
    can_share = False

    def __init__(self, folder: Path, file_name: str = FILE_NAME) -> None:
        self.folder = folder
        self.path = folder / file_name
        self.name = str(self.path)

    def exists(self) -> bool:
        return self.path.exists()

    def open_for_writing(self) -> SqliteConnection:
        if self.path.exists():
            check(self.path)
        else:
            try:
                _create(self.path)
            except OSError as error:
                raise BadInput(
                    self.name,
                    f"the results file cannot be created ({error.strerror})",
                    remedy="free some disk space or use another folder",
                ) from error
        with self.errors():
            db = _connect(self.path)
            db.execute("PRAGMA synchronous=FULL")  # COMMIT returns after the log is on disk
            db.execute("PRAGMA cache_size=-8000")
            _migrate(db)
        return db

    def open_for_reading(self, *, thorough: bool = True) -> SqliteConnection:
        if not self.path.exists():
            raise BadInput(
                str(self.folder),
                f"has no {FILE_NAME}" if self.folder.exists() else "folder not found",
                expected="a results folder",
                remedy="name one with --results, or make a run first: memorybench eval --limit 60",
            )
        check(self.path, thorough=thorough)
        return _connect_for_reading(self.path)

    def open_beside_writer(self) -> SqliteConnection:
        return _connect(self.path)

    def attach_outcomes(
        self, connection: Connection, db: sqlite3.Connection, schema: str, run: str, first: int
    ) -> None:
        try:
            db.execute(f"ATTACH ? AS {schema}", (_address(self.path, "mode=ro"),))
            db.execute(f"SELECT 1 FROM {schema}.sqlite_master").fetchone()  # noqa: S608  ours
        except sqlite3.OperationalError:  # as in `_connect_for_reading`
            with suppress(sqlite3.OperationalError):
                db.execute(f"DETACH {schema}")
            db.execute(f"ATTACH ? AS {schema}", (_address(self.path, "mode=ro&immutable=1"),))

    def errors(self) -> AbstractContextManager[None]:
        return _sqlite_errors(self.path)

    def lock(self, run: str, *, shared: bool = False) -> RunLock:
        if self.path.exists():
            check(self.path, thorough=False)  # before the lock creates a folder next to an invalid file
        return RunLock(self.folder / run, run)

    def is_locked(self, run: str) -> bool:
        return is_held(self.folder / run)

    def free_space(self) -> None:
        with self.errors(), closing(self.open_for_writing()) as db:
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _connect(path: Path) -> SqliteConnection:
    """Open a connection to an existing results file, without any check."""
    return sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, factory=SqliteConnection
    )


def _create(path: Path) -> None:
    """Create the file under a temporary name and rename it, so that other processes never open an incomplete file.

    A lock allows one process at a time to do so. Hard links would need no lock, but are not supported everywhere.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock_path, draft = path.with_name(f".{path.name}.lock"), path.with_name(f".{path.name}.part")
    lock = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            for leftover in ("", "-wal", "-shm", "-journal"):  # of a process that was killed here
                draft.with_name(draft.name + leftover).unlink(missing_ok=True)
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            _fill(draft, path)
            draft.rename(path)
        lock_path.unlink(missing_ok=True)  # those who wait for the lock find the file
    finally:
        os.close(lock)


def _fill(draft: Path, path: Path) -> None:
    """Create the tables in the temporary file `draft`; errors name its final path `path`."""
    with _sqlite_errors(path), closing(sqlite3.connect(draft, isolation_level=None)) as db:
        # one sync at the end is enough: until then the draft is not in use
        db.execute("PRAGMA synchronous=OFF")
        db.execute("PRAGMA journal_mode=MEMORY")
        _migrate(db)
        db.execute("PRAGMA synchronous=FULL")
        db.execute("PRAGMA journal_mode=WAL")


def _connect_for_reading(path: Path) -> SqliteConnection:
    """Open a read-only connection to a results file, which may be in a read-only folder."""
    with _sqlite_errors(path):
        try:
            return _open_read_only(path, "mode=ro")
        except sqlite3.OperationalError:
            # the folder is read-only, so SQLite cannot create the shared-memory file that readers need
            if _has_log(path) and _log_of(path).stat().st_size:
                raise BadInput(
                    str(path),
                    "has a write-ahead log that cannot be read in a read-only folder",
                    remedy="copy the folder to a place where you can write, and read it there",
                ) from None
            return _open_read_only(path, "mode=ro&immutable=1")


def _address(path: Path, mode: str) -> str:
    return f"{path.absolute().as_uri()}?{mode}"


def _open_read_only(path: Path, mode: str) -> SqliteConnection:
    db = sqlite3.connect(_address(path, mode), uri=True, timeout=BUSY_SECONDS, factory=SqliteConnection)
    try:
        db.execute("SELECT 1 FROM sqlite_master").fetchone()
    except BaseException:
        db.close()
        raise
    return db


def check(path: Path, *, thorough: bool = True) -> None:
    """Raise BadInput if this is not a results file, if it is damaged, or if a newer version wrote it.

    Without `thorough`, and for files above 256 MB, SQLite's check of the whole file is skipped.
    """
    where = str(path)
    if path.is_dir():
        raise BadInput(where, "is a folder", expected="a memorybench results file", remedy="rename or move the folder")
    if not os.access(path, os.R_OK):
        raise BadInput(where, "you do not have permission to read this file", remedy="change its permissions")
    # Only SQLite may open the file: closing any other descriptor of it drops all fcntl locks of this process.
    if not _has_log(path):
        try:
            # no process has it open, so it can be read without creating a shared-memory file
            with _sqlite_errors(path):
                db = _open_read_only(path, "mode=ro&immutable=1")
            _check_content(path, db, thorough)
            return
        except BadInput:
            if not _has_log(path):
                raise  # else a writer opened the file while we read it: read again, with its log
    _check_content(path, _connect_for_reading(path), thorough)


def _log_of(path: Path) -> Path:
    """Return the path of the write-ahead log that SQLite keeps beside a results file."""
    return path.with_name(f"{path.name}-wal")


def _has_log(path: Path) -> bool:
    return _log_of(path).exists()


def _check_content(path: Path, db: sqlite3.Connection, thorough: bool) -> None:
    with closing(db), _sqlite_errors(path):
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != APPLICATION_ID and (application or tables):
            raise BadInput(
                str(path), "is a database of another program", remedy="use another folder; the file was not changed"
            )
        if version > len(MIGRATIONS):
            raise BadInput(
                str(path),
                f"was written by a newer memorybench (schema {version}, this version knows {len(MIGRATIONS)})",
                remedy="upgrade memorybench",
            )
        if not tables:
            raise BadInput(
                str(path),
                "is an empty database",
                expected="a memorybench results file",
                remedy="remove the file, or use another folder; it was not changed",
            )
        if thorough and path.stat().st_size <= _CHECK_LIMIT:
            (answer,) = db.execute("PRAGMA integrity_check(1)").fetchone()
            if answer != "ok":
                raise _damaged(path, str(answer).splitlines()[-1])  # the first line may be a heading


def _migrate(db: sqlite3.Connection) -> None:
    """Run the migrations that the file does not have yet; an empty file gets all tables."""
    if db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),):
        return
    db.execute("BEGIN IMMEDIATE")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    for number, migration in enumerate(MIGRATIONS[version:], version + 1):
        migration(db)
        db.execute(f"PRAGMA user_version={number}")
    db.execute(f"PRAGMA application_id={APPLICATION_ID}")
    db.execute("COMMIT")


@contextmanager
def _sqlite_errors(path: Path) -> Iterator[None]:
    """Replace errors of SQLite in the block by MemorybenchErrors, which name the file and a remedy."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise _translate(error, path) from error


def is_disk_full(error: BaseException) -> bool:
    """Return whether the error means that a file could not be written because the disk is full or failed."""
    if error.__cause__ is not None and is_disk_full(error.__cause__):
        return True  # a memory in a file reports it as an error of its own
    if isinstance(error, sqlite3.OperationalError):
        return "disk is full" in str(error) or "disk I/O error" in str(error)
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _translate(error: sqlite3.DatabaseError, path: Path) -> MemorybenchError:
    text = str(error)
    if text.startswith("Could not decode"):  # the rest of the message is the content of the row
        return _damaged(path, text.partition(" with text")[0])
    if "not a database" in text:
        return BadInput(
            str(path),
            "is not a SQLite file",
            expected="a memorybench results file",
            remedy="use another folder, or move the file; it was not changed",
        )
    if "no such" in text:
        return BadInput(
            str(path),
            f"does not have all tables and columns of a memorybench results file ({text})",
            remedy="restore a copy of the file, or use another folder; it was not changed",
        )
    if "malformed" in text:
        return _damaged(path, text)
    if is_disk_full(error):
        return JournalError(f"{path}: {text}; {AFTER_DISK_FULL}")
    if "locked" in text:
        return JournalError(
            f"{path}: timed out, because other processes locked the file for {BUSY_SECONDS:g} s; resume the run"
        )
    if "readonly" in text or "unable to open" in text:
        return BadInput(str(path), f"cannot be written ({text})", remedy="change its permissions or use another folder")
    return JournalError(f"{path}: {text}")


def _damaged(path: Path, reason: str) -> BadInput:
    return BadInput(
        str(path),
        f"is damaged ({reason})",
        expected="an undamaged results file",
        remedy=f"restore a copy, or save what is readable with `sqlite3 {path.name} .recover`; it was not changed",
    )
