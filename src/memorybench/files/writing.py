"""Writes text files that are whole or absent."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from memorybench.core.errors import JournalError


def write_file(path: Path, text: str) -> None:
    """Write a file under a temporary name and rename it, so that neither a reader nor a kill finds half of it."""
    draft = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise JournalError(
            f"{path}: cannot be written ({error.strerror}); recorded results are safe; free some disk space or change"
            " the folder's permissions, then resume the run"
        ) from error
