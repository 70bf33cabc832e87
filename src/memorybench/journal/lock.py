"""One process per run. The kernel holds the lock, so that it vanishes with its owner, however that one ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from memorybench.core.errors import BadInput, RunConflict


class RunLock:
    def __init__(self, folder: Path, run: str) -> None:
        try:
            for place in (folder.parent, folder):  # results are for their owner alone
                place.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise BadInput(
                str(folder), f"can not be written ({error.strerror})", remedy="name another folder with --output"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._file, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            raise RunConflict(
                f"run {run} is being written by process {holder}; wait for it, or stop it and resume the run"
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.ftruncate(self._file, 0)
        os.close(self._file)


def is_held(folder: Path) -> bool:
    """Whether a process is writing the run of that folder now."""
    try:
        file = os.open(folder / ".lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False
