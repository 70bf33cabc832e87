"""Writes and reads the files of OTLP JSON in a folder, in which the receiver stores spans."""

from __future__ import annotations

import fcntl
import mmap
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from memorybench.core.errors import BadInput, JournalError
from memorybench.files.reading import read_lines
from memorybench.files.rows import decode_line

FILE_SIZE = 64 * 2**20
"""The size of a file, in bytes, from which on a new file is begun."""
_NAME = re.compile(r"spans-(\d{6,})\.jsonl")
_SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
_LOCK = ".lock"


class FolderFull(JournalError):
    """The files have reached their size limit, or the disk is full."""


def files_in(path: Path, pattern: str, suffixes: tuple[str, ...], content: str) -> list[Path]:
    """Return `path` if it is a file. For a folder, return its files with these suffixes, sorted.

    Hidden and empty files are left out. Raise BadInput if there are no files; `content` says in the error which files
    are missing, such as "exported files".
    """
    if not path.is_dir():
        return [path]
    found = [
        file
        for file in sorted(path.glob(pattern))
        if file.name.lower().removesuffix(".gz").endswith(suffixes)
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
        and file.is_file()
        and file.stat().st_size
    ]
    if not found:
        expected = f"files named *{', *'.join(suffixes)}"
        raise BadInput(str(path), f"the folder contains no {content}", expected=expected)
    return found


def numbered_batches(path: Path) -> Iterator[tuple[Path, int, Any]]:
    """Yield (file, line number, value) for each line of a file of JSON lines, or of the files in a folder.

    In a folder, an incomplete last line of a file is skipped: the receiver was killed while it wrote the line, so it
    did not confirm the request, and the sender sends it again.
    """
    is_folder = path.is_dir()
    for file in files_in(path, "*", _SUFFIXES, "files of spans"):
        for number, line in read_lines(file):
            if line.isspace():
                continue
            try:
                yield file, number, decode_line(line, str(file), number)
            except BadInput:
                if not is_folder or line.endswith("\n"):
                    raise


class SpanFiles:
    """Appends lines to the newest file of a folder. Only one process at a time may write to the folder."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._file = -1
        self._file_bytes = 0
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise BadInput(
                str(folder), f"the folder cannot be written ({error.strerror})", remedy="use another folder"
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise BadInput(
                str(folder),
                "another `memorybench online receive` writes into this folder",
                remedy="stop it, or use another folder",
            ) from None
        self._bytes = self._measure()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._close_file()
        os.close(self._lock)

    def append(self, line: bytes) -> None:
        """Write a line durably: it is on disk when the method returns.

        Raise FolderFull if the files would be larger than the limit, or if writing fails.
        """
        if self._bytes + len(line) > self._max_bytes:
            self._bytes = self._measure()  # the user may have removed files
            if self._bytes + len(line) > self._max_bytes:
                raise FolderFull(f"the folder of spans has reached its limit of {self._max_bytes / 2**20:g} MB")
        try:
            self._open_file()
            self._write(line)
        except OSError as error:
            raise FolderFull(f"the folder of spans cannot be written ({error.strerror})") from None
        self._file_bytes += len(line)
        self._bytes += len(line)

    def _write(self, line: bytes) -> None:
        left = memoryview(line)
        try:
            while left:
                left = left[os.write(self._file, left) :]
            os.fsync(self._file)
        except OSError:
            with suppress(OSError):  # if this fails, an incomplete line remains, which readers skip
                os.ftruncate(self._file, self._file_bytes)
            self._close_file()
            raise

    def _open_file(self) -> None:
        """Open the newest file for appending; if it is full, create the next file. Do nothing if it is open already."""
        if self._file >= 0 and (self._file_bytes >= FILE_SIZE or not os.fstat(self._file).st_nlink):
            self._close_file()
        if self._file >= 0:
            return
        newest = max(self._own_files(), default=None)
        number, path = newest or (1, self._folder / "spans-000001.jsonl")
        if newest is not None and path.stat().st_size >= FILE_SIZE:
            path = self._folder / f"spans-{number + 1:06}.jsonl"
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        # a killed process may have left an incomplete line, which is cut off
        self._file_bytes = _complete_size(path)
        os.ftruncate(self._file, self._file_bytes)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _close_file(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _own_files(self) -> list[tuple[int, Path]]:
        named = ((_NAME.fullmatch(file.name), file) for file in self._folder.iterdir())
        return [(int(match[1]), file) for match, file in named if match]

    def _measure(self) -> int:
        return sum(file.stat().st_size for _, file in self._own_files())


def _complete_size(path: Path) -> int:
    """Return the size in bytes of the complete lines of a file."""
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return 0  # an empty file cannot be mapped
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.rfind(b"\n") + 1
