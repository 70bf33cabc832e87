"""Finds compressed texts in bytes, such as a zlib stream in a blob of a database."""

from __future__ import annotations

import bz2
import lzma
import re
import struct
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

_LARGEST = 8 * 2**20
"""The most decompressed bytes of one stream that are read: a small stream may expand to gigabytes."""
_LARGEST_IN_ALL = 64 * 2**20
_MOST_STREAMS = 2_000
_MOST_LAYERS = 3
"""The most levels of nested streams that are read, such as a zip archive in a zip archive."""
_PIECE = 16 * 2**10
"""Bytes that are decompressed at a time. Small, because the bytes after the end of a stream are copied."""
_LONG, _DENSE = 128, 0.75
"""At least `_LONG` bytes count as packed or encrypted if compression leaves more than the share `_DENSE` of them."""
_SHORT, _READABLE = 24, 0.6
"""From `_SHORT` to `_LONG` bytes, compression proves nothing: they count as packed if less than the share `_READABLE`
is printable or zero (of random bytes, 0.38 are). Fewer bytes than `_SHORT` never count as packed."""
_STARTS = re.compile(
    rb"\x78[\x01\x5e\x9c\xda]|\x1f\x8b\x08|BZh[1-9]|\xfd7zXZ\x00|\x5d\x00\x00[\x00-\x80][\x00-\x10](?:\xff{8}|.{5}\0{3})\0",
    re.DOTALL,
)
_ZIP_START, _ZIP_END = b"PK\x03\x04", b"PK\x05\x06"
_ZIP_HEADER = struct.Struct("<26xHH")
"""Reads the header of a zip member, whose last fields are the lengths of its name and of its extra field."""
_UNSUPPORTED = {
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"Rar!\x1a\x07": "rar",
    b"Salted__": "openssl, encrypted",
    b"age-encryption.org/": "age, encrypted",
    b"-----BEGIN PGP MESSAGE": "PGP, encrypted",
    b"$ANSIBLE_VAULT": "Ansible Vault, encrypted",
    b"\xff\x06\x00\x00sNaPpY": "snappy",
    b"LZIP": "lzip",
    b"\x89LZO": "lzop",
    b"\x1f\x9d": "compress",
}
"""Formats that the standard library cannot read, by the first bytes of a file."""
_OFTEN_PACKED = {
    b"PAR1": "parquet",
    b"LANC": "lance",
    b"\x57\xfb\x80\x8b\x24\x75\x47\xdb": "LevelDB",
    b"ORC": "orc",
}
"""Formats whose parts may be compressed in ways that are not read, by the last bytes of a file."""


Span = tuple[int, int]
"""The offset of the first byte, and the offset after the last byte."""


class Stream(Struct, frozen=True):
    """A compressed part of a file; `content` is decompressed."""

    offset: int
    encoding: str
    content: bytes
    packed: tuple[Span, ...] = ()
    """The places, in `content`, of nested compressed streams that were read completely."""


class Unpacked(Struct):
    """The decompressed streams of a file, and reasons why parts could not be read."""

    streams: list[Stream] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    """The reasons why parts were not read."""
    rest: bytes = b""
    """The bytes of the file that belong to no compressed stream."""
    packed: tuple[Span, ...] = ()
    """The places of compressed streams that were read completely; their contents are in `streams`."""
    octets: int = 0
    """The number of decompressed bytes of all streams."""

    def note(self, reason: str) -> None:
        if reason not in self.unread:
            self.unread.append(reason)

    def add(self, stream: Stream) -> None:
        if len(stream.content) > _LARGEST:
            self.note(f"more than {_LARGEST // 2**20} MB in one compressed stream")
        self.octets += len(stream.content)
        self.streams.append(stream)

    @property
    def is_full(self) -> bool:
        """Return whether the limits are reached. If so, add a reason to `unread`."""
        if len(self.streams) < _MOST_STREAMS and self.octets < _LARGEST_IN_ALL:
            return False
        self.note(f"more than {_MOST_STREAMS:,} compressed streams, or {_LARGEST_IN_ALL // 2**20} MB in them")
        return True


_READERS: tuple[tuple[bytes, str, Callable[[], Any]], ...] = (
    (b"\x1f", "gzip", lambda: zlib.decompressobj(31)),
    (b"B", "bzip2", bz2.BZ2Decompressor),
    (b"\xfd", "xz", lzma.LZMADecompressor),
    (b"\x5d", "lzma", lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE)),
    (b"\x78", "zlib", zlib.decompressobj),
)


def unpack(octets: bytes) -> Unpacked:
    """Decompress every compressed stream in `octets`, also nested ones, and note what could not be read.

    A damaged stream is read up to the damage.
    """
    unpacked = Unpacked()
    parts = _unpack(octets, unpacked)
    unpacked.rest = b"".join(
        octets[start:end] for start, end in gaps([(start, end) for start, end, _ in parts], octets)
    )
    unpacked.packed = _whole(parts)
    return unpacked


def gaps(spans: Iterable[Span], octets: bytes) -> list[Span]:
    """Return the parts of `octets` that are in none of the spans, in order."""
    reached, found = 0, []
    for start, end in sorted(spans):
        if start > reached:
            found.append((reached, start))
        reached = max(reached, end)
    return [*found, (reached, len(octets))] if reached < len(octets) else found


def looks_packed(octets: bytes) -> bool:
    """Return whether bytes seem to be compressed or encrypted: they are not text and do not compress well."""
    if len(octets) < _SHORT or not _is_binary(octets):
        return False
    if len(octets) < _LONG:
        return sum(octet == 0 or 32 <= octet < 127 for octet in octets) < _READABLE * len(octets)
    return len(zlib.compress(octets, 1)) > _DENSE * len(octets)


