"""Writes files so that a reader finds the complete new content or the old content, never a part."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, cast

from memorybench.core.errors import BadInput, JournalError


@contextmanager
def replacing(path: Path) -> Iterator[TextIOWrapper]:
    """Open a text file for writing. It replaces `path` when the block ends. Raise BadInput if it cannot be written.

    A missing folder is created. A device, a pipe, a socket or a link is not replaced: the text is written into it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        in_place = not path.name or path.is_symlink() or (path.exists() and not path.is_file())
        with path.open("w", encoding="utf-8", newline="") if in_place else _draft(path) as file:
            yield file
    except IsADirectoryError as error:
        raise BadInput(str(path), "is a folder", expected="a file", remedy="name a file in it") from error
    except OSError as error:
        raise BadInput(str(path), f"cannot be written ({error.strerror})", remedy="name another file") from error


@contextmanager
def replacing_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file as `replacing` does, but for bytes."""
    with replacing(path) as file:
        yield cast(BinaryIO, file.buffer)


def write_file(path: Path, text: str) -> None:
    """Write a file in the folder of a run. An incomplete file never exists, even if the process is killed.

    A link is replaced, not followed: the folder may come from others. Raise JournalError if it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _draft(path) as file:
            file.write(text)
    except OSError as error:
        raise JournalError(
            f"{path}: cannot be written ({error.strerror}); recorded results are safe; free some disk space or change"
            " the folder's permissions, then resume the run"
        ) from error


@contextmanager
def _draft(path: Path) -> Iterator[TextIOWrapper]:
    """Open a file under a temporary name, which is renamed to `path` at the end."""
    draft = path.with_name(f".{path.name}.part")
    draft.unlink(missing_ok=True)  # of a process that was killed, or a link
    try:
        with draft.open("x", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with suppress(OSError):  # the draft does not exist if the folder is read-only
            draft.unlink()
        raise
