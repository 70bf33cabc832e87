"""Checksums of data files. Those of large files are stored until the file changes, because hashing takes long."""

from __future__ import annotations

import hashlib
import time
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from memorybench.core.errors import BadInput, JournalError
from memorybench.core.records import Record, digest
from memorybench.files.writing import write_file

from .index import SMALLEST

_BUFFER = 4 * 2**20
"""Number of bytes to hash at once. A large number, because the thread must wait for Python's interpreter lock after
each part while another thread parses."""
SETTLED_SECONDS = 2
"""The checksum of a file that changed more recently than this is not stored: because file times are imprecise, another
change could go unnoticed."""


class _Remembered(Record):
    state: tuple[int, ...]
    sha256: str


def sha256_of(file: Path) -> str:
    try:
        sha256, buffer = hashlib.sha256(), memoryview(bytearray(_BUFFER))
        with file.open("rb", buffering=0) as opened:
            while size := opened.readinto(buffer):
                sha256.update(buffer[:size])
        return sha256.hexdigest()
    except OSError as error:
        raise BadInput(
            str(file), f"the file cannot be read: {error.strerror}", remedy="check its permissions"
        ) from None


def remembered_sha256(file: Path, folder: Path) -> str:
    """Return the SHA-256 of a file. That of a large file is stored in `folder` and reused until the file changes."""
    now, status = time.time_ns(), file.stat()
    if status.st_size < SMALLEST:
        return sha256_of(file)
    # programs can set the time of modification, but not that of the last change
    state = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    note = folder / f"{digest(str(file.resolve()))}.sha256"
    with suppress(OSError, ValidationError):
        remembered = _Remembered.model_validate_json(note.read_bytes())
        if remembered.state == state:
            return remembered.sha256
    sha256 = sha256_of(file)
    if now - status.st_ctime_ns >= SETTLED_SECONDS * 1e9:
        with suppress(JournalError):  # a read-only cache is ignored
            write_file(note, _Remembered(state=state, sha256=sha256).model_dump_json())
    return sha256
