"""Reads the rows of files that tracing services export, one by one: JSON, JSONL, CSV and Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.files.json_stream import NotStreamable, open_window
from memorybench.files.json_text import load_json
from memorybench.files.parquet import stream_parquet
from memorybench.files.rows import numbered_jsonl, stream_csv
from memorybench.text.sanitize import preview

SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".parquet")
_LISTS = ("data", "observations", "spans", "runs")
"""Keys that contain the list of rows in replies of the services."""


def export_files(path: Path) -> list[Path]:
    """Return the file itself, or all files below a folder with a known suffix, without hidden and empty ones."""
    if not path.is_dir():
        return [path]
    found = [
        file
        for file in sorted(path.rglob("*"))
        if _suffix(file) in SUFFIXES
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
        and file.is_file()
        and file.stat().st_size
    ]
    if not found:
        raise BadInput(
            str(path), "the folder contains no exported files", expected=f"files named *{', *'.join(SUFFIXES)}"
        )
    return found


def exported_rows(path: Path) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """Yield each row of a file, or of all files below a folder, after its place for errors and its number."""
    for file in export_files(path):
        for number, row in _rows(file):
            where = f"{file}:{number}"
            if not isinstance(row, dict):
                raise BadInput(where, f"invalid row {preview(row)}", expected="an object")
            nested = next((row[key] for key in _LISTS if isinstance(row.get(key), list)), None)
            for one in [row] if nested is None else nested:
                if not isinstance(one, dict):
                    raise BadInput(where, f"invalid row {preview(one)}", expected="an object")
                yield where, number, one


def _rows(file: Path) -> Iterator[tuple[int, Any]]:
    match _suffix(file):
        case ".csv":
            for document in stream_csv(file):
                yield document.line() or 0, document.value
        case ".parquet":
            for document in stream_parquet(file):
                yield document.line() or 0, document.value
        case ".json":
            yield from _json(file)
        case _:
            yield from numbered_jsonl(file)


def _json(file: Path) -> Iterator[tuple[int, Any]]:
    """Yield the line number and value of each row: each item of a JSON array or, in another file, each line.

    A file with one JSON value on several lines is one row.
    """
    count = 0
    try:
        with open_window(file) as window:
            if window.peek() != "[":
                raise NotStreamable
            for _ in window.items():
                window.peek()
                line = window.line
                yield line, window.value()[0]
                count += 1
            if window.peek():
                raise NotStreamable
    except NotStreamable:
        if count:
            # reading the whole file either succeeds or reports the error with its place
            yield from islice(enumerate(load_json(file).value, 1), count, None)
            return
    else:
        return
    try:
        lines = numbered_jsonl(file)
        first = next(lines)
    except (BadInput, StopIteration):  # an object over several lines
        value = load_json(file).value
        yield from enumerate(value if isinstance(value, list) else [value], 1)
        return
    yield first
    yield from lines


def _suffix(file: Path) -> str:
    return Path(file.name.lower().removesuffix(".gz")).suffix
