"""Finds files that a store wrote outside its folder while a script ran."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

from msgspec import Struct, field

from memorybench.secrets.canaries import encodings
from memorybench.secrets.compressed import unpack

if TYPE_CHECKING:
    from .driver import Fixture

_LARGEST = 32 * 2**20
"""In bytes; so many take two seconds. Larger files in the system's temporary folder are reported as not read."""
_CLOCK_STEP = 0.1
"""Seconds by which the timestamp of a new file may be earlier than the clock showed when it was written."""


class OutsideFiles(Struct, frozen=True):
    """New or changed files that are not in the store's folder."""

    found: dict[str, Path] = field(default_factory=dict)
    """Files next to the store's folder and in the workspace, and those in the system's temporary folder that contain a
    planted value. The keys are names for reports."""
    unread: tuple[str, ...] = ()
    """Files in the system's temporary folder that were not read, with the reason. They may contain a planted value."""


class TemporaryFiles(Struct):
    """New files in the system's temporary folder."""

    found: list[Path] = field(default_factory=list)
    """Files that contain a value."""
    unread: dict[Path, str] = field(default_factory=dict)
    """By file that was not read: the reason."""


def find_outside_files(fixture: Fixture) -> OutsideFiles:
    """Find new or changed files next to the store's folder, in the workspace and in the system's temporary folder.

    Other folders are not searched.
    """
    root = fixture.store_folder.parent
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_relative_to(fixture.store_folder) and not _is_setup_file(fixture, path):
            found[f"../{path.relative_to(root).as_posix()}"] = path
    temporary = find_temporary_files(list(fixture.planted_values.values()), fixture.started)
    unread = tuple(f"{path} ({reason})" for path, reason in temporary.unread.items())
    return OutsideFiles(found | {str(path): path for path in temporary.found}, unread)


def find_temporary_files(values: Sequence[str], since: float) -> TemporaryFiles:
    """Find files in the system's temporary folder that were written at or after `since` and contain a value.

    `since` is in seconds since 1970.
    """
    needles = [form for value in values for form in _encoded_forms(value)]
    files = TemporaryFiles()
    for path, size in _new_temporary_files(since - _CLOCK_STEP) if needles else ():
        try:
            if size > _LARGEST:
                files.unread[path] = f"larger than {_LARGEST // 2**20} MB"
            elif _mentions(path.read_bytes(), needles):
                files.found.append(path)
        except FileNotFoundError:
            continue  # deleted in the meantime
        except OSError as error:
            files.unread[path] = error.strerror or "unreadable"
    return files


@lru_cache(maxsize=64)
def _encoded_forms(value: str) -> tuple[bytes, ...]:
    """Return a value in every encoding that is planted, as bytes. Cached, because all scripts of a scenario need it."""
    return tuple(form.encode() for form in encodings(value).values())


def _mentions(octets: bytes, needles: Sequence[bytes]) -> bool:
    """Return whether bytes contain one of the byte strings, plain or in a compressed stream."""
    parts = (octets, *(stream.content for stream in unpack(octets).streams))
    return any(needle in part for part in parts for needle in needles)


def _is_setup_file(fixture: Fixture, path: Path) -> bool:
    if not path.is_relative_to(fixture.workspace):
        return False
    text = fixture.scenario.setup.files.get(path.relative_to(fixture.workspace).as_posix())
    return text is not None and path.read_bytes() == text.encode()


def _new_temporary_files(since: float) -> list[tuple[Path, int]]:
    """Return files of this user in the temporary folder, or one level below it, written at `since` or later.

    Each file comes with its size in bytes.
    """
    files: list[tuple[Path, int]] = []
    # programs get another TMPDIR, but may have the name of the folder in their code
    folders = dict.fromkeys((Path(tempfile.gettempdir()), Path("/tmp")))  # noqa: S108  only read
    for entry in chain.from_iterable(_entries(folder, since) for folder in folders):
        if entry.name.startswith("memorybench-"):
            continue  # the folder of a play
        inner = _entries(Path(entry.path), since) if entry.is_dir(follow_symlinks=False) else [entry]
        files += [(Path(one.path), size) for one in inner if (size := _size_of_own_file(one)) is not None]
    return sorted(files)


def _entries(folder: Path, since: float) -> Iterator[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.stat(follow_symlinks=False).st_mtime >= since:
                    yield entry


def _size_of_own_file(entry: os.DirEntry[str]) -> int | None:
    """Return the size of a regular file of this user; None for any other entry."""
    with suppress(OSError):
        status = entry.stat(follow_symlinks=False)
        is_own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
        return status.st_size if is_own and S_ISREG(status.st_mode) else None
    return None
