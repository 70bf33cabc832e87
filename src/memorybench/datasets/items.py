"""Streams the items of a dataset file, and reads single items again on demand.

A file may be larger than memory: one item at a time is in memory, and it is read again from its place in the file.
Items of gzipped files and of CSV files stay in memory, compressed.
"""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from memorybench.core.errors import BadInput
from memorybench.files.json_places import JsonLines
from memorybench.files.json_text import decode, decode_at, load_json
from memorybench.files.jsonpaths import Path as JsonPath
from memorybench.files.located import Document, Place
from memorybench.files.reading import read_lines, unpacked_cap
from memorybench.files.rows import decode_line, stream_csv

_CHUNK = 4 * 2**20
_BLANKS = re.compile(r"[ \t\n\r]*")
_FAST_COMPRESSION = 1
_UTF8_MARK = b"\xef\xbb\xbf"


class Span(NamedTuple):
    """The place of an item in an uncompressed file."""

    byte: int
    length: int
    """In bytes."""
    line: int
    position: int | None
    """In the JSON array; None in a JSONL file."""


class Item(NamedTuple):
    document: Document
    again: Callable[[], Document]
    """Reads the item once more."""
    span: Span | None = None
    """None: it can only be read together with the whole file."""


def read_items(path: Path, format: str | None = None, within: str | None = None) -> Iterator[Item]:
    """Yield the items. `within` is the path to the array of items, if it is not the whole file."""
    match format or _format_of(path):
        case "jsonl":
            return _jsonl(path)
        case "csv":
            return (_csv_item(row) for row in stream_csv(path))
    return _members(path, within) if within is not None else _array(path)


def read_span(path: Path, span: Span) -> Document:
    """Read one item of an uncompressed file."""
    text = partial(_read_text, path, span)
    return _document(str(path), span, text, decode(text(), str(path), span.line))


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


def _jsonl(path: Path) -> Iterator[Item]:
    is_plain = path.suffix.lower() != ".gz"
    byte = 0
    for number, line in read_lines(path):
        length = len(line.encode())
        if number == 1 and is_plain:
            with path.open("rb") as file:
                byte = len(_UTF8_MARK) if file.read(len(_UTF8_MARK)) == _UTF8_MARK else 0
        if line and not line.isspace():
            span = Span(byte, length, number, None)
            yield _item(path, span, line, decode_line(line, str(path), number), is_plain)
        byte += length


def _array(path: Path) -> Iterator[Item]:
    count = 0
    try:
        for item in _stream_array(path):
            yield item
            count += 1
    except (_NotStreamable, BadInput, OSError, EOFError, zlib.error, UnicodeDecodeError):
        # reading the whole file either succeeds or reports the error with its place
        yield from islice(_members(path, None), count, None)


def _stream_array(path: Path) -> Iterator[Item]:
    is_plain = path.suffix.lower() != ".gz"
    with cast("IO[bytes]", path.open("rb") if is_plain else gzip.open(path)) as file:
        window = _Window(file, unpacked_cap(path))
        if window.peek() != "[":
            raise _NotStreamable
        window.skip(1)
        index = 0
        while (mark := window.peek()) != "]":
            if index:
                if mark != ",":
                    raise _NotStreamable
                window.skip(1)
                mark = window.peek()
            if mark != "{":
                raise _NotStreamable
            byte, line = window.byte, window.line
            value, text = window.value(with_text=not is_plain)
            yield _item(path, Span(byte, window.byte - byte, line, index), text, value, is_plain)
            index += 1
        window.skip(1)
        if window.peek():
            raise _NotStreamable


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


class _Window:
    """The part of a JSON file that is in memory."""

    def __init__(self, file: IO[bytes], largest: int) -> None:
        self._file = file
        self._largest = largest
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        self._longest = 0
        self._ended = False
        self.byte = 0
        self.line = 1

    def peek(self) -> str:
        """Skip whitespace and return the next character; "" at the end."""
        while True:
            blanks = _BLANKS.match(self._text, self._at)
            self.skip(blanks.end() - self._at if blanks else 0)
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._read_on()

    def skip(self, characters: int) -> None:
        start, self._at = self._at, self._at + characters
        if self._text.find("\n", start, self._at) >= 0:  # many large files are a single line: counting takes longer
            self.line += self._text.count("\n", start, self._at)
        self.byte += characters if self._text.isascii() else len(self._text[start : self._at].encode())

    def value(self, with_text: bool) -> tuple[Any, str]:
        """Skip and return the JSON value that begins here, and its text, which is "" if it is not wanted."""
        if len(self._text) - self._at < self._longest and not self._ended:
            self._read_on()  # an item that is cut off would be parsed in vain
        while True:
            try:
                value, end = decode_at(self._text, self._at)
            except (ValueError, RecursionError):
                if self._ended:
                    raise _NotStreamable from None
                self._read_on()  # invalid JSON reaches the end of the file
            else:
                text = self._text[self._at : end] if with_text else ""
                self._longest = max(self._longest, end - self._at)
                self.skip(end - self._at)
                return value, text

    def _read_on(self) -> None:
        # at least doubled, so that a long item is parsed only a few times
        chunk = self._file.read(max(_CHUNK, len(self._text) - self._at))
        self._ended = not chunk
        self._text = self._text[self._at :] + self._decoder.decode(chunk, final=self._ended)
        self._at = 0
        if self.byte + len(self._text) > self._largest:
            raise _NotStreamable


def _item(path: Path, span: Span, text: str, value: Any, is_plain: bool) -> Item:
    if is_plain:
        return Item(
            _document(str(path), span, partial(_read_text, path, span), value), partial(read_span, path, span), span
        )
    fetch, name = _compress(text), str(path)
    return Item(
        _document(name, span, fetch, value),
        lambda: _document(name, span, fetch, decode(fetch(), name, span.line)),
    )


def _document(path: str, span: Span, fetch: Callable[[], str], value: Any) -> Document:
    """Return the item; `fetch` returns its text, which is needed only to find the line of an error."""
    if span.position is None:
        return Document(path, value, lambda _: span.line)
    lines = JsonLines(fetch)

    def line_of(place: Place) -> int | None:
        line = lines(place[1:]) if place[:1] == (span.position,) else None
        return None if line is None else line + span.line - 1

    return Document(path, value, line_of, (span.position,))


def _read_text(path: Path, span: Span) -> str:
    try:
        with path.open("rb") as file:
            file.seek(span.byte)
            return file.read(span.length).decode()
    except (OSError, UnicodeDecodeError):
        raise BadInput(str(path), "changed or removed during the run", remedy="run it again") from None


def _csv_item(row: Document) -> Item:
    value = {name: _cell(text) for name, text in row.value.items()}
    path, line, fetch = row.path, row.line(), _compress(json.dumps(value))
    return Item(Document(path, value, row.line_of), lambda: Document(path, json.loads(fetch()), lambda _: line))


def _compress(text: str) -> Callable[[], str]:
    data = zlib.compress(text.encode(), _FAST_COMPRESSION)
    return lambda: zlib.decompress(data).decode()


def _cell(text: str) -> object:
    """Return the JSON array or object in the cell, else the unchanged text."""
    if text.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text
