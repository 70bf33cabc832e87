"""Finds compressed texts in bytes, such as a zlib stream in a blob of a database."""

from __future__ import annotations

import bz2
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

_LARGEST = 4 * 2**20
"""Decompressed bytes that are read of one stream: a small stream may expand to gigabytes."""
_MOST_STREAMS = 200
_STARTS = re.compile(rb"\x78[\x01\x5e\x9c\xda]|\x1f\x8b\x08|BZh[1-9]|\xfd7zXZ\x00")


@dataclass(frozen=True, slots=True)
class Stream:
    """A compressed part of a file."""

    offset: int
    encoding: str
    content: bytes


_READERS: tuple[tuple[bytes, str, Callable[[], Any]], ...] = (
    (b"\x1f", "gzip", lambda: zlib.decompressobj(31)),
    (b"B", "bzip2", bz2.BZ2Decompressor),
    (b"\xfd", "xz", lzma.LZMADecompressor),
    (b"\x78", "zlib", zlib.decompressobj),
)


def streams_in(octets: bytes) -> Iterator[Stream]:
    """Yield the parts of `octets` that can be decompressed; a broken stream is read up to its fault."""
    if octets.startswith(b"PK\x03\x04"):
        yield from _zip_members(octets)
    for number, match in enumerate(_STARTS.finditer(octets)):
        if number == _MOST_STREAMS:
            return
        name, make_reader = next((name, make) for start, name, make in _READERS if match[0].startswith(start))
        try:
            content = make_reader().decompress(octets[match.start() :], _LARGEST)
        except (zlib.error, lzma.LZMAError, OSError, EOFError):
            continue
        if content:
            yield Stream(match.start(), name, content)


def _zip_members(octets: bytes) -> Iterator[Stream]:
    try:
        with zipfile.ZipFile(BytesIO(octets)) as archive:
            for member in archive.infolist()[:_MOST_STREAMS]:
                with archive.open(member) as file:
                    yield Stream(member.header_offset, "zip", file.read(_LARGEST))
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, zlib.error):
        return  # damaged, encrypted or compressed in another way
