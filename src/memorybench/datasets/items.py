"""Streams the items of a dataset file, and reads single items again on demand.

A file may be larger than memory: of a JSON array, one item at a time is in memory, and it is read again from its place
in the file. Rows and items of gzipped files stay in memory, compressed.
"""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple, cast

from memorybench.core.errors import BadInput
from memorybench.files.json_places import JsonLines
from memorybench.files.json_text import decode, load_json
from memorybench.files.jsonpaths import Path as JsonPath
from memorybench.files.located import Document, Place
from memorybench.files.reading import LARGEST
from memorybench.files.rows import stream_csv, stream_jsonl

_CHUNK = 4 * 2**20
_BLANKS = re.compile(r"[ \t\n\r]*")
_FAST_COMPRESSION = 1


class Item(NamedTuple):
    document: Document
    again: Callable[[], Document]
    """Reads the item once more."""


def read_items(path: Path, format: str | None = None, within: str | None = None) -> Iterator[Item]:
    """Yield the items. `within` is the path to the array of items, if it is not the whole file."""
    match format or _format_of(path):
        case "jsonl":
            return (_row_item(row) for row in stream_jsonl(path))
        case "csv":
            return (_row_item(_parse_cells(row)) for row in stream_csv(path))
    return _members(path, within) if within is not None else _array(path)


def _format_of(path: Path) -> str:
    name = Path(path.name.lower().removesuffix(".gz"))
    format = {".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv"}.get(name.suffix)
    if format is None:
        raise BadInput(
            str(path),
            "unknown file type",
            expected="a name ending in .json, .jsonl or .csv, or these with .gz",
            remedy="rename it, or set data.format",
        )
    return format


class _NotStreamable(Exception):
    """The file is not a JSON array of objects."""


def _array(path: Path) -> Iterator[Item]:
    count = 0
    try:
        for span in _spans(path):
            yield _array_item(path, count, span)
            count += 1
    except (_NotStreamable, BadInput, OSError, EOFError, zlib.error, UnicodeDecodeError):
        # reading the whole file either succeeds or reports the error with its place
        yield from islice(_members(path, None), count, None)


def _members(path: Path, within: str | None) -> Iterator[Item]:
    """Yield the items of a file that is read into memory."""
    document = load_json(path)
    if within is not None:
        routes = JsonPath.parse(within, "data.items").routes
        steps = next((route.steps for route in routes if route.all(document.value)), None)
        if steps is None:
            raise BadInput(document.where(), f"nothing at {within}", remedy="correct data.items")
        document = document.at(*steps)
    if not isinstance(document.value, list):
        raise BadInput(
            document.where(),
            "not a list of items",
            expected="a JSON array",
            remedy="set data.items to the path of the array",
        )
    for index in range(len(document.value)):
        yield Item(document.at(index), partial(document.at, index))


class _Span(NamedTuple):
    """The text of one item and its place in the file."""

    text: str
    byte: int
    line: int


def _spans(path: Path) -> Iterator[_Span]:
    gzipped = path.suffix.lower() == ".gz"
    with cast("IO[bytes]", gzip.open(path) if gzipped else path.open("rb")) as file:
        window = _Window(file, LARGEST if gzipped else None)
        if window.peek() != "[":
            raise _NotStreamable
        window.skip(1)
        first = True
        while (mark := window.peek()) != "]":
            if not first:
                if mark != ",":
                    raise _NotStreamable
                window.skip(1)
                mark = window.peek()
            if mark != "{":
                raise _NotStreamable
            yield window.value()
            first = False
        window.skip(1)
        if window.peek():
            raise _NotStreamable


class _Window:
    """The part of a JSON file that is in memory."""

    def __init__(self, file: IO[bytes], largest: int | None) -> None:
        self._file = file
        self._largest = largest
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._scan = json.JSONDecoder().raw_decode
        self._text = ""
        self._at = 0
        self._byte = 0
        self._line = 1
        self._ended = False

    def peek(self) -> str:
        """Skip whitespace and return the next character; "" at the end."""
        while True:
            blanks = _BLANKS.match(self._text, self._at)
            self.skip(blanks.end() - self._at if blanks else 0)
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._read_on()

    def skip(self, characters: int) -> str:
        skipped = self._text[self._at : self._at + characters]
        self._at += characters
        self._byte += len(skipped.encode())
        self._line += skipped.count("\n")
        return skipped

    def value(self) -> _Span:
        """Skip and return the JSON value that begins here."""
        while True:
            try:
                _, end = self._scan(self._text, self._at)
            except (ValueError, RecursionError):
                if self._ended:
                    raise _NotStreamable from None
                self._read_on()  # invalid JSON reaches the end of the file
            else:
                byte, line = self._byte, self._line
                return _Span(self.skip(end - self._at), byte, line)

    def _read_on(self) -> None:
        # at least doubled, so that a long item is parsed only a few times
        chunk = self._file.read(max(_CHUNK, len(self._text) - self._at))
        self._ended = not chunk
        self._text = self._text[self._at :] + self._decoder.decode(chunk, final=self._ended)
        self._at = 0
        if self._largest is not None and self._byte + len(self._text) > self._largest:
            raise _NotStreamable


@dataclass(frozen=True, slots=True)
class _ArrayPlace:
    """The place of an item in an array."""

    path: str
    index: int
    line: int

    def document(self, text: str) -> Document:
        lines = JsonLines(lambda: text)

        def line_of(place: Place) -> int | None:
            line = lines(place[1:]) if place[:1] == (self.index,) else None
            return None if line is None else line + self.line - 1

        return Document(self.path, decode(text, self.path, self.line), line_of, (self.index,))


def _array_item(path: Path, index: int, span: _Span) -> Item:
    place = _ArrayPlace(str(path), index, span.line)
    if path.suffix.lower() == ".gz":
        text = _compress(span.text)
    else:
        text = partial(_reread, path, span.byte, len(span.text.encode()))
    return Item(place.document(span.text), lambda: place.document(text()))


def _reread(path: Path, byte: int, length: int) -> str:
    try:
        with path.open("rb") as file:
            file.seek(byte)
            return file.read(length).decode()
    except (OSError, UnicodeDecodeError):
        raise BadInput(str(path), "changed or removed during the run", remedy="run it again") from None


def _row_item(row: Document) -> Item:
    path, line, text = row.path, row.line(), _compress(json.dumps(row.value))
    return Item(row, lambda: Document(path, json.loads(text()), lambda _: line))


def _compress(text: str) -> Callable[[], str]:
    data = zlib.compress(text.encode(), _FAST_COMPRESSION)
    return lambda: zlib.decompress(data).decode()


def _parse_cells(row: Document) -> Document:
    return Document(row.path, {name: _cell(text) for name, text in row.value.items()}, row.line_of)


def _cell(text: str) -> object:
    """Return the JSON array or object in the cell, else the unchanged text."""
    if text.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text
