"""Downloads of large files, which continue where an earlier attempt stopped."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from memorybench.core.errors import Denied, Malformed, ServiceError

from .client import Http
from .replies import DENIED

Progress = Callable[[int, int | None], None]
"""Called with the number of bytes so far, and the size of the file (None if the server does not report it)."""

_RANGE = re.compile(r"bytes (\d+)-\d+/(?:(\d+)|\*)")


async def download(http: Http, url: str, file: Path, *, cap: int, progress: Progress | None = None) -> None:
    """Download `url` into `file`; raise Malformed if it has more than `cap` bytes.

    A part of the file from an earlier, interrupted download is kept only if the stored ETag still matches.
    """
    where = http.describe(url)
    tag = file.with_name(f"{file.name}.etag")
    start, headers = _resume(file, tag)
    async with http.stream(url, headers) as response:
        if response.status != 416 or response.headers.get("Content-Range") != f"bytes */{start}":  # not yet complete
            done, total = _extent(where, response.status, response.headers, start)
            if total is not None and total > cap:
                raise Malformed(f"{where}: the file has {total:,} bytes; at most {cap:,} are accepted")
            etag = response.headers.get("ETag", "")
            if etag and not etag.startswith("W/"):  # a weak one does not guarantee equal bytes
                tag.write_text(etag, encoding="utf-8")
            else:
                tag.unlink(missing_ok=True)
            with file.open("ab" if done else "wb") as draft:
                async for piece in response.content.iter_any():
                    done += len(piece)
                    if done > cap:
                        raise Malformed(f"{where}: the file has more than the {cap:,} bytes that are accepted")
                    draft.write(piece)
                    if progress is not None:
                        progress(done, total)
            if total is not None and done != total:
                raise ServiceError(f"{where}: received {done:,} of {total:,} bytes; run the command again")
    tag.unlink(missing_ok=True)


def _resume(file: Path, tag: Path) -> tuple[int, Mapping[str, str]]:
    """Return how many bytes an earlier download has written to the file, and the request headers for the rest."""
    whole = {"Accept-Encoding": "identity"}
    start = file.stat().st_size if file.exists() and tag.exists() else 0
    if not start:
        return 0, whole
    # with If-Range, a changed file is sent whole
    return start, {**whole, "Range": f"bytes={start}-", "If-Range": tag.read_text(encoding="utf-8")}


def _extent(where: str, status: int, headers: Mapping[str, str], start: int) -> tuple[int, int | None]:
    """Return the offset in the file at which the reply's body begins, and the size of the file (None: unknown)."""
    if status == 200:
        length = headers.get("Content-Length", "")
        return 0, int(length) if length.isdecimal() else None
    if status in DENIED:
        raise Denied(
            f"{where}: HTTP {status}: the file is not public; download it yourself if you have access", status=status
        )
    if status != 206:
        raise ServiceError(f"{where}: HTTP {status} instead of the file", status=status)
    part = _RANGE.fullmatch(headers.get("Content-Range", ""))
    if part is None or int(part[1]) != start:
        raise Malformed(
            f"{where}: the server sent another part of the file than requested; run the command again", status=status
        )
    return start, int(part[2]) if part[2] else None
