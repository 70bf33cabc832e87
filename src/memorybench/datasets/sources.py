"""Where the data of a benchmark lies and where it comes from: local files, URLs, Hugging Face.

Nothing is fetched but by `pull`. What was fetched lies in the cache folder under the name of its source, so that two
benchmarks on one file share it; beside it, `<file>.pull.json` tells what came. Without a checksum in the config, that
record is what later reads are held to.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlsplit

from memorybench.core.errors import BadInput, MemorybenchError, RunConflict, ServiceError, Transient
from memorybench.core.records import Record
from memorybench.files.names import inside
from memorybench.http.client import open_http
from memorybench.http.downloads import Progress, download
from memorybench.secrets.redaction import Redactor

from .config import BenchmarkConfig, Data

HUB = "https://huggingface.co"
LARGEST = 8 * 2**30
"""Bytes that a file of unknown size may have."""

State = Literal["present", "missing", "changed"]


class Pulled(Record):
    """What came, as it is written beside the file."""

    url: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Piece:
    """One file of a source."""

    file: Path
    """Where it lies, or will lie once it is pulled."""
    url: str | None = None
    sha256: str | None = None
    size: int | None = None

    @property
    def record(self) -> Path:
        return self.file.with_name(f"{self.file.name}.pull.json")

    def pulled(self) -> Pulled | None:
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

    @property
    def pinned(self) -> bool:
        """Whether the config says what the data must be."""
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


def source_of(config: BenchmarkConfig, *, beside: Path | None, cache: Path, hub: str = HUB) -> Source:
    """`beside` is the folder of the config's file, which relative paths start from; `hub` is Hugging Face's address."""
    data = config.data
    pieces: Sequence[Piece]
    match data.type:
        case "local":
            pieces = [Piece(_found(name, beside), None, data.sha256, data.size) for name in _local_names(data)]
        case "url":
            kept = _kept(data, beside) or cache / _cached_name(data.path)
            pieces = [Piece(kept, data.path, data.sha256, data.size)]
        case "huggingface":
            pieces = list(_on_hub(config, beside, cache, hub))
        case _:
            raise BadInput(f'benchmark "{config.name}"', f"{data.type} data has no file")
    return Source(config.name, data.licence, tuple(pieces))


def given(config: BenchmarkConfig, file: Path) -> Source:
    """The data of a benchmark in a file at hand; of data that is several files, the folder."""
    data = config.data
    if data.files:
        return Source(config.name, data.licence, tuple(Piece(file / name) for name in data.files))
    return Source(config.name, data.licence, (Piece(file, None, data.sha256, data.size),))


def checked(source: Source) -> str:
    """A checksum over all files, once each is found to be there and to be what it must be."""
    sums = []
    for piece in source.pieces:
        if not piece.file.is_file():
            raise missing(source)
        found = sha256_of(piece.file)
        pulled = piece.pulled()
        wanted = piece.sha256 or (pulled.sha256 if pulled else None)
        if wanted is not None and found != wanted:
            raise _differs(source, piece, found, wanted)
        sums.append(found)
    return sums[0] if len(sums) == 1 else hashlib.sha256("".join(sums).encode()).hexdigest()


def state(source: Source) -> State:
    """Reads every byte."""
    if not source.present:
        return "missing"
    try:
        checked(source)
    except BadInput:
        return "changed"
    return "present"


def missing(source: Source) -> BadInput:
    where = f'benchmark "{source.benchmark}"'
    piece = next((piece for piece in source.pieces if not piece.file.is_file()), source.pieces[0])
    if piece.url is None:
        return BadInput(str(piece.file), f"the data of {source.benchmark} is not there", remedy="check the path")
    return BadInput(
        where,
        "its data is not on this machine",
        remedy=f"memorybench data pull {source.benchmark}; or download {piece.url} and put it at {piece.file}",
    )


async def pull(
    source: Source, redactor: Redactor, progress: Callable[[Piece], Progress] | None = None, cap: int = LARGEST
) -> None:
    """Fetches what is not there yet. A file appears whole and checked, or not at all; what is there is not replaced."""
    async with open_http(redactor) as http:
        for piece in source.pieces:
            if piece.url is None:
                raise BadInput(str(piece.file), "is a file of your own: there is nothing to pull")
            if piece.file.exists():
                _adopt(source, piece)
                continue
            told = progress(piece) if progress is not None else None
            with _drafting(piece) as draft:
                try:
                    await download(http, piece.url, draft, cap=piece.size or cap, progress=told)
                except Transient as lost:
                    raise ServiceError(f"{lost}; {_by_hand(piece)}", status=lost.status) from None
                await asyncio.to_thread(_place, source, piece, draft)


def _place(source: Source, piece: Piece, draft: Path) -> None:
    """From a draft to a file that others may read."""
    found = sha256_of(draft)
    if piece.sha256 not in (None, found):
        draft.unlink()
        raise _differs(source, piece, found, piece.sha256 or "")
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    _note(piece, found, draft.stat().st_size)
    draft.replace(piece.file)


def _adopt(source: Source, piece: Piece) -> None:
    """A file that someone put there by hand is recorded as if it had been pulled."""
    checked(Source(source.benchmark, source.licence, (piece,)))
    if piece.pulled() is None:
        _note(piece, sha256_of(piece.file), piece.file.stat().st_size)


def _note(piece: Piece, sha256: str, size: int) -> None:
    pulled = Pulled(url=piece.url or "", sha256=sha256, size=size)
    draft = piece.record.with_name(f"{piece.record.name}.part")
    draft.write_text(json.dumps(pulled.plain(), indent=2) + "\n", encoding="utf-8")
    draft.replace(piece.record)


@contextmanager
def _drafting(piece: Piece) -> Iterator[Path]:
    """The draft of a file, for one process at a time. It stays when the work is interrupted."""
    try:
        piece.file.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(piece.file.with_name(f".{piece.file.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise BadInput(str(piece.file.parent), f"can not be written: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield piece.file.with_name(f".{piece.file.name}.part")
    except BlockingIOError:
        raise RunConflict(f"{piece.file}: another process is fetching it; wait for that one") from None
    finally:
        os.close(lock)


def sha256_of(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise BadInput(str(file), f"can not be read: {error.strerror}") from None


def _differs(source: Source, piece: Piece, found: str, wanted: str) -> MemorybenchError:
    if piece.url is not None:
        remedy = f"remove it, then memorybench data pull {source.benchmark}"
    else:
        remedy = "get the original, or describe this file in a config of its own"
    return BadInput(str(piece.file), f"the checksum differs: sha256 {found}", expected=wanted, remedy=remedy)


def _by_hand(piece: Piece) -> str:
    return f"run it again, or download {piece.url} elsewhere and put it at {piece.file}"


def _local_names(data: Data) -> list[str]:
    return [str(Path(data.path) / name) for name in data.files] or [data.path]


def _found(path: str, beside: Path | None) -> Path:
    """From the config's folder (or, where that is `configs`, the one above it), then from the working folder."""
    folders = [] if beside is None else [beside, *([beside.parent] if beside.name == "configs" else [])]
    candidates = [folder / path for folder in (*folders, Path())]
    return next((candidate for candidate in candidates if candidate.exists()), candidates[0])


