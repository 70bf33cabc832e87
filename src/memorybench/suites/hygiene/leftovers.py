"""Searches files for texts that a store was asked to delete, and names the place of each copy.

A file is searched as it is, in every encoding that secrets/decoding.py knows, and unpacked by secrets/compressed.py;
so are its name, the target of a link, and extended attributes. A copy in a SQLite file is in a row, in a free page, or
in the unused bytes of a page.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from memorybench.core.records import Record
from memorybench.secrets.compressed import looks_packed, packing_format, unpack

from .copies import Check, find_copies
from .database_places import database_place
from .outside_files import find_temporary_files

Area = Literal["files", "free pages", "write-ahead log", "logs", "backups"]

LARGEST_FILE = 256 * 2**20
"""In bytes. A larger file is not searched, and is reported as not searched."""
_MOST_PLACES = 20
"""The most copies that are reported per file and text."""

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
    """The path relative to the store's folder; an absolute path for files outside the folders of the run."""
    offset: int | None
    """The byte at which the copy, or the packed stream with it, begins; None: unknown, or not in the content."""
    encoding: str
    area: Area
    detail: str = ""
    """Where the copy is in the file, such as `free page 7`."""

    moments: tuple[str, ...] = ()
    """The moments of the procedure at which the copy was found; empty: at all of them."""

    @property
    def where(self) -> str:
        """Where in the file the copy is, and at which moments it was found."""
        return ", ".join(filter(None, (self.detail, " and ".join(self.moments))))

    def __str__(self) -> str:
        place = "" if self.offset is None else f" at byte {self.offset:,}"
        return f"{self.file}{place} ({', '.join(filter(None, (self.where, self.encoding)))})"


class Searched(Struct):
    """The result of a search of files."""

    files: int = 0
    octets: int = 0
    unread: list[str] = field(default_factory=list)
    """Files of which some or all bytes could not be searched, with the reason."""
    leftovers: list[Leftover] = field(default_factory=list)
    controls: int = 0
    """The number of files that contain a control text, that is, a text that was not deleted."""
    areas: set[Area] = field(default_factory=set)
    """The kinds of files and places that were searched."""


def combine_searches(searches: Mapping[str, Searched]) -> Searched:
    """Combine searches, by moment, into one result. A copy that was not found at all moments names its moments."""
    moments: dict[Leftover, list[str]] = {}
    combined = Searched()
    for moment, searched in searches.items():
        for one in dict.fromkeys(searched.leftovers):
            moments.setdefault(one, []).append(moment)
        combined.files = max(combined.files, searched.files)
        combined.octets = max(combined.octets, searched.octets)
        combined.controls = max(combined.controls, searched.controls)
        combined.unread += [one for one in searched.unread if one not in combined.unread]
        combined.areas |= searched.areas
    combined.leftovers = [
        one if len(found) == len(searches) else one.model_copy(update={"moments": tuple(found)})
        for one, found in moments.items()
    ]
    return combined


Stamps = Mapping[Path, tuple[int, ...]]
"""By file: numbers of which at least one changes when the file is written."""


def file_stamps(places: Iterable[Path]) -> Stamps:
    """Return a stamp (inode, size, times) of each file below these places. It changes when the file is written."""
    paths = (path for place in places for path in _paths(place))
    return {path: stamp for path in paths if (stamp := _stamp(path))}


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _paths(place: Path) -> list[Path]:
    return [place, *sorted(place.rglob("*"))] if place.is_dir() else [place]


