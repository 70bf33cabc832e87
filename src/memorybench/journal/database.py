"""Opens the results file, or says in one line why it can not be trusted. Nothing doubtful is ever written to."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from memorybench.core.errors import BadInput, JournalError, MemorybenchError

from .migrations import MIGRATIONS

FILE_NAME = "results.db"
APPLICATION_ID = 0x6D656D62  # "memb"; tells our files from other programs'
BUSY_SECONDS = 120.0  # many processes may share a folder: each waits for its turn to commit
_LARGEST_CHECKED = 256 * 1024 * 1024  # a whole-file check of more would make every start slow; rows have checksums


def open_for_writing(folder: Path) -> sqlite3.Connection:
    """The results file of a folder, made if there is none. Belongs to the thread that writes."""
    path = folder / FILE_NAME
    if path.exists():
        check(path)
    else:
        _create(path)
    with translated(path):
        db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA cache_size=-8000")
        migrate(db)
        # from here on the writer itself waits: for other processes, for the disk, and while its log is tidied away
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute("PRAGMA busy_timeout=0")
        db.execute("PRAGMA wal_autocheckpoint=0")
    return db


def _create(path: Path) -> None:
    """Makes the file aside and puts it in place whole: others may be opening, or making, it at this moment."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}-{os.getpid()}")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        with translated(path):
            db = sqlite3.connect(draft, isolation_level=None)
            # a draft may be lost at any moment: its last commit waits for the disk, and that for all of it
            db.execute("PRAGMA synchronous=OFF")
            db.execute("PRAGMA journal_mode=MEMORY")
            migrate(db)
            db.execute("PRAGMA synchronous=FULL")
            db.execute("PRAGMA journal_mode=WAL")
            db.close()
        with suppress(FileExistsError):  # another process was quicker: its file is as good
            os.link(draft, path)
    finally:
        draft.unlink()


def open_for_reading(path: Path) -> sqlite3.Connection:
    """A connection that can not write: looking must not change what is looked at."""
    with translated(path):
        try:
            return _read_only(path, "mode=ro")
        except sqlite3.OperationalError:
            # a folder we may not write has no place for the shared-memory file that readers keep
            if _being_written(path) and log_of(path).stat().st_size:
                raise BadInput(
                    str(path),
                    "has a log beside it that can not be read in a folder that is not ours to write",
                    remedy="copy the folder to a place where you may write, and read it there",
                ) from None
            return _read_only(path, "mode=ro&immutable=1")


def _read_only(path: Path, how: str) -> sqlite3.Connection:
    db = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=BUSY_SECONDS)
    try:
        db.execute("SELECT 1 FROM sqlite_master").fetchone()
    except BaseException:
        db.close()
        raise
    return db


def check(path: Path, *, thorough: bool = True) -> None:
    """Raises BadInput unless the file is a sound results file of ours that this program can read."""
    where = str(path)
    if path.is_dir():
        raise BadInput(where, "is a folder", expected="a memorybench results file", remedy="move it out of the way")
    if not os.access(path, os.R_OK):
        raise BadInput(where, "can not be read", remedy="change its permissions")
    # only SQLite may open it: whoever closes a file by hand lets go of all locks that this process has on it
    if _being_written(path):
        _check_inside(path, open_for_reading(path), thorough)
        return
    try:
        # nobody has it open: read it without leaving even a shared-memory file beside it
        with translated(path):
            db = _read_only(path, "mode=ro&immutable=1")
        _check_inside(path, db, thorough)
    except BadInput:
        if not _being_written(path):
            raise
        _check_inside(path, open_for_reading(path), thorough)  # a writer came while we read: look again, with its log


def log_of(path: Path) -> Path:
    """Where SQLite keeps what is not yet in the file."""
    return path.with_name(f"{path.name}-wal")


def _being_written(path: Path) -> bool:
    return log_of(path).exists()


def _check_inside(path: Path, db: sqlite3.Connection, thorough: bool) -> None:
    with closing(db), translated(path):
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != APPLICATION_ID and (application or tables):
            raise BadInput(str(path), "belongs to another program", remedy="name another folder; it was not touched")
        if version > len(MIGRATIONS):
            raise BadInput(
                str(path),
                f"was written by a newer memorybench (schema {version}, this one knows {len(MIGRATIONS)})",
                remedy="upgrade memorybench",
            )
        if thorough and path.stat().st_size <= _LARGEST_CHECKED:
            found = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if found != "ok":
                raise _damaged(path, str(found).splitlines()[0])


def migrate(db: sqlite3.Connection) -> None:
    if db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),):
        return
    db.execute("BEGIN IMMEDIATE")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    for number, step in enumerate(MIGRATIONS[version:], version + 1):
        step(db)
        db.execute(f"PRAGMA user_version={number}")
    db.execute(f"PRAGMA application_id={APPLICATION_ID}")
    db.execute("COMMIT")


class translated:  # noqa: N801  used as a function would be; a generator takes several times as long
    """SQLite's complaints in the user's words."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, sqlite3.DatabaseError):
            raise _translation(error, self._path) from error


def _translation(error: sqlite3.DatabaseError, path: Path) -> MemorybenchError:
    said = str(error)
    if "not a database" in said:
        return BadInput(
            str(path),
            "is not a SQLite file",
            expected="a memorybench results file",
            remedy="name another folder, or move the file away; it was not touched",
        )
    if "malformed" in said:
        return _damaged(path, said)
    if "full" in said or "disk I/O" in said:
        return JournalError(f"{path}: {said}; what was recorded is safe; free some space, then resume the run")
    if "readonly" in said or "unable to open" in said:
        return BadInput(
            str(path), f"can not be written ({said})", remedy="change its permissions or name another folder"
        )
    return JournalError(f"{path}: {said}")


def _damaged(path: Path, said: str) -> BadInput:
    return BadInput(
        str(path),
        f"is damaged ({said})",
        expected="a sound results file",
        remedy=f"restore a copy, or save what can be read with `sqlite3 {path.name} .recover`; it was not touched",
    )
