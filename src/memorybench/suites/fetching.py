"""Fetches data into the folder of a run before the run begins."""

from __future__ import annotations

import shutil
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from .blocking import blocking

T = TypeVar("T")


def fetched(work: Coroutine[Any, Any, T], folder: Path) -> T:
    """Create the folder, run `work`, which fetches data into it, and return its result.

    If `work` raises, the folders that were created here are removed, with what was fetched.
    """
    new = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        return blocking(work)
    except BaseException:
        if folder in new:
            shutil.rmtree(folder, ignore_errors=True)
        for parent in new[1:]:
            with suppress(OSError):  # another process may use it by now
                parent.rmdir()
        raise
