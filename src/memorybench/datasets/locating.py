"""Finds the data files of a benchmark: a path, a URL, a dataset on Hugging Face, an archive. Downloads nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, urlsplit

from memorybench.core.errors import BadInput
from memorybench.files.names import inside

from .archives import skipped_members, unpack
from .checksums import remembered_sha256
from .config import HUB, BenchmarkConfig, Data
from .file_names import is_archive, is_glob
from .folders import files_in_subfolders, folder_source
from .sources import Piece, Source, check_checksum_names, checksum_of

_CATALOG = Path(__file__).resolve().parent.parent / "catalog"


def source_of(config: BenchmarkConfig, *, beside: Path | None, cache: Path, hub: str = HUB) -> Source:
    """Return the files of a benchmark. Nothing is downloaded: the files may be missing.

    `beside` is the folder of the config file, to which paths are relative; `hub` is the address of Hugging Face.
    """
    data = config.data
    pieces: Sequence[Piece]
    match data.type:
        case "local":
            return replace(_local_source(config, _find_local(data, beside)), published_at=config.source)
        case "url":
            file = _download_path(data, beside) or cache / _cached_name(data.path)
            pieces = [Piece(file, data.path, checksum_of(data), data.size)]
        case "huggingface":
            pieces = list(_on_hub(config, beside, cache, hub))
        case _:
            raise BadInput(
                f'benchmark "{config.name}"',
                f"has no data files to download or check, because data.type is {data.type}",
            )
    joined = data.type == "huggingface" and data.join and not is_archive(data.path)
    return Source(
        config.name, data.licence, tuple(pieces), cache.joinpath(*data.path.split("/")[:2]) if joined else None
    )


def local_source(config: BenchmarkConfig, file: Path) -> Source:
    """Return the data of a benchmark in the file or folder that --data-file names; raise BadInput if there is none."""
    if not _exists(file, ()):
        raise BadInput(str(file), f"data of {config.name} not found", remedy="correct --data-file")
    return _local_source(config, Piece(file))


def unpacked_source(config: BenchmarkConfig, source: Source, cache: Path) -> Source:
    """Return the files of a zip archive, unpacked into the cache, as the source; return another source as it is."""
    (piece, *_) = source.pieces
    if not is_archive(piece.file.name) or not piece.file.is_file():
        return source
    folder = unpack(piece.file, cache / "unpacked" / remembered_sha256(piece.file, cache / "indexes"))
    data = config.data if config.data.files else config.data.model_copy(update={"files": ("**/*",)})
    skipped = () if config.data.files else tuple(skipped_members(piece.file))
    return replace(folder_source(config, data, folder), skipped=skipped)


def _local_source(config: BenchmarkConfig, root: Piece) -> Source:
    """Return the files at a path: a file, an archive, a folder, or a glob."""
    data = config.data
    if is_archive(root.file.name):
        return Source(config.name, data.licence, (replace(root, sha256=checksum_of(data), size=data.size),))
    if config.is_built or not (data.join or is_glob(data.path) or any(map(is_glob, data.files))):
        if data.files:
            check_checksum_names(config, data.files, root.file)
            pieces = tuple(
                replace(
                    root,
                    file=root.file / name,
                    tried=tuple(one / name for one in root.tried),
                    sha256=checksum_of(data, name),
                )
                for name in dict.fromkeys(data.files)
            )
            return Source(config.name, data.licence, pieces)
        if not root.file.is_dir():
            name = root.file.name
            check_checksum_names(config, {name}, root.file.parent)
            sha256 = checksum_of(data) or checksum_of(data, name)
            return Source(config.name, data.licence, (replace(root, sha256=sha256, size=data.size),))
    if data.files and not root.file.exists():
        return Source(config.name, data.licence, (root,))
    if root.file.is_dir():
        if data.files:
            return folder_source(config, data, root.file)
        source = folder_source(config, data.model_copy(update={"files": ("*",)}), root.file)
        return replace(source, skipped=(*source.skipped, *files_in_subfolders(source, root.file)))
    return folder_source(config, data.model_copy(update={"files": (root.file.name,)}), root.file.parent)


def _find_local(data: Data, beside: Path | None) -> Piece:
    """Return the local file or folder of `data.path`, with all paths that were tried.

    It may be in the config's folder, in the parent of that folder if it is called `configs`, or in the working folder.
    For a bundled config, only the working folder counts: the config's folder is part of the installed package.
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


def _download_path(data: Data, beside: Path | None) -> Path | None:
    """Return the path of `data.localPath`; None if it is not set, or the config has no folder.

    Raise BadInput if it is outside the folder of the config.
    """
    if data.local_path is None or beside is None:
        return None
    return inside(beside, data.local_path, "data.localPath")


def _on_hub(config: BenchmarkConfig, beside: Path | None, cache: Path, hub: str) -> Iterator[Piece]:
    data = config.data
    owner, name, *rest = data.path.split("/")
    local_path = _download_path(data, beside)
    archive = "/".join(rest) if is_archive(data.path) else ""
    files = (
        (archive,)
        if archive
        else tuple(dict.fromkeys(data.files)) or (("/".join(rest) or (local_path.name if local_path else "")),)
    )
    joined = [] if archive else [(file, join) for join, one in data.join.items() for file in one.files]
    for file, join in [*((file, "") for file in files), *joined]:
        if not file:
            raise BadInput(
                f'benchmark "{config.name}": data.path',
                "the file name is missing",
                expected="owner/name/file, or a file name in data.localPath",
            )
        url = f"{hub}/datasets/{owner}/{name}/resolve/main/{quote(file)}"
        single = bool(archive) or not (data.files or joined)
        where = local_path if local_path is not None and single else cache / owner / name / file
        yield Piece(where, url, checksum_of(data, None if single else file), data.size if single else None, join=join)


def _cached_name(url: str) -> Path:
    """Return the path of a download in the cache, such as `raw.example.org/some/file.json`, for its URL.

    A query string is replaced by its digest.
    """
    parts = urlsplit(url)
    steps = [step for step in parts.path.split("/") if step not in ("", ".", "..")]
    folder = Path((parts.hostname or "") + (f"-{parts.port}" if parts.port else ""))
    if parts.query:
        folder /= hashlib.sha256(parts.query.encode()).hexdigest()[:12]
    return folder.joinpath(*steps)
