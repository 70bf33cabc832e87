"""A file from the network, which may be large: fetched into a draft, and gone on with where it broke off."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from memorybench.core.errors import Denied, Malformed, ServiceError

from .client import Http
from .replies import DENIED

Progress = Callable[[int, int | None], None]
"""Told the bytes that are there and, where the server says so, those there will be."""

_WHOLE, _PARTIAL, _BEYOND = 200, 206, 416
_RANGE = re.compile(r"bytes (\d+)-\d+/(?:(\d+)|\*)")


@dataclass(frozen=True, slots=True)
class _Draft:
    """What has come so far. It is of use later only if the server gave an ETag, which lies beside it."""

    file: Path

    @property
    def tag(self) -> Path:
        return self.file.with_name(f"{self.file.name}.etag")

    @property
    def begun(self) -> int:
        return self.file.stat().st_size if self.file.exists() and self.tag.exists() else 0

    def headers(self, begun: int) -> dict[str, str]:
        whole = {"Accept-Encoding": "identity"}
        if not begun:
            return whole
        # with If-Range a file that has changed comes whole
        return {**whole, "Range": f"bytes={begun}-", "If-Range": self.tag.read_text(encoding="utf-8")}

    def opened(self, start: int, etag: str) -> BinaryIO:
        if etag and not etag.startswith("W/"):  # a weak one does not vouch for bytes
            self.tag.write_text(etag, encoding="utf-8")
        else:
            self.tag.unlink(missing_ok=True)
        return self.file.open("ab" if start else "wb")

    def forget(self) -> None:
        self.tag.unlink(missing_ok=True)


class _Arriving:
    """Writes down what comes, where it is the file that was asked for."""

    def __init__(self, draft: _Draft, where: str, cap: int, progress: Progress | None) -> None:
        self._draft = draft
        self._where = where
        self._cap = cap
        self._progress = progress
        self._begun = draft.begun
        self._file: BinaryIO | None = None
        self._done = 0
        self._total: int | None = None

    @property
    def wanted(self) -> Mapping[str, str]:
        return self._draft.headers(self._begun)

    def head(self, status: int, headers: Mapping[str, str]) -> bool:
        if status == _BEYOND and headers.get("content-range") == f"bytes */{self._begun}":
            return False  # all of it had come before
        self._done, self._total = _extent(self._where, status, headers, self._begun)
        if self._total is not None and self._total > self._cap:
            raise Malformed(
                f"{self._where}: {self._total:,} bytes, which is more than the {self._cap:,} that are accepted"
            )
        self._file = self._draft.opened(self._done, headers.get("etag", ""))
        return True

    def piece(self, data: bytes) -> bool:
        assert self._file is not None  # opened by the head
        self._done += len(data)
        if self._done > self._cap:
            raise Malformed(f"{self._where}: more than the {self._cap:,} bytes that are accepted")
        self._file.write(data)
        if self._progress is not None:
            self._progress(self._done, self._total)
        return True

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def check(self) -> None:
        if self._total is not None and self._done != self._total:
            raise ServiceError(f"{self._where}: {self._done:,} of {self._total:,} bytes came; run it again")


async def download(http: Http, url: str, file: Path, *, cap: int, progress: Progress | None = None) -> None:
    """Fills `file`, a draft, with all that is at `url`. What an earlier attempt has left is kept only if the server
    vouches, by its ETag, that the file is still the same."""
    draft = _Draft(file)
    with closing(_Arriving(draft, http.named(url), cap, progress)) as arriving:
        await http.receive(url, arriving.wanted, arriving)
    arriving.check()
    draft.forget()


def _extent(where: str, status: int, headers: Mapping[str, str], begun: int) -> tuple[int, int | None]:
    """Where the body begins, and how long the whole file is, if that is told."""
    if status == _WHOLE:
        length = headers.get("content-length", "")
        return 0, int(length) if length.isdecimal() else None
    if status in DENIED:
        raise Denied(f"{where}: HTTP {status}: the file is not open to everyone")
    if status != _PARTIAL:
        raise ServiceError(f"{where}: HTTP {status}")
    told = _RANGE.fullmatch(headers.get("content-range", ""))
    if told is None or int(told[1]) != begun:
        raise Malformed(f"{where}: another part of the file came than was asked for")
    return begun, int(told[2]) if told[2] else None
