"""The data files of a benchmark: whether they are on this machine and have the expected checksums."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.text.sanitize import preview
from memorybench.text.spelling import unknown_name

from .checksums import remembered_sha256, sha256_of
from .config import BenchmarkConfig, Data
from .file_names import is_glob

State = Literal["present", "missing", "changed"]


class Pulled(Record):
    """The record of a download, stored next to the file."""

    url: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Piece:
    """One file of a source."""

    file: Path
    """The path of the file on this machine; before the download, the path that it will have."""
    url: str | None = None
    sha256: str | None = None
    size: int | None = None
    tried: tuple[Path, ...] = field(default=(), compare=False)
    """All paths at which a local file was searched for."""
    join: str = ""
    """Name of the `data.join` that the file belongs to; empty if it contains items."""

    @property
    def record(self) -> Path:
        return self.file.with_name(f"{self.file.name}.pull.json")

    def read_record(self) -> Pulled | None:
        try:
            return Pulled.model_validate_json(self.record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class Source:
    """The files of one benchmark."""

    benchmark: str
    licence: str
    pieces: tuple[Piece, ...]
    folder: Path | None = None
    """The folder that contains all files, if the config names them by globs or joins them; otherwise None."""
    published_at: str = ""
    skipped: tuple[str, ...] = ()
    """Names of files that are not read: files that a glob of the config matches but that are not data files, and files
    in subfolders."""

    @property
    def item_files(self) -> list[Path]:
        return [piece.file for piece in self.pieces if not piece.join]

    @property
    def joined(self) -> dict[str, list[Path]]:
        """The files of each join."""
        names = dict.fromkeys(piece.join for piece in self.pieces if piece.join)
        return {name: [piece.file for piece in self.pieces if piece.join == name] for name in names}

    @property
    def pinned(self) -> bool:
        """Whether the config has a checksum for each file."""
        return all(piece.sha256 is not None for piece in self.pieces)

    @property
    def remote(self) -> bool:
        return all(piece.url is not None for piece in self.pieces)

    @property
    def present(self) -> bool:
        return all(piece.file.is_file() for piece in self.pieces)

    @property
    def size(self) -> int | None:
        sizes = [piece.file.stat().st_size if piece.file.is_file() else piece.size for piece in self.pieces]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None


def checksum_of(data: Data, name: str | None = None) -> str | None:
    """Return the checksum that the config has for a file of this name; without a name, for the only file."""
    if isinstance(data.sha256, str) or data.sha256 is None:
        return data.sha256 if name is None else None
    return data.sha256.get(name) if name is not None else None


def check_checksum_names(config: BenchmarkConfig, names: Collection[str], folder: Path) -> None:
    """Raise BadInput if the config has a checksum for a file that is not read."""
    sums = config.data.sha256
    if isinstance(sums, str) or sums is None or not folder.is_dir():
        return
    for name in sums:
        if name not in names:
            where = f'benchmark "{config.name}": data.sha256'
            raise unknown_name(
                where, f"there is a checksum of {preview(name)}, but the data has no such file", name, names
            )


def verify_files(source: Source, checksums: Path | None = None) -> str:
    """Return a checksum over all files; raise BadInput if one is missing or has another checksum than expected.

    With `checksums`, the folder of stored checksums, a large file is hashed only if it has changed.
    """
    sums = []
    for piece in source.pieces:
        if not piece.file.is_file():
            raise missing(source)
        actual = sha256_of(piece.file) if checksums is None else remembered_sha256(piece.file, checksums)
        pulled = piece.read_record()
        expected = piece.sha256 or (pulled.sha256 if pulled else None)
        if expected is not None and actual != expected:
            remedy = "use the original file, or write a separate config for this file"
            if piece.url is not None:
                remedy = f"delete the file, then run `memorybench data pull {source.benchmark}`"
            raise BadInput(
                str(piece.file), f"the file has the SHA-256 checksum {actual}", expected=expected, remedy=remedy
            )
        # the name of a file may be the id of its items, or decide what is joined to them
        sums.append(actual if source.folder is None else f"{piece.file.relative_to(source.folder)}\n{actual}\n")
    return sums[0] if len(sums) == 1 and source.folder is None else hashlib.sha256("".join(sums).encode()).hexdigest()


def state(source: Source) -> State:
    """Return "missing" if a file is not on this machine, "changed" if a checksum is wrong, otherwise "present"."""
    if not source.present:
        return "missing"
    try:
        verify_files(source)
    except BadInput:
        return "changed"
    return "present"


def missing(source: Source) -> BadInput:
    """Return the error for data that is not on this machine; its remedy says how to get the data."""
    where = f'benchmark "{source.benchmark}"'
    piece = next((piece for piece in source.pieces if not piece.file.is_file()), source.pieces[0])
    if piece.file.is_dir():
        return BadInput(
            str(piece.file),
            f"the path of the data of {source.benchmark} is a folder",
            expected="a file, or a pattern that matches files",
            remedy=f"write {piece.file.name}/*",
        )
    if piece.url is None:
        is_listed = source.folder is not None and not piece.join
        kind = "files that match" if is_glob(piece.file.name) or is_listed else "a file at"
        published = source.published_at
        key = f"data.join.{piece.join}" if piece.join else "data.path"
        remedy = f"get it from {published} and put it there" if published else f"correct {key}, or put the file there"
        return BadInput(
            str(piece.file),
            f"data of {source.benchmark} not found",
            expected=f"{kind} {' or '.join(map(str, piece.tried or (piece.file,)))}",
            remedy=remedy,
        )
    return BadInput(
        where,
        "the data is not on this machine",
        remedy=f"run `memorybench data pull {source.benchmark}`, or download {piece.url} and put it at {piece.file}",
    )
