"""Streams the items of a dataset file, and reads single items again on demand.

A file may be larger than memory: one item at a time is in memory, and it is read again from its place in the file.
Items of gzipped files, CSV files and Parquet files stay in memory, compressed.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from memorybench.core.errors import BadInput
from memorybench.files.json_places import JsonLines
from memorybench.files.json_stream import NotStreamable, open_window
from memorybench.files.json_text import DuplicateKey, decode_again, load_json, unique_object
from memorybench.files.jsonpaths import Path as JsonPath
from memorybench.files.located import Document, Place
from memorybench.files.parquet import BinaryValues, stream_parquet
from memorybench.files.reading import read_lines
from memorybench.files.rows import decode_line, stream_csv
from memorybench.text.sanitize import preview

_FAST_COMPRESSION = 1
_FIELD = re.compile(r"@\.([^\W\d]\w*)")
"""Matches a field of the item in a condition, such as `@.lang`."""
_UTF8_MARK = b"\xef\xbb\xbf"


_FORMATS = {".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}


class Span(NamedTuple):
    """The place of an item in an uncompressed file."""

    byte: int
    length: int
    """Length in bytes."""
    line: int
    position: int | None
    """Index in the JSON array; None in a JSONL file."""


class Item(NamedTuple):
    document: Document
    again: Callable[[], Document]
    """A function that reads the item again, from the file or from compressed memory."""
    span: Span | None = None
    """The place of the item in the file; None if it cannot be read alone."""


def read_items(
    path: Path,
    format: str | None = None,
    within: str | None = None,
    binary: BinaryValues | None = None,
    selection: Selection | None = None,
) -> Iterator[Item]:
    """Yield the items of a file. `within` is the path to them: in a JSON file, or in each row of another file.

    `binary` counts the values of a Parquet file that are not read, `selection` the items that a filter in `within`
    leaves out.
    """
    selection = selection or Selection(None, "")
    match format or format_of(path):
        case "jsonl":
            rows = _jsonl(path)
        case "csv":
            rows = (_csv_item(row) for row in stream_csv(path))
        case "parquet":
            rows = (_packed_item(row) for row in stream_parquet(path, binary))
        case _:
            return _members(path, within, selection) if within is not None else _array(path)
    return rows if within is None else chain.from_iterable(_inside(row, within, selection) for row in rows)


class Selection:
    """Selects the items that satisfy the condition of `data.where`, and counts the others."""

    def __init__(self, condition: str | None, where: str) -> None:
        """Parse the condition; `where` names it in error messages."""
        self._path = None if condition is None else JsonPath.parse(f"$[?{condition}]", where)
        is_plain = condition is not None and "[?" not in condition  # names in an inner filter are not those of items
        self._unseen_fields = dict.fromkeys(_FIELD.findall(condition or "")) if is_plain else {}
        """Fields of the condition that no item had yet."""
        self.left_out = 0
        """Number of items that do not satisfy the condition."""
        self.filtered = 0
        """Number of items that a filter in `data.items` leaves out."""

    def clear(self) -> None:
        self.left_out = self.filtered = 0

    def notes(self) -> Iterator[str]:
        if self.filtered:
            yield f"items left out by the filter in data.items: {self.filtered:,}"
        if self.left_out:
            yield f"items left out by data.where: {self.left_out:,}"
        for name in self._unseen_fields:
            yield f"no item has the field {preview(name)} (data.where)"

    def of(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items that satisfy the condition, and count the others."""
        for item in items:
            if self._unseen_fields and isinstance(item.document.value, dict):
                fields = item.document.value
                self._unseen_fields = {name: None for name in self._unseen_fields if name not in fields}
            if self._path is None or self._path.all([item.document.value]):
                yield item
            else:
                self.left_out += 1


def is_readable(name: str) -> bool:
    """Return whether the name is that of a data file, by its suffix."""
    return Path(name.lower().removesuffix(".gz")).suffix in _FORMATS and not name.lower().endswith(".parquet.gz")


def is_text(name: str) -> bool:
    """Return whether the name is that of a text file, which is not a data file and can be joined to one."""
    return Path(name.lower().removesuffix(".gz")).suffix == ".txt"


def is_hidden(name: str) -> bool:
    """Return whether a file or a folder in its path is hidden, or is `__MACOSX`, which macOS adds to zip archives."""
    return any(part.startswith(".") or part == "__MACOSX" for part in Path(name).parts)


