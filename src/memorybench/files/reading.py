"""Bytes to text: gzip with a cap, UTF-8 only, and everything a file system can refuse, said in one line."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from memorybench.core.errors import BadInput

LARGEST = 4 * 2**30
"""Bytes that a gzip file may unpack to. A plain file has no cap: it already lies on the user's disk."""
LONGEST_LINE = 64 * 2**20

_CHUNK = 2**20
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_GZIP_MARK = b"\x1f\x8b"


def read_text(path: Path, largest: int = LARGEST) -> str:
    """All of a file; refused when there is nothing in it."""
    unpacked, cap = bytearray(), _cap(path, largest)
    with _opened(path) as file:
        while chunk := file.read(_CHUNK):
            unpacked += chunk
            if len(unpacked) > cap:
                raise _too_large(path, cap)
    text = _decoded(path, unpacked, 1)
    if not text or text.isspace():
        raise _empty(path)
    return text


def read_lines(path: Path, largest: int = LARGEST) -> Iterator[tuple[int, str]]:
    """Numbered lines with their line ends; refused when there are none but blank ones."""
    size, cap, blank = 0, _cap(path, largest), True
    with _opened(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), 1):
            size += len(line)
            if size > cap:
                raise _too_large(path, cap)
            if len(line) > LONGEST_LINE:
                raise BadInput(f"{path}:{number}", f"a line of more than {LONGEST_LINE} bytes", remedy="split it")
            text = _decoded(path, line, number)
            if "\0" in text:
                raise BadInput(f"{path}:{number}", "holds a NUL byte", expected="text", remedy="remove it")
            blank = blank and (not text or text.isspace())
            yield number, text
    if blank:
        raise _empty(path)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as file:
            yield cast(BinaryIO, gzip.GzipFile(fileobj=file)) if _is_packed(path) else file
    except FileNotFoundError:
        raise BadInput(str(path), "there is no such file", remedy="check the path") from None
    except IsADirectoryError:
        raise BadInput(str(path), "is a folder", expected="a file", remedy="name a file in it") from None
    except PermissionError:
        raise BadInput(str(path), "may not be read", remedy="change its permissions") from None
    except gzip.BadGzipFile:
        raise BadInput(str(path), "is not gzip", remedy="drop .gz from its name, or pack it") from None
    except (EOFError, zlib.error):
        raise BadInput(str(path), "the gzip data is damaged or cut short", remedy="fetch the file again") from None
    except OSError as error:
        raise BadInput(str(path), f"can not be read: {error.strerror or error}") from None


def _cap(path: Path, largest: int) -> int:
    return largest if _is_packed(path) else sys.maxsize


def _is_packed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _too_large(path: Path, cap: int) -> BadInput:
    return BadInput(
        str(path),
        f"unpacks to more than {cap} bytes",
        expected="a dataset, not a bomb",
        remedy="unpack it yourself if you trust it",
    )


def _decoded(path: Path, packed: bytes | bytearray, line: int) -> str:
    """Text of the bytes that begin at `line`. A UTF-8 mark at the start of the file is accepted and dropped."""
    if line == 1:
        _check_encoding(path, packed[:4])
        if packed.startswith(_UTF8_MARK):
            packed = packed[len(_UTF8_MARK) :]
    try:
        return packed.decode()
    except UnicodeDecodeError as error:
        line += packed.count(b"\n", 0, error.start)
        column = error.start - packed.rfind(b"\n", 0, error.start)
        raise BadInput(
            f"{path}:{line}",
            f"byte {packed[error.start]:#04x} at column {column} is not UTF-8",
            expected="UTF-8 text",
            remedy="save the file as UTF-8",
        ) from None


def _check_encoding(path: Path, head: bytes | bytearray) -> None:
    if head.startswith(_GZIP_MARK):
        raise BadInput(f"{path}:1", "is gzip under another name", remedy=f"name it {path.name}.gz")
    # without a mark, UTF-16 shows by the zero byte beside its first character
    if head.startswith(_UTF16_MARKS) or b"\0" in head:
        kind = "UTF-16" if head.startswith(_UTF16_MARKS) else "UTF-16 or binary"
        raise BadInput(f"{path}:1", f"is {kind}", expected="UTF-8 text", remedy="save the file as UTF-8")


def _empty(path: Path) -> BadInput:
    return BadInput(f"{path}:1", "is empty", remedy="check that it was written or fetched completely")