def _kept(data: Data, beside: Path | None) -> Path | None:
    """Where the config wants a download to be kept: in its own folder, wherever the config came from."""
    if data.local_path is None or beside is None:
        return None
    return inside(beside, data.local_path, "data.localPath")


def _on_hub(config: BenchmarkConfig, beside: Path | None, cache: Path, hub: str) -> Iterator[Piece]:
    data = config.data
    owner, name, *rest = data.path.split("/")
    kept = _kept(data, beside)
    files = data.files or (("/".join(rest) or (kept.name if kept else "")),)
    for file in files:
        if not file:
            raise BadInput(
                f'benchmark "{config.name}": data.path', "names no file", expected="owner/name/file, or data.localPath"
            )
        url = f"{hub}/datasets/{owner}/{name}/resolve/main/{quote(file)}"
        single = not data.files
        where = kept if kept is not None and single else cache / owner / name / file
        yield Piece(where, url, data.sha256 if single else None, data.size if single else None)


def _cached_name(url: str) -> Path:
    """`raw.example.org/some/file.json`; what follows a `?` is told apart by its digest."""
    parts = urlsplit(url)
    steps = [step for step in parts.path.split("/") if step not in ("", ".", "..")]
    folder = Path((parts.hostname or "") + (f"-{parts.port}" if parts.port else ""))
    if parts.query:
        folder /= hashlib.sha256(parts.query.encode()).hexdigest()[:12]
    return folder.joinpath(*steps)