def is_system_file(name: str) -> bool:
    """Return whether an operating system created the file, so that it need not be reported as skipped."""
    path = Path(name)
    known = path.name in (".DS_Store", "Thumbs.db", "desktop.ini")
    return known or path.name.startswith("._") or "__MACOSX" in path.parts


def read_span(path: Path, span: Span) -> Document:
    """Read one item of an uncompressed file again."""
    text = partial(_read_text, path, span)
    return _document(str(path), span, text, decode_again(text(), str(path), span.line))


def format_of(path: Path) -> str:
    name = Path(path.name.lower().removesuffix(".gz"))
    format = _FORMATS.get(name.suffix) if is_readable(path.name) else None
    if format is None:
        raise BadInput(
            str(path),
            "unknown file type",
            expected="a name ending in .json, .jsonl or .csv, or these with .gz, or .parquet",
            remedy="rename the file, or set data.format",
        )
    return format


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
    except (NotStreamable, BadInput):
        # reading the whole file either succeeds or reports the error with its place
        yield from islice(_members(path, None, Selection(None, "")), count, None)


def _stream_array(path: Path) -> Iterator[Item]:
    is_plain = path.suffix.lower() != ".gz"
    with open_window(path) as window:
        if window.peek() != "[":
            raise NotStreamable
        for index, _ in enumerate(window.items()):
            if window.peek() != "{":
                raise NotStreamable
            byte, line = window.byte, window.line
            value, text = window.value(with_text=not is_plain)
            yield _item(path, Span(byte, window.byte - byte, line, index), text, value, is_plain)
        if window.peek():
            raise NotStreamable


def _members(path: Path, within: str | None, selection: Selection) -> Iterator[Item]:
    """Read a JSON file as a whole, and yield its items."""
    document = load_json(path)
    if within is not None:
        yield from _inside(Item(document, lambda: document), within, selection)
        return
    if not isinstance(document.value, list):
        raise BadInput(
            document.where(),
            "the file is not a list of items",
            expected="a JSON array",
            remedy="set data.items to the path of the items: $ if the file is one item, $.* if each key has one",
        )
    for index in range(len(document.value)):
        yield Item(document.at(index), partial(document.at, index))


def _inside(whole: Item, within: str, selection: Selection) -> Iterator[Item]:
    """Yield the items at the path `within` of a file or row: the members of the list there, or else each match."""
    path, document = JsonPath.parse(within, "data.items"), whole.document
    matches = path.located(document.value)
    left_out = path.left_out(document.value)
    selection.filtered += left_out
    if not matches and not left_out:
        raise BadInput(document.where(), f"the file has nothing at the path {within}", remedy="correct data.items")
    if len(matches) == 1 and path.singular and isinstance(matches[0][1], list):
        place, members = matches[0]
        matches = [((*place, index), member) for index, member in enumerate(members)]
    for place, _ in matches:
        yield Item(document.at(*place), partial(_at, whole, place))


def _at(whole: Item, place: Place) -> Document:
    return whole.again().at(*place)


def _item(path: Path, span: Span, text: str, value: Any, is_plain: bool) -> Item:
    if is_plain:
        return Item(
            _document(str(path), span, partial(_read_text, path, span), value), partial(read_span, path, span), span
        )
    fetch, name = _compress(text), str(path)
    return Item(
        _document(name, span, fetch, value),
        lambda: _document(name, span, fetch, decode_again(fetch(), name, span.line)),
    )


def _document(path: str, span: Span, fetch: Callable[[], str], value: Any) -> Document:
    """Return the item as a document. `fetch` returns its text, and is called only to find the line of an error."""
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
        raise BadInput(
            str(path), "the file was changed or removed during the run", remedy="start the run again"
        ) from None


def _csv_item(row: Document) -> Item:
    return _packed_item(replace(row, value={name: _cell(text, row, name) for name, text in row.value.items()}))


def _packed_item(row: Document) -> Item:
    path, line, fetch = row.path, row.line(), _compress(json.dumps(row.value))
    return Item(row, lambda: Document(path, json.loads(fetch()), lambda _: line))


def _compress(text: str) -> Callable[[], str]:
    data = zlib.compress(text.encode(), _FAST_COMPRESSION)
    return lambda: zlib.decompress(data).decode()


def _cell(text: str, row: Document, name: str) -> object:
    """Return the JSON array or object in the cell, else the unchanged text."""
    if text.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(text, object_pairs_hook=unique_object)
        except DuplicateKey as error:
            raise BadInput(
                row.where(name),
                f"duplicate key {preview(str(error))}",
                expected="each key once",
                remedy="remove one of the two",
            ) from None
        except (ValueError, RecursionError):
            return text
    return text
