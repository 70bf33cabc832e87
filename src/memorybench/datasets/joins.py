"""Adds to each item what is not in it: its position, its file, and the content of other files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import count
from pathlib import Path as FilePath
from typing import Any

from msgspec import field
from msgspec.structs import replace

from memorybench.core.errors import BadInput
from memorybench.files.json_text import load_json
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document, Place, Step
from memorybench.files.parquet import BinaryValues
from memorybench.files.reading import read_text
from memorybench.text.sanitize import preview

from .config import Data, Join
from .folders import joined_file
from .ids import locate
from .items import Item, Selection, format_of, is_text, read_items
from .paths import Marked, flatten, only, parse_path

_CACHED = 4
"""Number of joined files, and of rows, that are kept in memory: items that share one are often adjacent."""


class JoinedItem(Document, frozen=True):
    """An item with fields that come from other files.

    Errors about such a field name the file and line it comes from.
    """

    joined: Mapping[Step, Document] = field(default_factory=dict)

    def at(self, *place: Step) -> Document:
        other, rest = self._other(place)
        return Document.at(self, *place) if other is None else other.at(*rest)

    def line(self, *place: Step) -> int | None:
        other, rest = self._other(place)
        return Document.line(self, *place) if other is None else other.line(*rest)

    def where(self, *place: Step) -> str:
        other, rest = self._other(place)
        return Document.where(self, *place) if other is None else other.where(*rest)

    def _other(self, place: Place) -> tuple[Document | None, Place]:
        if not place or place[0] not in self.joined:
            return None, ()
        # a text in it may have been parsed since
        return replace(self.joined[place[0]], value=self.value[place[0]]), place[1:]


class ItemStream:
    """The items of the files of a dataset, in order."""

    def __init__(
        self, data: Data, files: Sequence[FilePath], joined: Mapping[str, Sequence[FilePath]], folder: FilePath | None
    ) -> None:
        self._data = data
        self._files = files
        self._folder = folder or files[0].parent
        self.binary: BinaryValues = {}
        self.selection = Selection(data.where, "data.where")
        self._rows = {
            name: _Rows(name, join, joined.get(name, ()), self.binary)
            for name, join in data.join.items()
            if join.file is None
        }
        self._whole = lru_cache(maxsize=_CACHED)(partial(_read_whole, binary=self.binary))

    def __iter__(self) -> Iterator[Item]:
        number = 0
        self.selection.clear()
        for file in self._files:
            items = read_items(file, self._data.format, self._data.items, self.binary, self.selection)
            for item in self.selection.of(items):
                number += 1
                yield Item(self._complete(item.document, file, number), self._again(item, file, number))

    def _again(self, item: Item, file: FilePath, number: int) -> Any:
        return lambda: self._complete(item.again(), file, number)

    def _complete(self, item: Document, file: FilePath, number: int) -> JoinedItem:
        value = _with_marks(item, number, file, self._folder)
        joined: dict[Step, Document] = {}
        for name, join in self._data.join.items():
            if name in value:
                raise BadInput(
                    item.where(name),
                    f"the item already has a field {preview(name)}, so data.join cannot add it",
                    remedy=f"rename data.join.{name}",
                )
            if join.file is None:
                document = self._rows[name].find(item, value)
            else:
                document = self._whole(joined_file(join.file, file, self._folder), join.format)
            joined[name] = document
            value[name] = document.value  # a later join may be by a key in it
        return JoinedItem(item.path, value, item.line_of, item.within, joined=joined)

    def key_of(self, name: str, item: Document) -> str:
        """Return the key of the row that is joined to an item as `name`, or the path of the joined file."""
        if name in self._rows:
            return self._rows[name].key_of(item, item.value)
        assert isinstance(item, JoinedItem)
        file = FilePath(item.joined[name].path)
        return file.relative_to(self._folder).as_posix() if file.is_relative_to(self._folder) else file.name

    def notes(self) -> Iterator[str]:
        for name, rows in self._rows.items():
            if rows.unused:
                yield f"rows of {name} that no item uses: {rows.unused:,}"


class _Rows:
    """The rows of a join, by key."""

    def __init__(self, name: str, join: Join, files: Sequence[FilePath], binary: BinaryValues) -> None:
        self._name = name
        where = f"data.join.{name}"
        self._by = parse_path(join.by or "", f"{where}.by")
        key = parse_path(join.key or "", f"{where}.key")
        self._rows: dict[str, Callable[[], Document]] = {}
        """By key: a function that reads the row again."""
        self._used: set[str] = set()
        number = 0
        for file in files:
            for row in read_items(file, join.format, join.items, binary):
                number += 1
                value = _with_marks(row.document, number, file, file.parent)
                text = _key(key, value, row.document, f"{where}.key")
                if text in self._rows:
                    raise BadInput(
                        row.document.where(),
                        f"two rows have the key {preview(text)}",
                        remedy=f"correct {where}, or the rows",
                    )
                self._rows[text] = row.again
        self._read = lru_cache(maxsize=_CACHED)(lambda key: self._rows[key]())
        self._read_list = lru_cache(maxsize=_CACHED)(self._rows_of)
        self._lists: dict[tuple[str, ...], str] = {}
        """By list of keys: a name for the list, such as `notes-1`, which is not the key of any row."""
        self._free_names = (f"{name}-{number}" for number in count(1))

    @property
    def unused(self) -> int:
        return len(self._rows) - len(self._used)

    def key_of(self, item: Document, value: Mapping[str, Any]) -> str:
        """Return the key of the row for an item; if it has a list of keys, return a name for this list."""
        keys = self._keys(item, value)
        if isinstance(keys, str):
            return keys
        if keys not in self._lists:
            self._lists[keys] = next(name for name in self._free_names if name not in self._rows)
        return self._lists[keys]

    def find(self, item: Document, value: Mapping[str, Any]) -> Document:
        keys = self._keys(item, value)
        for key in (keys,) if isinstance(keys, str) else keys:
            if key not in self._rows:
                raise BadInput(
                    locate(self._by, item)(),
                    f"no row of {self._name} has the key {preview(key)}",
                    remedy=f"correct data.join.{self._name}, or the key in the item",
                )
            self._used.add(key)
        return self._read(keys) if isinstance(keys, str) else self._read_list(keys)

    def _keys(self, item: Document, value: Mapping[str, Any]) -> str | tuple[str, ...]:
        found, where = self._by.all(value), f"data.join.{self._name}.by"
        if self._by.singular and not (found and isinstance(found[0], list)):
            return _key(self._by, value, item, where)
        keys = [key for match in found for _, key in flatten(match, ())]
        if not keys or any(isinstance(key, dict | bool) or key is None or not str(key).strip() for key in keys):
            raise BadInput(
                item.where(),
                f"the item has no valid keys at {self._by.text}",
                expected="a text or a number, or a list of them",
                remedy=f"correct {where}",
            )
        return tuple(map(str, keys))

    def _rows_of(self, keys: tuple[str, ...]) -> Document:
        rows = [self._rows[key]() for key in keys]
        return _as_list(rows[0].path, rows)


def _with_marks(item: Document, number: int, file: FilePath, folder: FilePath) -> Marked:
    names = [step for step in item.within if isinstance(step, str)]
    relative = file.relative_to(folder) if file.is_relative_to(folder) else FilePath(file.name)
    marks = {
        "@value": item.value,
        "@index": number,
        "@key": names[-1] if names and item.within[-1] == names[-1] else "",
        "@file": relative.as_posix(),
        "@folder": relative.parent.as_posix() if relative.parent.name else file.parent.name,
        "@stem": file.name.removesuffix(".gz").rpartition(".")[0],
    }
    return Marked(item.value if isinstance(item.value, dict) else {}, marks)


def _key(path: Path, value: Mapping[str, Any], document: Document, key: str) -> str:
    found = only(path, value, document.where)
    if found is None or isinstance(found, dict | list | bool) or not str(found).strip():
        raise BadInput(
            document.where(),
            f"there is no valid key at {path.text}",
            expected="a text or a number",
            remedy=f"correct {key}",
        )
    return str(found)


def _read_whole(file: FilePath, format: str | None, binary: BinaryValues) -> Document:
    """Return a file as one value: the JSON document, a text, or the list of the rows of another file."""
    if format == "text" or (format is None and is_text(file.name)):
        return Document(str(file), read_text(file), _line_of_text)
    if (format or format_of(file)) == "json":
        return load_json(file)
    rows = [item.document for item in read_items(file, format, binary=binary)]
    return _as_list(str(file), rows)


def _line_of_text(place: Place) -> int | None:
    return place[0] + 1 if place and isinstance(place[0], int) else None


def _as_list(path: str, rows: Sequence[Document]) -> Document:
    """Return a document whose value is the list of the rows."""

    def line_of(place: Place) -> int | None:
        index = place[0] if place else None
        return rows[index].line() if isinstance(index, int) and index < len(rows) else None

    return Document(path, [row.value for row in rows], line_of)
