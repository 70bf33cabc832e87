"""The items of a dataset file, one after the other, and each again when it is wanted.

A file may be larger than memory: of a JSON array only one item stands in memory at a time, and is read from its place
in the file when it is asked for again. Rows, and what is gzipped, are kept in memory, packed.
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
_QUICKLY = 1
"""zlib's level: an item is packed once and unpacked once or twice."""


class Item(NamedTuple):
    document: Document
    again: Callable[[], Document]


def read_items(path: Path, format: str | None = None, within: str | None = None) -> Iterator[Item]:
    """`within`: path to the array of items, where the file is not that array itself."""
    match format or _format_of(path):
        case "jsonl":
            return (_kept(row) for row in stream_jsonl(path))
        case "csv":
            return (_kept(_with_cells_read(row)) for row in stream_csv(path))
    return _members(path, within) if within is not None else _array(path)


def _format_of(path: Path) -> str:
    name = Path(path.name.lower().removesuffix(".gz"))
    found = {".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv"}.get(name.suffix)
    if found is None:
        raise BadInput(
            str(path),
            "is of a kind unknown here",
            expected="a name ending in .json, .jsonl or .csv, or these with .gz",
            remedy="rename it, or set data.format",
        )
    return found


class _Unusual(Exception):
    """The file is not an array of objects, or not JSON at all."""


def _array(path: Path) -> Iterator[Item]:
    found = 0
    try:
        for span in _spans(path):
            yield _located(path, found, span)
            found += 1
    except (_Unusual, BadInput, OSError, EOFError, zlib.error, UnicodeDecodeError):
        # who reads the file whole can tell what is wrong with it and where, or can read it after all
        for index, item in enumerate(_members(path, None)):
            if index >= found:  # what was given out before the trouble began is not given out again
                yield item


def _members(path: Path, within: str | None) -> Iterator[Item]:
    """The items of a file that is held whole."""
    document = load_json(path)
    if within is not None:
        document = _part(document, within)
    if not isinstance(document.value, list):
        raise BadInput(
            document.where(),
            "is no list of items",
            expected="a JSON array",
            remedy="name the path to it in data.items",
        )
    for index in range(len(document.value)):
        yield Item(document.at(index), partial(document.at, index))


def _part(document: Document, within: str) -> Document:
    for route in JsonPath.parse(within, "data.items").routes:
        if route.all(document.value):
            return document.at(*route.steps)
    raise BadInput(document.where(), f"there is nothing at {within}", remedy="correct data.items")


class _Span(NamedTuple):
    """The text of one item, and where it stands."""

    text: str
    byte: int
    line: int


def _spans(path: Path) -> Iterator[_Span]:
    packed = path.suffix.lower() == ".gz"
    with cast("IO[bytes]", gzip.open(path) if packed else path.open("rb")) as file:
        window = _Window(file, LARGEST if packed else None)
        if window.peek() != "[":
            raise _Unusual
        window.pass_over(1)
        first = True
        while (mark := window.peek()) != "]":
            if not first:
                if mark != ",":
                    raise _Unusual
                window.pass_over(1)
                mark = window.peek()
            if mark != "{":
                raise _Unusual
            yield window.value()
            first = False
        window.pass_over(1)
        if window.peek():
            raise _Unusual


class _Window:
    """The part of a JSON text that is looked at."""

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
        """The next character that is no blank; nothing at the end."""
        while True:
            blanks = _BLANKS.match(self._text, self._at)
            self.pass_over(blanks.end() - self._at if blanks else 0)
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._read_on()

    def pass_over(self, characters: int) -> str:
        passed = self._text[self._at : self._at + characters]
        self._at += characters
        self._byte += len(passed.encode())
        self._line += passed.count("\n")
        return passed

    def value(self) -> _Span:
        """The value that begins here."""
        while True:
            try:
                _, end = self._scan(self._text, self._at)
            except (ValueError, RecursionError):
                if self._ended:
                    raise _Unusual from None
                self._read_on()  # or it is no JSON: then the end of the file comes
            else:
                byte, line = self._byte, self._line
                return _Span(self.pass_over(end - self._at), byte, line)

    def _read_on(self) -> None:
        # at least doubled, so that a long item is looked at only a few times
        chunk = self._file.read(max(_CHUNK, len(self._text) - self._at))
        self._ended = not chunk
        self._text = self._text[self._at :] + self._decoder.decode(chunk, final=self._ended)
        self._at = 0
        if self._largest is not None and self._byte + len(self._text) > self._largest:
            raise _Unusual


@dataclass(frozen=True, slots=True)
class _Spot:
    """Which item of an array this is."""

    path: str
    index: int
    line: int

    def document(self, text: str) -> Document:
        lines = JsonLines(lambda: text)

        def line_of(place: Place) -> int | None:
            line = lines(place[1:]) if place[:1] == (self.index,) else None
            return None if line is None else line + self.line - 1

        return Document(self.path, decode(text, self.path, self.line), line_of, (self.index,))


def _located(path: Path, index: int, span: _Span) -> Item:
    spot = _Spot(str(path), index, span.line)
    if path.suffix.lower() == ".gz":
        text = _packed(span.text)
    else:
        text = partial(_reread, path, span.byte, len(span.text.encode()))
    return Item(spot.document(span.text), lambda: spot.document(text()))


def _reread(path: Path, byte: int, length: int) -> str:
    try:
        with path.open("rb") as file:
            file.seek(byte)
            return file.read(length).decode()
    except (OSError, UnicodeDecodeError):
        raise BadInput(str(path), "was changed or removed while it was in use", remedy="run it again") from None


def _kept(row: Document) -> Item:
    return Item(row, partial(_row, row.path, row.line(), _packed(json.dumps(row.value))))


def _row(path: str, line: int | None, text: Callable[[], str]) -> Document:
    return Document(path, json.loads(text()), lambda _: line)


def _packed(text: str) -> Callable[[], str]:
    packed = zlib.compress(text.encode(), _QUICKLY)
    return lambda: zlib.decompress(packed).decode()


def _with_cells_read(row: Document) -> Document:
    return Document(row.path, {name: _cell(text) for name, text in row.value.items()}, row.line_of)


def _cell(text: str) -> object:
    """An array or object where the cell holds one; else the text as it is, whatever it looks like."""
    if text.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text
