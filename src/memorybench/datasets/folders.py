"""The data files of a folder: those that names and globs select, those that are joined, and those that are not read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from memorybench.core.errors import BadInput
from memorybench.files.names import inside

from .config import BenchmarkConfig, Data
from .file_names import is_glob
from .items import is_hidden, is_readable, is_system_file
from .sources import Piece, Source, check_checksum_names, checksum_of

_MOST_FILES = 10_000
"""Maximum number of files in subfolders that are examined, to report which of them are not read."""


def folder_source(config: BenchmarkConfig, data: Data, folder: Path) -> Source:
    """Return the files of a folder that the names and globs of the config select, and those that are joined."""
    pieces = _chosen(folder, data.files)
    for name, join in data.join.items():
        if join.file is None:
            pieces += _chosen(folder, join.files, name)
            continue
        for piece in [piece for piece in pieces if not piece.join]:
            pieces.append(Piece(joined_file(join.file, piece.file, folder), join=name))
    names = {piece.file: piece.file.relative_to(folder).as_posix() for piece in pieces}
    check_checksum_names(config, set(names.values()), folder)
    pieces = [replace(piece, sha256=checksum_of(data, names[piece.file])) for piece in pieces]
    return Source(config.name, data.licence, tuple(pieces), folder, skipped=tuple(_skipped(folder, data.files)))


def joined_file(names: str, item_file: Path, folder: Path) -> Path:
    """Return the file to join to the items of `item_file`: the first of `names` that exists, or the first if none does.

    It must be in `folder`.
    """
    stem = item_file.name.removesuffix(".gz").rpartition(".")[0]
    candidates = []
    for name in names.split("|"):
        named = name.strip().replace("${stem}", stem).replace("${folder}", item_file.parent.name)
        if "${number}" in named:
            named = named.replace("${number}", _last_number(item_file, stem))
        resolved = inside(folder, item_file.parent.resolve() / named, "data.join")
        candidates.append(folder / resolved.relative_to(folder.resolve()))
    return next((one for one in candidates if one.is_file()), candidates[0])


def _last_number(file: Path, stem: str) -> str:
    numbers = re.findall(r"[0-9]+", stem)
    if not numbers:
        raise BadInput(
            str(file),
            "data.join uses ${number}, but the name of this file has no number",
            expected="a name such as notes_12.json",
            remedy="rename the file, or correct data.join",
        )
    return str(numbers[-1])


def _chosen(folder: Path, names: Sequence[str], join: str = "") -> list[Piece]:
    """Return the files that the names and globs select, each once, although several globs may match it."""
    excluded = _excluded(folder, names)
    chosen: dict[Path, None] = {}
    for name in names:
        if name.startswith("!"):
            continue
        found = [folder / name]
        if is_glob(name):
            matches = [file for file in folder.glob(name) if _is_data(file, folder, name) and file not in excluded]
            found = sorted(matches, key=lambda file: _natural(file.relative_to(folder).as_posix())) or found
        chosen |= dict.fromkeys(found)
    return [Piece(file, join=join) for file in chosen]


def _skipped(folder: Path, names: Sequence[str]) -> Iterator[str]:
    """Yield the files that match a glob of `names` but are not data files. Files of operating systems are left out."""
    excluded = _excluded(folder, names)
    globs = [name for name in names if is_glob(name) and not name.startswith("!")]
    matches = {file: name for name in globs for file in folder.glob(name) if file.is_file() and file not in excluded}
    for file, name in sorted(matches.items()):
        if not _is_data(file, folder, name) and not is_system_file(str(file.relative_to(folder))):
            yield file.relative_to(folder).as_posix()


def files_in_subfolders(source: Source, folder: Path) -> Iterator[str]:
    """Yield the data files in subfolders that are not read: a config without `files` reads only the folder itself."""
    read = {piece.file for piece in source.pieces}
    files = islice(folder.glob("*/**/*"), _MOST_FILES)  # the folder may be a whole disk
    for file in sorted(file for file in files if _is_data(file, folder, "") and file not in read):
        yield file.relative_to(folder).as_posix()


def _excluded(folder: Path, names: Sequence[str]) -> set[Path]:
    return {file for name in names if name.startswith("!") for file in folder.glob(name.removeprefix("!"))}


def _is_data(file: Path, folder: Path, glob: str) -> bool:
    """Return whether a file is a data file to read. A hidden file is one only if the glob names hidden files."""
    hidden = is_hidden(str(file.relative_to(folder))) and not is_hidden(glob)
    return file.is_file() and is_readable(file.name) and not hidden


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that compares numbers by value, so that `chat-2` comes before `chat-10`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
