"""Checks the section `data` of a benchmark config: where the files are, and what is joined to them."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from memorybench.core.errors import BadInput
from memorybench.files.entry_points import built_in_points
from memorybench.files.located import Document
from memorybench.files.names import safe_name
from memorybench.text.sanitize import preview
from memorybench.text.spelling import unknown_name

from .config import BenchmarkConfig, Data, Join
from .file_names import is_archive, is_glob

GROUP = "memorybench.benchmarks"
"""Entry point group of datasets that need no config: classes that are called without arguments."""


def check_data(config: BenchmarkConfig, part: Document) -> None:
    """Raise BadInput at the first error of the section `data`."""
    data, where = config.data, part.where("path")
    if config.needles is not None and config.cues is not None:
        raise BadInput(part.where(), "needles and cues cannot be combined", remedy="remove one of the two")
    if config.cues is not None and len(data.files) != 2:
        raise BadInput(
            part.where("files"),
            f"files names {len(data.files)} files",
            expected="two files: dialogues and conversations",
        )
    if config.needles is not None and len(data.files) < 2:
        raise BadInput(
            part.where("files"),
            f"files names {len(data.files)} files",
            expected="at least two files: needles and a book",
        )
    _check_files(config, part)
    match data.type:
        case "huggingface":
            if not re.fullmatch(r"[\w.-]+/[\w.-]+(/[\w./-]+)?", data.path) or ".." in data.path:
                raise BadInput(where, f"invalid dataset {preview(data.path)}", expected="owner/name or owner/name/file")
        case "url":
            scheme = urlsplit(data.path).scheme
            if scheme not in ("http", "https") and "${" not in data.path:
                raise BadInput(where, f"invalid URL {preview(data.path)}", expected="a URL with https:// or http://")
        case "local":
            if "://" in data.path:
                raise BadInput(where, f"{preview(data.path)} is a URL", expected="a path", remedy="set type: url")
        case "bundled":
            names = built_in_points(GROUP)
            if data.path not in names:
                raise unknown_name(where, f"unknown bundled dataset {preview(data.path)}", data.path, names)
        case "plugin":
            safe_name(data.path, where)


def _check_files(config: BenchmarkConfig, part: Document) -> None:
    data, packed = config.data, is_archive(config.data.path)
    if data.files and data.type not in ("local", "huggingface") and not packed:
        raise BadInput(
            part.where("files"),
            f"files has no effect with type: {data.type}",
            expected="type: local or huggingface, or a zip archive as path",
            remedy="remove files",
        )
    if packed and config.is_built:
        raise BadInput(
            part.where("path"), "data with needles or cues cannot be in a zip archive", remedy="unpack the archive"
        )
    several = len(data.files) > 1 or bool(data.join) or any(map(is_glob, (data.path, *data.files)))
    _check_checksums(data, part, several=several and not packed)
    for place, names in ((("files",), data.files), *((("join", n, "files"), j.files) for n, j in data.join.items())):
        if any(".." in name or name.startswith("/") for name in names):
            raise BadInput(
                part.where(*place), "the path of a file leads outside the dataset", expected="relative paths without .."
            )
        if data.type == "huggingface" and not packed and any(map(is_glob, names)):
            raise BadInput(
                part.where(*place),
                "patterns with * are not supported for data on Hugging Face",
                expected="names of files",
            )
    if data.where is not None:
        if config.mapping is None:
            raise BadInput(part.where("where"), "data.where has no effect without schema", remedy="remove it")
        from memorybench.files.jsonpaths import Path as JsonPath  # takes long to import, and few configs need it

        JsonPath.parse(f"$[?{data.where}]", part.where("where"))
    for name, join in data.join.items():
        _check_join(config, name, join, part)


def _check_checksums(data: Data, part: Document, *, several: bool) -> None:
    """Raise BadInput if `sha256` is one checksum for several files, several for one file, or names an unknown file."""
    sums, where = data.sha256, part.where("sha256")
    if several and isinstance(sums, str):
        raise BadInput(
            where,
            "there is one checksum, but the data has several files",
            remedy="write one checksum per file: NAME: CHECKSUM",
        )
    if sums is None or isinstance(sums, str):
        return
    if not several and (data.type != "local" or is_archive(data.path)):
        raise BadInput(
            where, "there are several checksums, but the data has one file", expected="the checksum of that file"
        )
    names = {*data.files, *(name for join in data.join.values() for name in join.files)}
    for name in sums:
        if data.type == "huggingface" and name not in names:
            raise unknown_name(
                where, f"there is a checksum of {preview(name)}, but the data has no such file", name, names
            )


def _check_join(config: BenchmarkConfig, name: str, join: Join, part: Document) -> None:
    from .paths import parse_path

    where, packed = part.where("join", name), is_archive(config.data.path)
    if config.mapping is None:
        raise BadInput(where, "data.join has no effect without schema", remedy="remove it")
    if not re.fullmatch(r"[A-Za-z_][\w-]*", name):
        raise BadInput(where, f"invalid name {preview(name)}", expected="letters, digits, _ and -")
    if (join.file is None) == (not join.files):
        raise BadInput(
            where, "expected exactly one of file and files", remedy="write either file, or files with key and by"
        )
    if join.file is None and join.format == "text":
        raise BadInput(
            part.where("join", name, "format"),
            "format: text has no effect with files",
            remedy="remove it, or write file instead of files",
        )
    if join.file is None and not (join.key and join.by):
        missing = "by" if join.key else "key"
        raise BadInput(
            where, f'"{missing}" is missing', expected="key, a path within a row, and by, a path within an item"
        )
    if join.file is not None:
        for key in ("key", "by", "items"):
            if getattr(join, key):
                raise BadInput(
                    part.where("join", name, key), f"{key} has no effect with file", remedy="remove it, or write files"
                )
        if config.data.type != "local" and not packed:
            raise BadInput(where, f"file is not supported with type: {config.data.type}", expected="files, key and by")
        for variable in re.findall(r"\$\{(\w*)\}", join.file):
            if variable not in ("stem", "folder", "number"):
                file = part.where("join", name, "file")
                raise BadInput(file, f"unknown variable ${{{variable}}}", expected="${stem}, ${folder} or ${number}")
    elif config.data.type == "url" and not packed:
        raise BadInput(
            where, "join is not supported with type: url", expected="type: local or huggingface, or a zip archive"
        )
    for key in ("key", "by"):
        text = getattr(join, key)
        if text:
            parse_path(text, part.where("join", name, key))
    if join.items is not None:
        parse_path(join.items, part.where("join", name, "items"))
