"""Locates, downloads and verifies the data files of a benchmark: local files, URLs, Hugging Face.

Only `pull` downloads. Downloads are in the cache folder under the name of their source, so that benchmarks with the
same file share it. `<file>.pull.json` records URL, checksum and size of a download. If the config has no checksum,
later reads are compared with that record.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote, urlsplit

from memorybench.core.errors import BadInput, MemorybenchError, RunConflict, ServiceError, Transient
from memorybench.core.records import Record
from memorybench.files.names import inside
from memorybench.text.sanitize import preview
from memorybench.text.spelling import unknown_name

from .archives import skipped_members, unpack
from .checksums import remembered_sha256, sha256_of
from .config import HUB, BenchmarkConfig, Data
from .config_reading import is_archive, is_glob
from .items import is_hidden, is_readable, is_system_file

if TYPE_CHECKING:
    from memorybench.http.downloads import Progress
    from memorybench.secrets.redaction import Redactor

LARGEST = 8 * 2**30
"""Largest download in bytes, if the config gives no size."""

_MOST_FILES = 10_000
"""Files in subfolders that are looked at, to say which of them are not read."""

State = Literal["present", "missing", "changed"]


class Pulled(Record):
    """The record of a download, stored next to the file."""

    url: str
    sha256: str
    size: int


_CATALOG = Path(__file__).resolve().parent.parent / "catalog"


@dataclass(frozen=True, slots=True)
class Piece:
    """One file of a source."""

    file: Path
    """Its path, also before it is pulled."""
    url: str | None = None
    sha256: str | None = None
    size: int | None = None
    tried: tuple[Path, ...] = field(default=(), compare=False)
    """All paths at which a local file may be."""
    join: str = ""
    """Name of the `data.join` that it belongs to; empty: it contains items."""

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
    """The folder of all files, if the config names them by globs or joins them."""
    published_at: str = ""
    skipped: tuple[str, ...] = ()
    """Names of files that are not read: that a glob of the config matches, and that are not data files, or that are in
    subfolders of a folder."""

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


def source_of(config: BenchmarkConfig, *, beside: Path | None, cache: Path, hub: str = HUB) -> Source:
    """Return the files of a benchmark.

    `beside` is the folder of the config file, which relative paths start from; `hub` is the address of Hugging Face.
    """
    data = config.data
    pieces: Sequence[Piece]
    match data.type:
        case "local":
            return replace(_local_source(config, _find_local(data, beside)), published_at=config.source)
        case "url":
            file = _download_path(data, beside) or cache / _cached_name(data.path)
            pieces = [Piece(file, data.path, _checksum(data), data.size)]
        case "huggingface":
            pieces = list(_on_hub(config, beside, cache, hub))
        case _:
            raise BadInput(f'benchmark "{config.name}"', f"no files: the data is {data.type}")
    joined = data.type == "huggingface" and data.join and not is_archive(data.path)
    return Source(
        config.name, data.licence, tuple(pieces), cache.joinpath(*data.path.split("/")[:2]) if joined else None
    )


def local_source(config: BenchmarkConfig, file: Path) -> Source:
    """Return the data of a benchmark in a local file, or in a folder if the data has several files."""
    return _local_source(config, Piece(file))


def unpacked_source(config: BenchmarkConfig, source: Source, cache: Path) -> Source:
    """Return the source with the files of a zip archive in the place of the archive, which is unpacked in the cache."""
    (piece, *_) = source.pieces
    if not is_archive(piece.file.name) or not piece.file.is_file():
        return source
    folder = unpack(piece.file, cache / "unpacked" / remembered_sha256(piece.file, cache / "indexes"))
    data = config.data if config.data.files else config.data.model_copy(update={"files": ("**/*",)})
    skipped = () if config.data.files else tuple(skipped_members(piece.file))
    return replace(_in_folder(config, data, folder), skipped=skipped)


def _local_source(config: BenchmarkConfig, root: Piece) -> Source:
    """Return the files at a path: a file, an archive, a folder, or a glob."""
    data = config.data
    if is_archive(root.file.name):
        return Source(config.name, data.licence, (replace(root, sha256=_checksum(data), size=data.size),))
    if config.is_built or not (data.join or is_glob(data.path) or any(map(is_glob, data.files))):
        if data.files:
            _check_names(config, data.files, root.file)
            pieces = tuple(
                replace(root, file=root.file / name, tried=_below(root, name), sha256=_checksum(data, name))
                for name in data.files
            )
            return Source(config.name, data.licence, pieces)
        if not root.file.is_dir():
            name = root.file.name
            _check_names(config, {name}, root.file.parent)
            sha256 = _checksum(data) or _checksum(data, name)
            return Source(config.name, data.licence, (replace(root, sha256=sha256, size=data.size),))
    if data.files and not root.file.exists():
        return Source(config.name, data.licence, (root,))
    if root.file.is_dir():
        if data.files:
            return _in_folder(config, data, root.file)
        source = _in_folder(config, data.model_copy(update={"files": ("*",)}), root.file)
        return replace(source, skipped=(*source.skipped, *_in_subfolders(source, root.file)))
    return _in_folder(config, data.model_copy(update={"files": (root.file.name,)}), root.file.parent)


def _in_folder(config: BenchmarkConfig, data: Data, folder: Path) -> Source:
    """Return the files of a folder that the names and globs of the config choose, and those that are joined."""
    pieces = list(_chosen(folder, data.files))
    for name, join in data.join.items():
        if join.file is None:
            pieces += _chosen(folder, join.files, name)
            continue
        for piece in [piece for piece in pieces if not piece.join]:
            pieces.append(Piece(joined_file(join.file, piece.file, folder), join=name))
    names = {piece.file: piece.file.relative_to(folder).as_posix() for piece in pieces}
    _check_names(config, set(names.values()), folder)
    pieces = [replace(piece, sha256=_checksum(data, names[piece.file])) for piece in pieces]
    return Source(config.name, data.licence, tuple(pieces), folder, skipped=tuple(_skipped(folder, data.files)))


def _checksum(data: Data, name: str | None = None) -> str | None:
    """Return the checksum that the config has for a file of this name; without a name, for the only file."""
    if isinstance(data.sha256, str) or data.sha256 is None:
        return data.sha256 if name is None else None
    return data.sha256.get(name) if name is not None else None


def _check_names(config: BenchmarkConfig, names: Collection[str], folder: Path) -> None:
    """Raise BadInput if the config has a checksum for a file that is not read."""
    sums = config.data.sha256
    if isinstance(sums, str) or sums is None or not folder.is_dir():
        return
    for name in sums:
        if name not in names:
            where = f'benchmark "{config.name}": data.sha256'
            raise unknown_name(where, f"no file {preview(name)} is read", name, names)


def joined_file(names: str, item_file: Path, folder: Path) -> Path:
    """Return the file that is joined to the items of a file: the first that exists, which must be in the folder."""
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
        problem = "no number in the name of the file, which data.join uses"
        raise BadInput(str(file), problem, expected="a name such as notes_12.json", remedy="correct data.join")
    return str(numbers[-1])


def _chosen(folder: Path, names: Sequence[str], join: str = "") -> Iterator[Piece]:
    excluded = _excluded(folder, names)
    for name in names:
        if name.startswith("!"):
            continue
        found = [folder / name]
        if is_glob(name):
            matches = [file for file in folder.glob(name) if _is_data(file, folder, name) and file not in excluded]
            found = sorted(matches, key=lambda file: _natural(file.relative_to(folder).as_posix())) or found
        for file in found:
            yield Piece(file, join=join)


def _skipped(folder: Path, names: Sequence[str]) -> Iterator[str]:
    """Yield the files that a glob matches and that are not data files, without those of an operating system."""
    excluded = _excluded(folder, names)
    globs = [name for name in names if is_glob(name) and not name.startswith("!")]
    matches = {file: name for name in globs for file in folder.glob(name) if file.is_file() and file not in excluded}
    for file, name in sorted(matches.items()):
        if not _is_data(file, folder, name) and not is_system_file(str(file.relative_to(folder))):
            yield file.relative_to(folder).as_posix()


def _in_subfolders(source: Source, folder: Path) -> Iterator[str]:
    """Yield the data files in subfolders, which a config without `files` does not read."""
    read = {piece.file for piece in source.pieces}
    files = islice(folder.glob("*/**/*"), _MOST_FILES)  # the folder may be a whole disk
    for file in sorted(file for file in files if _is_data(file, folder, "") and file not in read):
        yield file.relative_to(folder).as_posix()


def _excluded(folder: Path, names: Sequence[str]) -> set[Path]:
    return {file for name in names if name.startswith("!") for file in folder.glob(name.removeprefix("!"))}


def _is_data(file: Path, folder: Path, glob: str) -> bool:
    """Return whether a file that the glob matches is read: hidden ones are if the glob names them."""
    hidden = is_hidden(str(file.relative_to(folder))) and not is_hidden(glob)
    return file.is_file() and is_readable(file.name) and not hidden


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key by which `chat-2` is before `chat-10`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def verify_files(source: Source, checksums: Path | None = None) -> str:
    """Return a checksum over all files; raise BadInput if one is missing or has another checksum than expected.

    With `checksums`, the folder of remembered ones, a large file is read only if it has changed.
    """
    sums = []
    for piece in source.pieces:
        if not piece.file.is_file():
            raise missing(source)
        actual = sha256_of(piece.file) if checksums is None else remembered_sha256(piece.file, checksums)
        pulled = piece.read_record()
        expected = piece.sha256 or (pulled.sha256 if pulled else None)
        if expected is not None and actual != expected:
            raise _differs(source, piece, actual, expected)
        # the name of a file may be the id of its items, or decide what is joined to them
        sums.append(actual if source.folder is None else f"{piece.file.relative_to(source.folder)}\n{actual}\n")
    return sums[0] if len(sums) == 1 and source.folder is None else hashlib.sha256("".join(sums).encode()).hexdigest()


def state(source: Source) -> State:
    """Return whether the files are present and unchanged. Reads every byte."""
    if not source.present:
        return "missing"
    try:
        verify_files(source)
    except BadInput:
        return "changed"
    return "present"


def missing(source: Source) -> BadInput:
    where = f'benchmark "{source.benchmark}"'
    piece = next((piece for piece in source.pieces if not piece.file.is_file()), source.pieces[0])
    if piece.file.is_dir():
        problem, remedy = f"the data of {source.benchmark} is a folder", f"write {piece.file.name}/*"
        return BadInput(str(piece.file), problem, expected="a file, or a glob", remedy=remedy)
    if piece.url is None:
        is_listed = source.folder is not None and not piece.join
        kind = "files that match" if is_glob(piece.file.name) or is_listed else "a file at"
        expected = f"{kind} {' or '.join(map(str, piece.tried or (piece.file,)))}"
        problem = f"data of {source.benchmark} not found"
        published = source.published_at
        key = f"data.join.{piece.join}" if piece.join else "data.path"
        remedy = f"get it from {published} and put it there" if published else f"correct {key}, or put the file there"
        return BadInput(str(piece.file), problem, expected=expected, remedy=remedy)
    return BadInput(
        where,
        "data not found on this machine",
        remedy=f"memorybench data pull {source.benchmark}; or download {piece.url} and put it at {piece.file}",
    )


async def pull(
    source: Source, redactor: Redactor, progress: Callable[[Piece], Progress] | None = None, cap: int = LARGEST
) -> None:
    """Download missing files.

    A file appears only when it is complete and verified. Existing files are not replaced.
    """
    from memorybench.http.client import open_http
    from memorybench.http.downloads import download

    async with open_http(redactor) as http:
        for piece in source.pieces:
            if piece.url is None:
                raise BadInput(str(piece.file), "is a local file; there is nothing to pull")
            if piece.file.exists():
                _adopt(source, piece)
                continue
            report = progress(piece) if progress is not None else None
            with _lock_draft(piece) as draft:
                try:
                    await download(http, piece.url, draft, cap=piece.size or cap, progress=report)
                except Transient as lost:
                    raise ServiceError(
                        f"{lost}; run it again, or download {piece.url} elsewhere and put it at {piece.file}",
                        status=lost.status,
                    ) from None
                await asyncio.to_thread(_place, source, piece, draft)


def _place(source: Source, piece: Piece, draft: Path) -> None:
    """Verify a complete draft and rename it to the file."""
    actual = sha256_of(draft)
    if piece.sha256 not in (None, actual):
        draft.unlink()
        raise _differs(source, piece, actual, piece.sha256 or "")
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    _record(piece, actual, draft.stat().st_size)
    draft.replace(piece.file)


def _adopt(source: Source, piece: Piece) -> None:
    """Verify and record a file that was copied there by the user."""
    verify_files(Source(source.benchmark, source.licence, (piece,)))
    if piece.read_record() is None:
        _record(piece, sha256_of(piece.file), piece.file.stat().st_size)


def _record(piece: Piece, sha256: str, size: int) -> None:
    pulled = Pulled(url=piece.url or "", sha256=sha256, size=size)
    draft = piece.record.with_name(f"{piece.record.name}.part")
    draft.write_text(json.dumps(pulled.plain(), indent=2) + "\n", encoding="utf-8")
    draft.replace(piece.record)


@contextmanager
def _lock_draft(piece: Piece) -> Iterator[Path]:
    """Lock the `.part` file of a download. Raise RunConflict if another process has the lock.

    The file of an interrupted download stays; the next download resumes from it.
    """
    try:
        piece.file.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(piece.file.with_name(f".{piece.file.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise BadInput(str(piece.file.parent), f"cannot write: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield piece.file.with_name(f".{piece.file.name}.part")
    except BlockingIOError:
        raise RunConflict(f"{piece.file}: another process is downloading it; wait until it has finished") from None
    finally:
        os.close(lock)


def _differs(source: Source, piece: Piece, actual: str, expected: str) -> MemorybenchError:
    if piece.url is not None:
        remedy = f"remove it, then memorybench data pull {source.benchmark}"
    else:
        remedy = "use the original file, or write a separate config for this file"
    return BadInput(str(piece.file), f"the checksum differs: sha256 {actual}", expected=expected, remedy=remedy)


def _find_local(data: Data, beside: Path | None) -> Piece:
    """Look in the config's folder, in its parent if the folder is called `configs`, then in the working folder.

    Of a bundled config only in the working folder: its own folder is part of the installed package.
    """
    folders = [] if beside is None else [beside, *([beside.parent] if beside.name == "configs" else [])]
    if beside is not None and beside.resolve().is_relative_to(_CATALOG):
        folders = []
    tried = tuple(dict.fromkeys(folder / data.path for folder in (*folders, Path())))
    names = [] if is_archive(data.path) else data.files
    found = [*(one for one in tried if _exists(one, names)), *(one for one in tried if one.is_dir())]
    return Piece(found[0] if found else tried[0], tried=tried)


def _exists(path: Path, names: Sequence[str]) -> bool:
    if names:
        return any((path / name).exists() or (is_glob(name) and any(path.glob(name))) for name in names)
    return path.exists() or (is_glob(path.name) and any(path.parent.glob(path.name)))


def _below(root: Piece, name: str) -> tuple[Path, ...]:
    return tuple(folder / name for folder in root.tried)


def _download_path(data: Data, beside: Path | None) -> Path | None:
    """Return `data.localPath`, which must be inside the config's folder."""
    if data.local_path is None or beside is None:
        return None
    return inside(beside, data.local_path, "data.localPath")


