"""A file lock that only one process at a time can hold per run. The kernel releases it when the process ends."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from memorybench.core.errors import BadInput, RunConflict

LOCK_NAME = ".lock"


class RunLock:
    """Takes the lock of a run when it is created, and holds it until `release`.

    Creating it raises RunConflict if another process has the lock.
    """

    is_alone = True

    def __init__(self, folder: Path, run: str) -> None:
        try:
            for place in (folder.parent, folder):  # results are readable by their owner only
                place.mkdir(parents=True, exist_ok=True, mode=0o700)
            # a link is not followed: the folder may come from others, and the file is truncated
            self._file = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise BadInput(
                str(folder),
                f"the folder of the run cannot be written ({error.strerror})",
                remedy="use another folder with --output",
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._file, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            raise RunConflict(
                f"process {holder} is writing run {run}; wait until it ends, or stop it and resume the run"
            ) from None
        with suppress(OSError):  # the disk is full: the lock holds, but a refused process cannot name this one
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def share(self) -> None:
        pass

    def release(self) -> None:
        os.ftruncate(self._file, 0)
        os.close(self._file)


def check_unused(folder: Path) -> None:
    """Raise BadInput if the folder of a new run has files of others: a complete or deleted run removes files in it."""
    if folder.is_dir() and not (folder / LOCK_NAME).exists() and any(folder.iterdir()):
        raise BadInput(
            str(folder),
            "the folder has files that are not of a run",
            expected="a new folder for the run",
            remedy="choose another --run-id, or move the files",
        )


def mark_empty(folder: Path) -> bool:
    """Create the lock file in an empty folder, so that files written before the run begins count as those of a run.

    Return whether it was created. It is not in a folder that cannot be written.
    """
    with suppress(OSError):
        if not any(folder.iterdir()):
            os.close(os.open(folder / LOCK_NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            return True
    return False


def remove_unused(folder: Path) -> None:
    """Remove the folder of a run if it is empty, apart from the lock file."""
    with suppress(OSError):
        if {entry.name for entry in folder.iterdir()} <= {LOCK_NAME}:
            (folder / LOCK_NAME).unlink(missing_ok=True)
            folder.rmdir()


def is_held(folder: Path) -> bool:
    """Return whether a process has the lock of the run whose folder this is."""
    try:
        file = os.open(folder / LOCK_NAME, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False
