"""Unpacks the data files of a zip archive into the cache, with limits on names, number and size."""

from __future__ import annotations

import re
import shutil
import stat
import tempfile
import zlib
from lzma import LZMAError
from pathlib import Path
from zipfile import BadZipFile, ZipFile, ZipInfo

from memorybench.core.errors import BadInput
from memorybench.files.reading import ANY_RATIO, LARGEST, LARGEST_RATIO

from .items import is_hidden, is_readable, is_system_file

MOST_FILES = 20_000
_CHUNK = 2**20
_ENCRYPTED = 0x1
_SAFE_NAME = re.compile(r"(?![/\\])(?!.*(?:^|/)\.\.(?:/|$))[^\\:\0]+", re.DOTALL)


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack the data files of an archive into `folder`, unless this folder exists; return the folder.

    The folder is created only when it is complete. Files in the archive that are not data files are skipped.
    """
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with ZipFile(archive) as opened, tempfile.TemporaryDirectory(prefix=".unpack-", dir=folder.parent) as draft:
            for member in _checked_members(archive, opened):
                target = Path(draft, "files", member.filename)
                target.parent.mkdir(parents=True, exist_ok=True)
                with opened.open(member) as source, target.open("xb") as file:
                    shutil.copyfileobj(source, file, _CHUNK)
            _move(Path(draft, "files"), folder)
    except (
        BadZipFile,
        zlib.error,
        LZMAError,
        UnicodeDecodeError,
        EOFError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise BadInput(str(archive), f"is not a valid zip archive: {error}", remedy="download it again") from None
    except OSError as error:
        raise BadInput(
            str(archive),
            f"cannot be unpacked into {folder}: {error.strerror or error}",
            remedy="check disk space and permissions",
        ) from None
    return folder


def skipped_members(archive: Path) -> list[str]:
    """Return the names of the files that `unpack` skips, without those that an operating system created."""
    with ZipFile(archive) as opened:
        names = [member.filename for member in opened.infolist() if not member.is_dir()]
    return [name for name in names if (is_hidden(name) or not is_readable(name)) and not is_system_file(name)]


def _move(draft: Path, folder: Path) -> None:
    try:
        draft.rename(folder)
    except OSError:
        if not folder.is_dir():  # another process was faster
            raise


def _checked_members(archive: Path, opened: ZipFile) -> list[ZipInfo]:
    """Return the data files; raise BadInput if the archive is too large or contains a name that is not allowed.

    The declared sizes can be trusted, because `ZipFile` never reads more of a file than its declared size.
    """
    members = [member for member in opened.infolist() if not member.is_dir()]
    names: set[str] = set()
    for member in members:
        where = f"{archive}: {member.filename!r}"
        if not _SAFE_NAME.fullmatch(member.filename):
            raise BadInput(
                where,
                "this name may lead out of the folder",
                expected="a relative name without .., \\ and :",
                remedy="rename it in the archive",
            )
        if stat.S_ISLNK(member.external_attr >> 16):
            raise BadInput(where, "is a link", expected="a file", remedy="pack the file itself")
        if member.flag_bits & _ENCRYPTED:
            raise BadInput(where, "is encrypted", remedy="unpack the archive yourself and set data.path to the files")
        if member.filename.casefold() in names:
            raise BadInput(where, "the archive contains this name twice", remedy="pack every file once")
        names.add(member.filename.casefold())
    chosen = [member for member in members if is_readable(member.filename) and not is_hidden(member.filename)]
    if not chosen:
        raise BadInput(str(archive), "contains no data file", expected="JSON, JSONL, CSV or Parquet files")
    size, cap = sum(member.file_size for member in chosen), max(ANY_RATIO, LARGEST_RATIO * archive.stat().st_size)
    if len(chosen) > MOST_FILES or size > min(LARGEST, cap):
        raise BadInput(
            str(archive),
            f"unpacks to {len(chosen):,} files with {size:,} bytes",
            expected=f"at most {MOST_FILES:,} files with {min(LARGEST, cap):,} bytes",
            remedy="if you trust it, unpack it yourself and set data.path to the files",
        )
    return chosen
