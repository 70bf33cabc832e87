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

from .span_files import files_in

SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".parquet")
_LISTS = ("data", "observations", "spans", "runs")
"""Keys of the list of rows in a saved reply of a service's API."""


def exported_rows(path: Path) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """Yield (place, number, row) for each row of a file, or of all files below a folder.

    The place is for error messages: the file, and the number of the line or row.
    """
    for file in files_in(path, "**/*", SUFFIXES, "exported files"):
        for number, row in _rows(file):
            where = f"{file}:{number}"
            lists = [row[key] for key in _LISTS if isinstance(row.get(key), list)] if isinstance(row, dict) else []
            for one in lists[0] if lists else [row]:
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
    """Yield the line number and the value of each row of a `.json` file.

    The rows are the items of a JSON array, or the lines of a file with one JSON value per line. A file with another
    JSON value has this value as its only row.
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
            # load_json reads the whole file, and reports an error with its place
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
