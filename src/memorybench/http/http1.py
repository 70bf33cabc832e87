"""HTTP/1.1 as a client speaks it (RFC 9112): the bytes of a request, and a reader of replies. It knows no sockets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Protocol

HEAD_CAP = 64 * 2**10
LINE_CAP = 4 * 2**10
"""Of a line between chunks, which may carry extensions that nobody reads."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})

_FIELD = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+: [^\x00-\x08\x0a-\x1f\x7f]*")
_STATUS = re.compile(r"HTTP/1\.([01]) ([1-9]\d\d)(?: .*)?", re.ASCII)
_FOLD = re.compile(r"\n[ \t]+")
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,12}")
_BEGINNING = b"HTTP/1."
_WITHOUT_BODY = frozenset({204, 304})
_OF_FRAMING = frozenset({"connection", "content-length", "transfer-encoding"})
"""Headers of which each occurrence counts."""


class NotHttp(Exception):
    """What came is no HTTP/1.1 reply."""


class BrokenOff(Exception):
    """A reply ends before it is whole."""


class Receiver(Protocol):
    """Takes a reply as it comes. What it raises ends the exchange."""

    def head(self, status: int, headers: Mapping[str, str]) -> bool:
        """Whether the body is wanted. Names of headers are in lower case; the first of a name counts."""

    def piece(self, data: bytes) -> bool:
        """Whether more is wanted."""


def field_lines(fields: Mapping[str, str]) -> str:
    """The lines of a request's head. ValueError where one holds what can not be sent, such as another line."""
    lines = [f"{name}: {value}" for name, value in fields.items()]
    if not all(map(_FIELD.fullmatch, lines)):
        raise ValueError("unsendable")
    return "".join([f"{line}\r\n" for line in lines])


def request_bytes(method: str, target: str, lines: str, body: bytes) -> bytes:
    """`lines` as `field_lines` gave them."""
    if body or method not in ("GET", "HEAD"):
        lines = f"{lines}Content-Length: {len(body)}\r\n"
    return f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode() + body


class ReplyReader:
    """Reads one reply: `feed` takes the bytes as they come, `end` that no more will."""

    __slots__ = ("_at", "_bodiless", "_left", "_next", "_receiver", "_unread", "begun", "keeps_open", "whole")

    def __init__(self, method: str, receiver: Receiver) -> None:
        self._bodiless = method == "HEAD"
        self._receiver = receiver
        self._unread = b""
        self._at = 0
        """Where in `_unread` the next part begins."""
        self._left = 0
        """Bytes that are still to come of a body, or of a chunk of it."""
        self._next: Callable[[], bool] = self._head
        """Reads a part. Whether it was there, and the next may be."""
        self.begun = False
        self.whole = False
        self.keeps_open = False
        """Another request may follow on the same connection."""

    def feed(self, data: bytes) -> None:
        self.begun = True
        self._unread = self._unread + data if self._unread else data
        while not self.whole and self._next():
            pass
        self._unread, self._at = self._unread[self._at :], 0
        if self.whole and self._unread:  # more than the reply: it is not known what that would be
            self.keeps_open = False

    def end(self) -> None:
        """Makes whole what only the end of the connection delimits."""
        self.whole = self.whole or self._next == self._until_the_end

    def _head(self) -> bool:
        if self._unread[self._at : self._at + 1] in (b"\r", b"\n"):  # some send an empty line before
            self._unread, self._at = self._unread[self._at :].lstrip(b"\r\n"), 0
        beginning = self._unread[self._at : self._at + len(_BEGINNING)]
        if not _BEGINNING.startswith(beginning):
            raise NotHttp
        end = _end_of_head(self._unread, self._at)
        if end < 0:
            if len(self._unread) - self._at >= HEAD_CAP:
                raise NotHttp
            return False
        minor, status, headers = _parsed(self._unread[self._at : end].decode("utf-8", "replace"))
        self._at = end
        if status == 101:  # was never asked for
            raise NotHttp
        if status < 200:  # the reply itself is still to come
            return True
        wanted = self._receiver.head(status, headers)
        self.keeps_open = _keeps_open(minor, headers)
        self._begin_body(status, headers)
        if not wanted and not self.whole:
            self.whole, self.keeps_open = True, False
        return True

    def _begin_body(self, status: int, headers: Mapping[str, str]) -> None:
        coding, length = headers.get("transfer-encoding"), headers.get("content-length")
        if self._bodiless:
            self.whole = True
        elif status in _WITHOUT_BODY:
            self.whole = True
            self.keeps_open &= coding is None and (status == 304 or length in (None, "0"))  # it might come all the same
        elif coding is not None:
            if coding.lower() != "chunked":  # none other was accepted
                raise NotHttp
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
        self._left = len(self._unread) - self._at
        self._take()
        return False

    def _chunk_size(self) -> bool:
        line = self._line()
        if line is None:
            return False
        size = line.partition(b";")[0].strip(b" \t")
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
        if line is None:
            return False
        if line:
            raise NotHttp
        self._next = self._chunk_size
        return True

    def _trailer(self) -> bool:
        line = self._line()
        self.whole = line == b""
        return bool(line)

    def _line(self) -> bytes | None:
        """The next one, if all of it is there."""
        end = self._unread.find(b"\n", self._at, self._at + LINE_CAP)
        if end < 0:
            if len(self._unread) - self._at >= LINE_CAP:
                raise NotHttp
            return None
        line = self._unread[self._at : end].removesuffix(b"\r")
        self._at = end + 1
        return line

    def _take(self) -> None:
        """Hands on what belongs to the body."""
        if not (piece := self._unread[self._at : self._at + self._left]):
            return
        self._left -= len(piece)
        self._at += len(piece)
        if not self._receiver.piece(piece):
            self.whole, self.keeps_open = True, False


def _end_of_head(unread: bytes, start: int) -> int:
    """Behind the first empty line; -1: it is still to come. Some end their lines by a line feed alone."""
    usual = unread.find(b"\n\r\n", start, start + HEAD_CAP)
    bare = unread.find(b"\n\n", start, start + HEAD_CAP if usual < 0 else usual + 1)
    return bare + 2 if bare >= 0 else usual + 3 if usual >= 0 else -1


def _parsed(head: str) -> tuple[int, int, dict[str, str]]:
    """The minor version, the status, the headers."""
    status_line, *lines = _FOLD.sub(" ", head.replace("\r\n", "\n").rstrip("\n")).split("\n")
    told = _STATUS.fullmatch(status_line)
    if told is None or "\0" in head or head.count("\r") != head.count("\r\n"):
        raise NotHttp
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise NotHttp
        name, value = name.strip(" \t").lower(), value.strip(" \t")
        if name not in headers:
            headers[name] = value
        elif name in _OF_FRAMING:
            headers[name] += f", {value}"
    return int(told[1]), int(told[2]), headers


def _keeps_open(minor: int, headers: Mapping[str, str]) -> bool:
    if "transfer-encoding" in headers and (not minor or "content-length" in headers):
        return False  # what delimits it, and whether everybody on the way agrees, is anybody's guess
    tokens = [token.strip() for token in headers.get("connection", "").lower().split(",")]
    return "close" not in tokens if minor else "keep-alive" in tokens


def _length(told: str) -> int:
    lengths = {length.strip() for length in told.split(",")}  # some proxies repeat it
    length = lengths.pop()
    if lengths or not (length.isascii() and length.isdigit()) or len(length) > 15:
        raise NotHttp
    return int(length)