class FileSearch(Struct):
    """Searches files and folders for deleted texts, and for texts that should still be there."""

    places: Sequence[Path]
    deleted: Sequence[str]
    controls: Sequence[str]
    home: Path
    """The folder of the store. A file outside of it counts as a backup, whatever its name, unless it is a log of a
    database."""
    earlier: Stamps
    """File stamps from before the first fact was stored. A file that has not changed since then is not reported in
    `unread`, because it cannot contain a fact."""
    started: float
    """Time in seconds since 1970, before the first fact was stored. Newer files in the system's temporary folder are
    searched, too."""
    check: Check
    _known: dict[tuple[str, bytes], Searched] = field(default_factory=dict)
    """Cache of results by the name and digest of a file, so that an unchanged file is not searched again."""
    _known_labels: dict[bytes, dict[str, str]] = field(default_factory=dict)
    """Cache by file name, link target or attribute: the encoding of each deleted text that it contains."""

    def search(self) -> Searched:
        searched = Searched()
        temporary = find_temporary_files(self.deleted, self.started)
        others = {path: reason for path, reason in temporary.unread.items() if not _is_in(path, self.places)}
        searched.unread += [f"{path}: {reason}" for path, reason in others.items()]
        for path in temporary.found:
            if not _is_in(path, self.places):
                unread = self._add_file(path, str(path), searched, is_moved=True)
                searched.unread += [f"{path}: {reason}" for reason in unread]
        for place in self.places:
            is_ours = self.home.is_relative_to(place)
            for path in _paths(place):
                name = Path(os.path.relpath(path, self.home)).as_posix() if is_ours else str(path)
                searched.leftovers += self._in_labels(path, name)
                if path.is_file():
                    unread = self._add_file(
                        path, name, searched, is_moved=is_ours and not path.is_relative_to(self.home)
                    )
                    if _stamp(path) != self.earlier.get(path):
                        searched.unread += [f"{name}: {reason}" for reason in unread]
                elif path.is_symlink() and path.is_dir() and not _is_in(path.resolve(), self.places):
                    searched.unread.append(f"{name}: a link to a folder that is not searched")
        return searched

    def _in_labels(self, path: Path, name: str) -> Iterator[Leftover]:
        """Yield copies in the name, link target and extended attributes of a file or folder."""
        for detail, octets in _labels(path, name):
            if octets not in self._known_labels:
                copies = find_copies(self.deleted, octets, unpack(octets), self.check)
                self._known_labels[octets] = {text: found[0].encoding for text, found in copies.items() if found}
            for text, encoding in self._known_labels[octets].items():
                yield Leftover(text=text, file=name, offset=None, encoding=encoding, area="files", detail=detail)

    def _add_file(self, path: Path, name: str, searched: Searched, *, is_moved: bool) -> Sequence[str]:
        """Search one file and add the result to `searched`; return why parts of the file were not searched."""
        self.check()
        try:
            if path.stat().st_size > LARGEST_FILE:
                return [f"larger than {LARGEST_FILE // 2**20} MB"]
            octets = path.read_bytes()
        except OSError as error:
            return [error.strerror or "unreadable"]
        # not by size and time: a change within one tick of the clock would be missed
        identity = name, hashlib.sha256(octets).digest()
        if identity not in self._known:
            self._known[identity] = self._search_file(path, name, octets, _area(name, octets, is_moved=is_moved))
        found = self._known[identity]
        searched.files += found.files
        searched.octets += found.octets
        searched.areas |= found.areas
        searched.controls += found.controls
        searched.leftovers += found.leftovers
        return found.unread

    def _search_file(self, path: Path, name: str, octets: bytes, area: Area) -> Searched:
        """Search one file and return the result. Its `unread` has reasons without the name of the file."""
        is_database = octets.startswith(_SQLITE)
        unpacked = unpack(octets)
        copies = find_copies([*self.deleted, *self.controls], octets, unpacked, self.check)
        leftovers = []
        for text in self.deleted:
            for offset, encoding in copies[text][:_MOST_PLACES]:
                found_area, detail = area, ""
                if is_database and offset is not None:
                    detail = database_place(path, octets, offset, text)
                    found_area = area if detail.startswith("row") else "free pages"
                leftovers.append(
                    Leftover(text=text, file=name, offset=offset, encoding=encoding, area=found_area, detail=detail)
                )
        has_control = any(copies[text] for text in self.controls)
        if not has_control and (packing := packing_format(octets)):
            unpacked.note(f"packed in a format that is not read ({packing})")
        elif not has_control and looks_packed(unpacked.rest):
            unpacked.note("packed or encrypted in an unknown way")
        areas: set[Area] = {area, "free pages"} if is_database else {area}
        return Searched(1, len(octets), unpacked.unread, leftovers, int(has_control), areas)


def _is_in(path: Path, places: Iterable[Path]) -> bool:
    return any(path.is_relative_to(place.resolve()) for place in places)


def _labels(path: Path, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the name of a file or folder, the target of a link, and the names and values of extended attributes."""
    yield "in its name", os.fsencode(Path(name).name)
    # the file may be gone by now, and not every file system has attributes
    with suppress(OSError):
        if path.is_symlink():
            yield "in the target of the link", os.fsencode(os.readlink(path))
    if sys.platform == "linux":
        with suppress(OSError):
            for attribute in os.listxattr(path, follow_symlinks=False):
                value = os.getxattr(path, attribute, follow_symlinks=False)
                yield "in an extended attribute", os.fsencode(attribute) + b"\n" + value


def _area(name: str, octets: bytes, *, is_moved: bool) -> Area:
    """Return the kind of a file, by its first bytes and its name. `is_moved`: it is outside the store's folder."""
    if octets.startswith(_WAL_STARTS) or _WAL_NAME.search(name):
        return "write-ahead log"
    if is_moved or _BACKUP_NAME.search(name):
        return "backups"
    return "logs" if _LOG_NAME.search(name) else "files"
