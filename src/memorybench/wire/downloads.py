"""A file from the network, which may be large: fetched into a draft, and gone on with where it broke off."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import aiohttp

from memorybench.vocabulary.errors import Denied, Malformed, ServiceError

from .http import Http
from .replies import DENIED

Progress = Callable[[int, int | None], None]
"""Told the bytes that are there and, where the server says so, those there will be."""

_PIECE = 2**18
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

    def opened(self, start: int, response: aiohttp.ClientResponse) -> BinaryIO:
        etag = response.headers.get("ETag", "")
        if etag and not etag.startswith("W/"):  # a weak one does not vouch for bytes
            self.tag.write_text(etag, encoding="utf-8")
        else:
            self.tag.unlink(missing_ok=True)
        return self.file.open("ab" if start else "wb")

    def forget(self) -> None:
        self.tag.unlink(missing_ok=True)


async def download(http: Http, url: str, file: Path, *, cap: int, progress: Progress | None = None) -> None:
    """Fills `file`, a draft, with all that is at `url`. What an earlier attempt has left is kept only if the server
    vouches, by its ETag, that the file is still the same."""
    draft, where = _Draft(file), http.named(url)
    begun = draft.begun
    async with http.stream(url, draft.headers(begun)) as response:
        if response.status == _BEYOND and response.headers.get("Content-Range") == f"bytes */{begun}":
            draft.forget()  # all of it had come before
            return
        start, total = _extent(where, response, begun)
        if total is not None and total > cap:
            raise Malformed(f"{where}: {total:,} bytes, which is more than the {cap:,} that are accepted")
        done = start
        with draft.opened(start, response) as opened:
            async for piece in response.content.iter_chunked(_PIECE):
                done += len(piece)
                if done > cap:
                    raise Malformed(f"{where}: more than the {cap:,} bytes that are accepted")
                opened.write(piece)
                if progress is not None:
                    progress(done, total)
    if total is not None and done != total:
        raise ServiceError(f"{where}: {done:,} of {total:,} bytes came; run it again")
    draft.forget()


def _extent(where: str, response: aiohttp.ClientResponse, begun: int) -> tuple[int, int | None]:
    """Where the body begins, and how long the whole file is, if that is told."""
    if response.status == _WHOLE:
        return 0, response.content_length
    if response.status in DENIED:
        raise Denied(f"{where}: HTTP {response.status}: the file is not open to everyone")
    if response.status != _PARTIAL:
        raise ServiceError(f"{where}: HTTP {response.status}")
    told = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if told is None or int(told[1]) != begun:
        raise Malformed(f"{where}: another part of the file came than was asked for")
    return begun, int(told[2]) if told[2] else None
