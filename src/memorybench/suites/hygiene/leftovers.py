"""Searches files for a text that a store was told to delete, and names the place of each copy.

A file is searched as it is, in every encoding that secrets/decoding.py knows, and unpacked by
secrets/compressed.py. A copy in a SQLite file is in a row, in a free page, or in the unused bytes of a page.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from memorybench.core.records import Record
from memorybench.secrets.canaries import find_text, locate
from memorybench.secrets.compressed import Stream, looks_packed, unpack

Area = Literal["files", "free pages", "write-ahead log", "logs", "backups"]

LARGEST_FILE = 256 * 2**20
"""Bytes of a file that is searched. A larger file is named as not searched."""
LARGEST_DECODED = 2 * 2**20
"""Bytes of the compressed streams of a file that are searched in every encoding, which is slow. Others are searched as
plain text, and the file is named as not searched."""
_MOST_PLACES = 20
"""Copies that are named per file and text."""

_SQLITE = b"SQLite format 3\0"
_WAL_STARTS = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83", b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7")
"""The first bytes of SQLite's write-ahead logs, in both byte orders, and of its rollback journals."""
_WAL_NAME = re.compile(r"-(?:wal|journal)$|\.wal$|(?:^|/)wal/", re.I)
_LOG_NAME = re.compile(r"\.log(?:\.|$)|(?:^|/)logs?/|[-_.]log$", re.I)
_BACKUP_NAME = re.compile(
    r"backup|export|dump|archive|snapshot|trash|\.(?:bak|old|orig|sql|gz|zip|tar|tgz|bz2|xz|zst)(?:\.|$)|~$", re.I
)


class Leftover(Record):
    """A copy of a deleted text in a file."""

    text: str
    """The made-up word that was searched for."""
    file: str
    """Relative to the folder of the store; an absolute path outside of the folders of the run."""
    offset: int | None
    """The byte at which the copy, or the packed stream with it, begins; None: unknown, or in the file's name."""
    encoding: str
    area: Area
    detail: str = ""
    """Where it is in the file, such as `free page 7`."""

    @property
    def place(self) -> tuple[str, str, int | None, str]:
        return self.text, self.file, self.offset, self.encoding

    def with_detail(self, detail: str) -> Leftover:
        return self.model_copy(update={"detail": ", ".join(filter(None, (self.detail, detail)))})

    def __str__(self) -> str:
        place = "" if self.offset is None else f" at byte {self.offset:,}"
        return f"{self.file}{place} ({', '.join(filter(None, (self.detail, self.encoding)))})"


@dataclass(slots=True)
class Searched:
    """What a search of files read and found."""

    files: int = 0
    octets: int = 0
    unread: list[str] = field(default_factory=list)
    """Files that could not be read, with the reason."""
    leftovers: list[Leftover] = field(default_factory=list)
    controls: int = 0
    """Files that hold a text that was not deleted."""
    areas: set[Area] = field(default_factory=set)
    """The kinds of files that there are."""

    def add_later(self, later: Searched) -> None:
        """Add what a search found after the store was closed; a copy that is gone by then is marked."""
        places = {one.place for one in later.leftovers}
        self.leftovers = [
            *(one if one.place in places else one.with_detail("while the store was open") for one in self.leftovers),
            *(one for one in later.leftovers if one.place not in {first.place for first in self.leftovers}),
        ]
        self.files, self.octets = max(self.files, later.files), max(self.octets, later.octets)
        self.controls = max(self.controls, later.controls)
        self.unread += [one for one in later.unread if one not in self.unread]
        self.areas |= later.areas


Stamps = Mapping[Path, tuple[int, ...]]
"""By file: what changes when it is written."""


def file_stamps(places: Iterable[Path]) -> Stamps:
    """Return the size and times of all files below these places. A file with another stamp later was written to."""
    paths = (path for place in places for path in _paths(place))
    return {path: stamp for path in paths if (stamp := _stamp(path))}


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _paths(place: Path) -> list[Path]:
    return sorted(place.rglob("*")) if place.is_dir() else [place]


def search_files(
    places: Sequence[Path], deleted: Sequence[str], controls: Sequence[str], home: Path, earlier: Stamps
) -> Searched:
    """Search files and folders for the deleted texts, and for texts that should still be there.

    `home` is the folder of the store. A file beside it is a copy, whatever its name. A file that did not change since
    `earlier` is searched, too; if it cannot be read, that does not matter, because no fact was told before.
    """
    searched = Searched()
    for place in places:
        is_ours = home.is_relative_to(place)
        for path in _paths(place):
            name = Path(os.path.relpath(path, home)).as_posix() if is_ours else str(path)
            searched.leftovers += _in_name(name, deleted)
            if path.is_file():
                is_moved = is_ours and not path.is_relative_to(home)
                unread = _search_file(path, name, deleted, controls, searched, is_moved=is_moved)
                if _stamp(path) != earlier.get(path):
                    searched.unread += [f"{name}: {reason}" for reason in unread]
            elif path.is_symlink() and path.is_dir() and not _is_in(path.resolve(), places):
                searched.unread.append(f"{name}: a link to a folder that is not searched")
    return searched


def _is_in(path: Path, places: Iterable[Path]) -> bool:
    return any(path.is_relative_to(place.resolve()) for place in places)


