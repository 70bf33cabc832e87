"""Fetches data into the folder of a run before the run begins."""

from __future__ import annotations

import shutil
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from memorybench.journal.lock import LOCK_NAME, mark_empty

from .blocking import blocking

T = TypeVar("T")


def fetched(work: Coroutine[Any, Any, T], folder: Path) -> T:
    """Create the folder, run `work`, which fetches data into it, and return its result.

    The folder gets the lock file of a run first, so that the run can be started again if the process is killed. If
    `work` raises, the folders that were created here are removed, with what was fetched.
    """
    new = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    is_marked = mark_empty(folder)
    try:
        return blocking(work)
    except BaseException:
        if folder in new:
            shutil.rmtree(folder, ignore_errors=True)
        elif is_marked and [entry.name for entry in folder.iterdir()] == [LOCK_NAME]:
            (folder / LOCK_NAME).unlink()
        for parent in new[1:]:
            with suppress(OSError):  # another process may use it by now
                parent.rmdir()
        raise