def _on_hub(config: BenchmarkConfig, beside: Path | None, cache: Path, hub: str) -> Iterator[Piece]:
    data = config.data
    owner, name, *rest = data.path.split("/")
    local_path = _download_path(data, beside)
    archive = "/".join(rest) if is_archive(data.path) else ""
    files = (archive,) if archive else data.files or (("/".join(rest) or (local_path.name if local_path else "")),)
    joined = [] if archive else [(file, join) for join, one in data.join.items() for file in one.files]
    for file, join in [*((file, "") for file in files), *joined]:
        if not file:
            raise BadInput(
                f'benchmark "{config.name}": data.path', "no file name", expected="owner/name/file, or data.localPath"
            )
        url = f"{hub}/datasets/{owner}/{name}/resolve/main/{quote(file)}"
        single = bool(archive) or not (data.files or joined)
        where = local_path if local_path is not None and single else cache / owner / name / file
        yield Piece(where, url, _checksum(data, None if single else file), data.size if single else None, join=join)


def _cached_name(url: str) -> Path:
    """Return a path such as `raw.example.org/some/file.json`; a query string is replaced by its digest."""
    parts = urlsplit(url)
    steps = [step for step in parts.path.split("/") if step not in ("", ".", "..")]
    folder = Path((parts.hostname or "") + (f"-{parts.port}" if parts.port else ""))
    if parts.query:
        folder /= hashlib.sha256(parts.query.encode()).hexdigest()[:12]
    return folder.joinpath(*steps)
