"""HTTP/1.1 as a client speaks it (RFC 9112): the bytes of a request, and a reader of replies. It knows no sockets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Protocol

HEAD_CAP = 64 * 2**10
LINE_CAP = 4 * 2**10
"""Of a line between chunks, which may carry extensions that nobody reads."""

_FIELDS = re.compile(r"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+: [^\0\r\n]*\r\n)*")
_STATUS = re.compile(r"HTTP/1\.([01]) ([1-5]\d\d)(?: .*)?")
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_FOLD = re.compile(r"\r?\n[ \t]+")
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,12}")
_BEGINNING = b"HTTP/1."
_WITHOUT_BODY = frozenset({204, 304})


class NotHttp(Exception):
    """What came is no HTTP/1.1 reply."""


class BrokenOff(Exception):
    """A reply ends before it is whole."""


class Receiver(Protocol):
    """Takes a reply as it comes. What it raises ends the exchange."""

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Names of headers are in lower case; what was sent under one name several times is joined by commas."""

    def piece(self, data: bytes) -> bool:
        """Whether more is wanted."""


def request_bytes(method: str, target: str, fields: Mapping[str, str], body: bytes) -> bytes:
    """ValueError where a field holds what can not be sent."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in fields.items()])
    if not _FIELDS.fullmatch(lines):
        raise ValueError("a field can not be sent")
    return f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode() + body


class ReplyReader:
    """Reads one reply: `feed` takes the bytes as they come, `end` that no more will."""

    __slots__ = ("_bodiless", "_left", "_next", "_receiver", "_unread", "begun", "keeps_open", "whole")

    def __init__(self, method: str, receiver: Receiver) -> None:
        self._bodiless = method == "HEAD"
        self._receiver = receiver
        self._unread = b""
        self._left = 0
        self._next: Callable[[], bool] = self._head
        self.begun = False
        self.whole = False
        self.keeps_open = False
        """Another request may follow on the same connection."""

    def feed(self, data: bytes) -> None:
        self.begun = True
        self._unread = self._unread + data if self._unread else data
        while not self.whole and self._next():
            pass
        if self.whole and self._unread:  # more than the reply: it is not known what that would be
            self.keeps_open = False

    def end(self) -> None:
        """Makes whole what only the end of the connection delimits."""
        self.whole = self.whole or self._next == self._until_the_end

    def _head(self) -> bool:
        unread = self._unread.lstrip(b"\r\n")
        if not unread.startswith(_BEGINNING[: len(unread)]):
            raise NotHttp
        end = _BLANK_LINE.search(unread, endpos=HEAD_CAP)
        if end is None:
            if len(unread) >= HEAD_CAP:
                raise NotHttp
            return False
        self._unread = unread[end.end() :]
        minor, status, headers = _parsed(unread[: end.start()].decode("utf-8", "replace"))
        if status == 101:  # was never asked for
            raise NotHttp
        if status < 200:  # the reply itself is still to come
            return True
        self._receiver.head(status, headers)
        self.keeps_open = _keeps_open(minor, headers.get("connection", ""))
        self._begin_body(status, headers)
        return True

    def _begin_body(self, status: int, headers: Mapping[str, str]) -> None:
        coding, length = headers.get("transfer-encoding"), headers.get("content-length")
        if self._bodiless or status in _WITHOUT_BODY:
            self.whole = True
        elif coding is not None:
            if coding.strip().lower() != "chunked":  # none other was accepted
                raise NotHttp
            if length is not None:
                self.keeps_open = False  # only one of them can be true
            self._next = self._chunk_size
        elif length is not None:
            self._left = _length(length)
            self._next = self._sized
            self.whole = not self._left
        else:
            self.keeps_open = False
            self._next = self._until_the_end

    def _sized(self) -> bool:
        self._take()
        self.whole = self.whole or not self._left
        return False

    def _until_the_end(self) -> bool:
        self._left = len(self._unread)
        self._take()
        return False

    def _chunk_size(self) -> bool:
        line = self._line()
        if line is None:
            return False
        size = line.partition(b";")[0].strip()
        if not _CHUNK_SIZE.fullmatch(size):
            raise NotHttp
        self._left = int(size, 16)
        self._next = self._chunk if self._left else self._trailer
        return True

    def _chunk(self) -> bool:
        self._take()
        if self._left:
            return False
        self._next = self._chunk_end
        return True

    def _chunk_end(self) -> bool:
        line = self._line()
        if line:
            raise NotHttp
        self._next = self._chunk_size
        return line is not None

    def _trailer(self) -> bool:
        line = self._line()
        self.whole = line == b""
        return bool(line)

    def _line(self) -> bytes | None:
        """The next one, if all of it is there."""
        line, ended, rest = self._unread.partition(b"\n")
        if len(line) > LINE_CAP:
            raise NotHttp
        if not ended:
            return None
        self._unread = rest
        return line.removesuffix(b"\r")

    def _take(self) -> None:
        """Hands on what belongs to the body."""
        if not (piece := self._unread[: self._left]):
            return
        self._left -= len(piece)
        self._unread = self._unread[len(piece) :]
        if not self._receiver.piece(piece):
            self.keeps_open = False
            self.whole = True


def _parsed(head: str) -> tuple[int, int, dict[str, str]]:
    """The minor version, the status, the headers."""
    status_line, *lines = _FOLD.sub(" ", head).replace("\r\n", "\n").split("\n")
    told = _STATUS.fullmatch(status_line)
    if told is None:
        raise NotHttp
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise NotHttp
        name, value = name.strip().lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return int(told[1]), int(told[2]), headers


def _keeps_open(minor: int, told: str) -> bool:
    tokens = [token.strip() for token in told.lower().split(",")]
    return "close" not in tokens if minor else "keep-alive" in tokens


def _length(told: str) -> int:
    lengths = {length.strip() for length in told.split(",")}  # some proxies repeat it
    length = lengths.pop()
    if lengths or not (length.isascii() and length.isdigit()) or len(length) > 15:
        raise NotHttp
    return int(length)