def _in_name(name: str, deleted: Sequence[str]) -> Iterator[Leftover]:
    for text in deleted:
        for sighting in find_text(text, {"": Path(name).name}):
            yield Leftover(
                text=text, file=name, offset=None, encoding=sighting.encoding, area="files", detail="in its name"
            )


def _search_file(
    path: Path, name: str, deleted: Sequence[str], controls: Sequence[str], searched: Searched, *, is_moved: bool
) -> list[str]:
    """Search one file; return why parts of it were not searched."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            return [f"larger than {LARGEST_FILE // 2**20} MB"]
        octets = path.read_bytes()
    except OSError as error:
        return [error.strerror or "unreadable"]
    searched.files += 1
    searched.octets += len(octets)
    area = _area(name, octets, is_moved=is_moved)
    searched.areas |= {area, "free pages"} if octets.startswith(_SQLITE) else {area}
    unpacked = unpack(octets)
    streams = unpacked.streams
    if any(len(stream.content) > LARGEST_DECODED for stream in streams):
        unpacked.note(f"more than {LARGEST_DECODED // 2**20} MB in one compressed stream, searched as plain text only")
    has_control = any(_holds(text, octets, streams) for text in controls)
    searched.controls += has_control
    for text in deleted:
        places = list(_places(text, octets, streams))[:_MOST_PLACES]
        for offset, encoding in places:
            found_area, detail = area, ""
            if octets.startswith(_SQLITE) and offset is not None:
                detail = _database_place(path, octets, offset, text)
                found_area = area if detail.startswith("row") else "free pages"
            searched.leftovers.append(
                Leftover(text=text, file=name, offset=offset, encoding=encoding, area=found_area, detail=detail)
            )
    if not has_control and looks_packed(unpacked.rest):
        return [*unpacked.unread, "packed or encrypted in an unknown way"]
    return unpacked.unread


def _area(name: str, octets: bytes, *, is_moved: bool) -> Area:
    """Return what kind of file it is, by its first bytes and its name."""
    if octets.startswith(_WAL_STARTS) or _WAL_NAME.search(name):
        return "write-ahead log"
    if is_moved or _BACKUP_NAME.search(name):
        return "backups"
    return "logs" if _LOG_NAME.search(name) else "files"


def _holds(text: str, octets: bytes, streams: Sequence[Stream]) -> bool:
    return next(_places(text, octets, streams), None) is not None


def _places(text: str, octets: bytes, streams: Sequence[Stream]) -> Iterator[tuple[int | None, str]]:
    """Yield the offset and encoding of each plain and each packed copy; without one, of the first encoded copy."""
    plain = sorted(at for codec in ("utf-8", "utf-16-le", "utf-16-be") for at in _offsets(text.encode(codec), octets))
    yield from ((at, "plain") for at in plain)
    packed = [(stream, located) for stream in streams if (located := _locate_in(stream, text))]
    for stream, (encoding, _) in packed:
        yield stream.offset, stream.encoding if encoding == "plain" else f"{encoding} in {stream.encoding}"
    if not plain and not packed and (found := locate(text, octets, find_text)) is not None:
        yield found[1], found[0]


def _locate_in(stream: Stream, text: str) -> tuple[str, int | None] | None:
    if len(stream.content) <= LARGEST_DECODED:
        return locate(text, stream.content, find_text)
    is_plain = any(text.encode(codec) in stream.content for codec in ("utf-8", "utf-16-le", "utf-16-be"))
    return ("plain", None) if is_plain else None


def _offsets(needle: bytes, octets: bytes) -> Iterator[int]:
    at = octets.find(needle)
    while at >= 0:
        yield at
        at = octets.find(needle, at + 1)


def _database_place(path: Path, octets: bytes, offset: int, text: str) -> str:
    """Return where in a SQLite file a byte is: `row in table …`, `free page …` or `unused bytes of page …`."""
    size = int.from_bytes(octets[16:18]) or 65536
    size = 65536 if size == 1 else size
    page = offset // size + 1
    if page in _free_pages(octets, size):
        return f"free page {page}"
    table = _table_with(path, text)
    return f"row in table {table}" if table is not None else f"unused bytes of page {page}"


def _free_pages(octets: bytes, size: int) -> set[int]:
    """Return the pages on the free list (https://www.sqlite.org/fileformat.html#the_freelist)."""
    pages: set[int] = set()
    trunk = int.from_bytes(octets[32:36])
    while trunk and trunk not in pages:
        pages.add(trunk)
        page = octets[(trunk - 1) * size : trunk * size]
        count = min(int.from_bytes(page[4:8]), size // 4 - 2)
        pages |= {int.from_bytes(page[8 + 4 * n : 12 + 4 * n]) for n in range(count)}
        trunk = int.from_bytes(page[:4])
    return pages


def _table_with(path: Path, text: str) -> str | None:
    """Return the first table with a row that holds the text; None if there is none, or the file cannot be read."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            database.text_factory = bytes
            tables = database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            for (name,) in tables:
                quoted = name.decode().replace('"', '""')
                for row in database.execute(f'SELECT * FROM "{quoted}"'):  # noqa: S608  the name is quoted
                    if any(isinstance(cell, bytes) and locate(text, cell, find_text) is not None for cell in row):
                        return str(name.decode())
    except sqlite3.Error:
        return None
    return None
