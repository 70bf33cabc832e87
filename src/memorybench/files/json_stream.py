"""Reads a JSON file piece by piece, so that only the current value is in memory."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from .json_text import decode_at
from .reading import unpacked_cap

_CHUNK = 4 * 2**20
_BLANKS = re.compile(r"[ \t\n\r]*")


class NotStreamable(Exception):
    """The file is invalid, or does not have the expected structure.

    To get an error with a line number, read the whole file with `load_json`.
    """


@contextmanager
def open_window(path: Path) -> Iterator[JsonWindow]:
    """Open a JSON file, which may be gzipped; raise NotStreamable if it cannot be read."""
    is_plain = path.suffix.lower() != ".gz"
    try:
        with cast("IO[bytes]", path.open("rb") if is_plain else gzip.open(path)) as file:
            yield JsonWindow(file, unpacked_cap(path))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise NotStreamable from error


class JsonWindow:
    """Reads a JSON file from the beginning to the end, with only a part of it in memory."""

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
        """Skip whitespace and return the next character without skipping it; "" at the end of the file."""
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

    def expect(self, mark: str) -> None:
        if self.peek() != mark:
            raise NotStreamable
        self.skip(1)

    def value(self, with_text: bool = False) -> tuple[Any, str]:
        """Read the JSON value at the current position; return it and, if `with_text`, its text (else "")."""
        if len(self._text) - self._at < self._longest and not self._ended:
            self._read_on()  # an item that is cut off would be parsed in vain
        while True:
            try:
                value, end = decode_at(self._text, self._at)
            except (ValueError, RecursionError):
                if self._ended:
                    raise NotStreamable from None
                self._read_on()  # invalid JSON reaches the end of the file
            else:
                text = self._text[self._at : end] if with_text else ""
                self._longest = max(self._longest, end - self._at)
                self.skip(end - self._at)
                return value, text

    def items(self) -> Iterator[None]:
        """Iterate over the array or object at the current position.

        In each iteration, the current position is that of its next item or key, which the caller must read.
        """
        opening = self.peek()
        self.expect("[" if opening == "[" else "{")
        closing = "]" if opening == "[" else "}"
        is_first = True
        while self.peek() != closing:
            if not is_first:
                self.expect(",")
                self.peek()
            is_first = False
            yield
        self.skip(1)

    def _read_on(self) -> None:
        # at least doubled, so that a long item is parsed only a few times
        chunk = self._file.read(max(_CHUNK, len(self._text) - self._at))
        self._ended = not chunk
        self._text = self._text[self._at :] + self._decoder.decode(chunk, final=self._ended)
        self._at = 0
        if self.byte + len(self._text) > self._largest:
            raise NotStreamable


def first_members(path: Path) -> dict[str, Any]:
    """Return the members of the JSON object in a file up to its first array, which is returned as an empty list.

    They often show what kind of file it is, without reading it as a whole. Empty if the file is not a JSON object.
    """
    found: dict[str, Any] = {}
    try:
        with open_window(path) as window:
            if window.peek() != "{":
                return {}
            for _ in window.items():
                name, _ = window.value()
                window.expect(":")
                if window.peek() == "[":
                    return {**found, name: []}
                found[name], _ = window.value()
    except NotStreamable:
        return {}
    return found


def stream_members(path: Path, key: str) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each member of the JSON object in a file.

    The array at `key` is yielded item by item.
    """
    names: set[str] = set()
    with open_window(path) as window:
        if window.peek() != "{":
            raise NotStreamable
        for _ in window.items():
            name, _ = window.value()
            if not isinstance(name, str) or name in names:
                raise NotStreamable
            names.add(name)
            window.expect(":")
            if name != key:
                window.peek()
                yield name, window.value()[0]
            elif window.peek() == "[":
                for _ in window.items():
                    yield name, window.value()[0]
            else:
                raise NotStreamable
        if window.peek():
            raise NotStreamable