def packing_format(octets: bytes) -> str:
    """Return the format of a file, such as `parquet`, if files of this format often have compressed parts; else ""."""
    if not _is_binary(octets):
        return ""
    return next((name for end, name in _OFTEN_PACKED.items() if end in octets[-len(end) - 1 :]), "")


def _is_binary(octets: bytes) -> bool:
    return sum(octets.count(octet) for octet in range(32) if octet not in b"\t\n\r") > len(octets) / 50


_Part = tuple[int, int, bool]
"""The offset of a stream, the offset after its last byte, and whether it was read to its end."""


def _whole(parts: Iterable[_Part]) -> tuple[Span, ...]:
    return tuple(sorted((start, end) for start, end, is_whole in parts if is_whole))


def _unpack(octets: bytes, unpacked: Unpacked, layer: int = 0) -> Sequence[_Part]:
    """Add the decompressed streams of `octets` to `unpacked`; return the places of the compressed ones."""
    first = len(unpacked.streams)
    for start, name in _UNSUPPORTED.items():
        if octets.startswith(start):
            unpacked.note(f"packed in a format that is not read ({name})")
    parts: list[_Part] = []
    if octets.startswith(_ZIP_START) or _ZIP_END in octets:
        parts += _unzip(octets, unpacked)
    parts += _read_streams(octets, unpacked, _whole(parts))
    if not parts and _is_binary(octets):
        parts += _inflate(memoryview(octets), unpacked)
    for place, stream in enumerate(unpacked.streams[first:], first):
        inner = Unpacked(unread=unpacked.unread, octets=unpacked.octets)
        if _STARTS.search(stream.content) is None and _ZIP_END not in stream.content:
            continue
        if layer + 1 == _MOST_LAYERS:
            unpacked.note(f"more than {_MOST_LAYERS} layers of compression")
            continue
        inner_parts = _unpack(stream.content, inner, layer + 1)
        unpacked.streams[place] = replace(stream, packed=_whole(inner_parts))
        for one in inner.streams:
            unpacked.add(replace(one, offset=stream.offset, encoding=f"{one.encoding} in {stream.encoding}"))
    return parts


def _read_streams(octets: bytes, unpacked: Unpacked, known: Sequence[Span]) -> Iterator[_Part]:
    """Add the streams that begin with the first bytes of a known format, and yield their places.

    Places in `known` are skipped: inside a stream that was read, such bytes occur by chance.
    """
    view, at = memoryview(octets), 0
    while (match := _STARTS.search(octets, at)) is not None:
        start = match.start()
        place = bisect_right(known, start, key=lambda span: span[0]) - 1
        if place >= 0 and start < known[place][1]:
            at = known[place][1]
            continue
        name, make_reader = next((name, make) for first, name, make in _READERS if match[0].startswith(first))
        content, consumed, has_end = _decompress(make_reader(), view[start:])
        at = start + (consumed if has_end else 1)
        if not content:
            continue
        if unpacked.is_full:
            return
        unpacked.add(Stream(start, name, content))
        yield start, start + consumed, has_end
        if len(content) > _LARGEST:
            # where it ends is unknown, and it is named as not read: all that follows may be its bytes
            yield start, len(octets), True


def _decompress(reader: Any, octets: memoryview) -> tuple[bytes, int, bool]:
    """Return the content of a stream, its compressed length, and whether its end was reached.

    Read at most one byte more than the limit, so that the caller can see that the limit was exceeded.
    """
    content, at = bytearray(), 0
    try:
        while at < len(octets) and not reader.eof and len(content) <= _LARGEST:
            piece = octets[at : at + _PIECE]
            content += reader.decompress(piece, _LARGEST + 1 - len(content))
            at += len(piece)
    except (zlib.error, lzma.LZMAError, OSError, EOFError):
        return bytes(content), at, False
    return bytes(content), at - len(reader.unused_data), reader.eof


def _inflate(octets: memoryview, unpacked: Unpacked) -> Iterator[_Part]:
    """Add consecutive deflate streams without a header to `unpacked`, and yield their places."""
    at, has_end = 0, True
    while at < len(octets) and has_end and not unpacked.is_full:
        content, consumed, has_end = _decompress(zlib.decompressobj(-zlib.MAX_WBITS), octets[at:])
        if has_end and content:
            unpacked.add(Stream(at, "deflate", content))
            yield at, at + consumed, True
        at += consumed


def _data_of(member: zipfile.ZipInfo, octets: bytes) -> _Part:
    """Return the place of the data of a zip member: after its header, name and extra field."""
    header = octets[member.header_offset : member.header_offset + _ZIP_HEADER.size]
    start = member.header_offset + sum((_ZIP_HEADER.size, *_ZIP_HEADER.unpack(header)))
    return start, start + member.compress_size, True


def _unzip(octets: bytes, unpacked: Unpacked) -> list[_Part]:
    try:
        with zipfile.ZipFile(BytesIO(octets)) as archive:
            members = archive.infolist()
            parts: list[_Part] = []
            for member in members:
                if unpacked.is_full:
                    break
                try:
                    with archive.open(member) as file:
                        unpacked.add(Stream(member.header_offset, "zip", file.read(_LARGEST + 1)))
                except (zipfile.BadZipFile, RuntimeError, NotImplementedError, zlib.error, EOFError):
                    unpacked.note("a zip archive that is damaged, encrypted or packed in a format that is not read")
                else:
                    parts.append(_data_of(member, octets))
            return [(min((member.header_offset for member in members), default=0), len(octets), False), *parts]
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        if octets.startswith(_ZIP_START):
            unpacked.note("a zip archive that is damaged")
        return []
