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

from memorybench.secrets.canaries import encodings
from memorybench.secrets.compressed import streams_in

if TYPE_CHECKING:
    from .driver import Fixture

_LARGEST = 2**20
"""In bytes. Larger files in the system's temporary folder are not read."""
_MOST = 100
_CLOCK_STEP = 0.1
"""Seconds by which the timestamp of a new file may be earlier than the clock."""


def find_outside_files(fixture: Fixture) -> dict[str, Path]:
    """Return new or changed files next to the store's folder, in the workspace and in the system's temporary folder.

    In the temporary folder, only files that contain a planted value count. Other folders are not searched. The keys
    are names for reports.
    """
    root = fixture.store_folder.parent
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_relative_to(fixture.store_folder) and not _is_setup_file(fixture, path):
            found[f"../{path.relative_to(root).as_posix()}"] = path
    temporary = find_temporary_files(list(fixture.planted_values.values()), fixture.started)
    return found | {str(path): path for path in temporary}


def find_temporary_files(values: Sequence[str], since: float) -> list[Path]:
    """Return files in the system's temporary folder that were written at or after `since` and contain a value.

    `since` is in seconds since 1970.
    """
    needles = [form for value in values for form in _encoded_forms(value)]
    new = _new_temporary_files(since - _CLOCK_STEP) if needles else ()
    return [path for path in new if _mentions(path, needles)]


@lru_cache(maxsize=64)
def _encoded_forms(value: str) -> tuple[bytes, ...]:
    """Return a value in every named encoding, as bytes. Cached, because all scripts of a scenario need it."""
    return tuple(form.encode() for form in encodings(value).values())


def _mentions(path: Path, needles: Sequence[bytes]) -> bool:
    """Return whether a file contains one of the byte strings, plain or in a compressed stream."""
    with suppress(OSError):
        octets = path.read_bytes()
        parts = (octets, *(stream.content for stream in streams_in(octets)))
        return any(needle in part for part in parts for needle in needles)
    return False


def _is_setup_file(fixture: Fixture, path: Path) -> bool:
    if not path.is_relative_to(fixture.workspace):
        return False
    text = fixture.scenario.setup.files.get(path.relative_to(fixture.workspace).as_posix())
    return text is not None and path.read_bytes() == text.encode()


def _new_temporary_files(since: float) -> list[Path]:
    """Return files of this user in the temporary folder, or one level below it, that were written since then."""
    files: list[Path] = []
    # programs get another TMPDIR, but may have the name of the folder in their code
    folders = dict.fromkeys((Path(tempfile.gettempdir()), Path("/tmp")))  # noqa: S108  only read
    for entry in chain.from_iterable(_entries(folder, since) for folder in folders):
        if entry.name.startswith("memorybench-"):
            continue  # the folder of a play
        inner = _entries(Path(entry.path), since) if entry.is_dir(follow_symlinks=False) else [entry]
        files += [Path(one.path) for one in inner if _is_readable(one)]
        if len(files) >= _MOST:
            break
    return sorted(files[:_MOST])


def _entries(folder: Path, since: float) -> Iterator[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.stat(follow_symlinks=False).st_mtime >= since:
                    yield entry


def _is_readable(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        status = entry.stat(follow_symlinks=False)
        is_own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
        return is_own and S_ISREG(status.st_mode) and status.st_size <= _LARGEST and os.access(entry.path, os.R_OK)
    return False
