"""Reads text files: UTF-8 only, gzip with a size limit, file errors as one-line BadInput."""

from __future__ import annotations

import gzip
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from memorybench.core.errors import BadInput
from memorybench.text.sanitize import printable

LARGEST = 4 * 2**30
"""Maximum size in bytes of an unpacked gzip file. A plain file has no limit."""
LARGEST_RATIO = 100
"""Maximum ratio of the size of a text to the size of its gzip file. Usual ratios are 3 to 20, at most about 50."""
ANY_RATIO = 16 * 2**20
"""The ratio of a text with at most this many bytes is not limited."""
LONGEST_LINE = 64 * 2**20

_CHUNK = 2**20
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_GZIP_MARK = b"\x1f\x8b"


def read_text(path: Path) -> str:
    """Return the text of a file. Raise BadInput if it cannot be read, is too large, is not UTF-8, or is empty."""
    data, cap = bytearray(), unpacked_cap(path)
    with _open(path) as file:
        while chunk := file.read(_CHUNK):
            data += chunk
            if len(data) > cap:
                raise _too_large(path, cap)
    text = _decode(path, data, 1)
    if not text or text.isspace():
        raise _empty(path)
    return text


def read_inside(folder: Path, name: str) -> bytes:
    """Return the content of a file in a folder. Raise OSError if it does not exist, or leads out of the folder."""
    path = (folder / name).resolve(strict=True)
    if not path.is_relative_to(folder.resolve()):
        raise PermissionError(f"{folder / name} is a link to another folder")
    return path.read_bytes()


def check_confined(path: Path, folders: Iterable[Path], largest: int) -> None:
    """Raise BadInput unless the path is a file below one of the folders, of at most `largest` bytes.

    Links are followed first. Pipes and devices are refused, because reading them may never end.
    """
    try:
        real, status = path.resolve(strict=True), path.stat()
    except (OSError, RuntimeError, ValueError):  # a loop of links, or a NUL byte
        raise BadInput(
            printable(str(path)), "the file of the recorded data was not found", expected="the file on this machine"
        ) from None
    where, allowed = printable(str(path)), dict.fromkeys(folder.resolve() for folder in folders)
    if not any(real.is_relative_to(folder) for folder in allowed):
        raise BadInput(
            where, "is outside the folders that may be read", expected=f"a file below {' or '.join(map(str, allowed))}"
        )
    if not stat.S_ISREG(status.st_mode) or not status.st_size:
        raise BadInput(where, "is empty or not a regular file", expected="a regular file with content")
    if status.st_size > largest:
        raise BadInput(where, f"the file is larger than {largest // 2**20} MB")


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line, with its line end. Raise BadInput as `read_text` does."""
    size, cap, blank = 0, unpacked_cap(path), True
    with _open(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), 1):
            size += len(line)
            if size > cap:
                raise _too_large(path, cap)
            if len(line) > LONGEST_LINE:
                raise BadInput(
                    f"{path}:{number}",
                    f"the line is longer than {LONGEST_LINE} bytes",
                    remedy="divide it into several lines",
                )
            text = _decode(path, line, number)
            if "\0" in text:
                raise BadInput(
                    f"{path}:{number}", "the line contains a NUL byte", expected="text", remedy="remove that byte"
                )
            blank = blank and (not text or text.isspace())
            yield number, text
    if blank:
        raise _empty(path)


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as file:
            yield cast(BinaryIO, gzip.GzipFile(fileobj=file)) if _is_gzip(path) else file
    except (OSError, EOFError, zlib.error) as error:
        match error:
            case FileNotFoundError():
                problem, remedy = "file not found", "check the path"
            case IsADirectoryError():
                problem, remedy = "is a folder", "name a file in it"
            case PermissionError():
                problem, remedy = "you do not have permission to read this file", "change its permissions"
            case gzip.BadGzipFile():
                problem, remedy = "has the suffix .gz, but is not gzip data", "remove .gz from its name, or compress it"
            case OSError():
                problem, remedy = f"the file cannot be read: {error.strerror or error}", ""
            case _:
                problem, remedy = "the gzip data is damaged or incomplete", "download the file again"
        raise BadInput(str(path), problem, remedy=remedy) from None


def unpacked_cap(path: Path) -> int:
    """Return the maximum number of bytes of text in a gzip file, by LARGEST, LARGEST_RATIO and ANY_RATIO.

    Other files have no limit.
    """
    if not _is_gzip(path):
        return sys.maxsize
    try:
        return min(LARGEST, max(ANY_RATIO, LARGEST_RATIO * path.stat().st_size))
    except OSError:
        return LARGEST  # the error of opening it says more


def _is_gzip(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _too_large(path: Path, cap: int) -> BadInput:
    return BadInput(
        str(path),
        f"unpacks to more than {cap} bytes",
        remedy="if you trust the file, unpack it yourself and name the unpacked file",
    )


def _decode(path: Path, data: bytes | bytearray, line: int) -> str:
    """Decode bytes as UTF-8; `line` is the number of their first line in the file, for errors.

    A byte order mark at the start of the file is removed.
    """
    if line == 1:
        _check_encoding(path, data[:4])
        if data.startswith(_UTF8_MARK):
            data = data[len(_UTF8_MARK) :]
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line += data.count(b"\n", 0, error.start)
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise BadInput(
            f"{path}:{line}",
            f"byte {data[error.start]:#04x} at column {column} is not valid UTF-8",
            expected="UTF-8 text",
            remedy="save the file as UTF-8",
        ) from None


def _check_encoding(path: Path, head: bytes | bytearray) -> None:
    if head.startswith(_GZIP_MARK):
        raise BadInput(
            f"{path}:1",
            "the file is gzip data, but its name does not end in .gz",
            remedy=f"rename it to {path.name}.gz",
        )
    # without a byte order mark, UTF-16 has a zero byte beside its first ASCII character
    if head.startswith(_UTF16_MARKS) or b"\0" in head:
        kind = "UTF-16" if head.startswith(_UTF16_MARKS) else "UTF-16 or binary"
        raise BadInput(f"{path}:1", f"the file is {kind}", expected="UTF-8 text", remedy="save the file as UTF-8")


def _empty(path: Path) -> BadInput:
    return BadInput(f"{path}:1", "the file is empty", remedy="check that it was written or downloaded completely")
