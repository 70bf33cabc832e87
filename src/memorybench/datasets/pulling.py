"""Downloads the data files of a benchmark.

Downloads are in the cache folder under the name of their source, so that benchmarks with the same file share it.
`<file>.pull.json` records URL, checksum and size of a download. If the config has no checksum, later reads are compared
with that record.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memorybench.core.errors import BadInput, RunConflict, ServiceError, Transient
from memorybench.files.writing import replacing

from .checksums import sha256_of
from .sources import Piece, Pulled, Source, verify_files

if TYPE_CHECKING:
    from memorybench.http.downloads import Progress
    from memorybench.secrets.redaction import Redactor

LARGEST = 8 * 2**30
"""Largest download in bytes, if the config gives no size."""


async def pull(
    source: Source, redactor: Redactor, progress: Callable[[Piece], Progress] | None = None, cap: int = LARGEST
) -> None:
    """Download the missing files of a source.

    A file gets its name only when it is complete and its checksum is verified. Existing files are not replaced. `cap`
    is the maximum size in bytes of a file for which the config has no size.
    """
    from memorybench.http.client import open_http
    from memorybench.http.downloads import download

    async with open_http(redactor) as http:
        for piece in source.pieces:
            if piece.url is None:
                raise BadInput(str(piece.file), "is a local file of the user, so there is nothing to download")
            if piece.file.exists():
                _adopt(source, piece)
                continue
            report = progress(piece) if progress is not None else None
            with _lock_draft(piece) as draft:
                try:
                    await download(http, piece.url, draft, cap=piece.size or cap, progress=report)
                except Transient as lost:
                    raise ServiceError(
                        f"{lost}; run the command again, or download {piece.url} yourself and put it at {piece.file}",
                        status=lost.status,
                    ) from None
                await asyncio.to_thread(_place, source, piece, draft)


def _place(source: Source, piece: Piece, draft: Path) -> None:
    """Verify the complete download `draft` and rename it to the final file."""
    actual = sha256_of(draft)
    if piece.sha256 not in (None, actual):
        draft.unlink()
        raise BadInput(
            str(piece.file),
            f"the downloaded file has the SHA-256 checksum {actual}",
            expected=piece.sha256 or "",
            remedy="the publisher may have changed the file: if you trust it, correct data.sha256",
        )
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    _record(piece, actual, draft.stat().st_size)
    draft.replace(piece.file)


def _adopt(source: Source, piece: Piece) -> None:
    """Verify a file that the user has copied to the place of the download, and record its checksum and size."""
    verify_files(Source(source.benchmark, source.licence, (piece,)))
    if piece.read_record() is None:
        _record(piece, sha256_of(piece.file), piece.file.stat().st_size)


def _record(piece: Piece, sha256: str, size: int) -> None:
    pulled = Pulled(url=piece.url or "", sha256=sha256, size=size)
    with replacing(piece.record) as file:
        file.write(json.dumps(pulled.plain(), indent=2) + "\n")


@contextmanager
def _lock_draft(piece: Piece) -> Iterator[Path]:
    """Lock a download, and yield the path of its `.part` file. Raise RunConflict if another process is downloading it.

    The `.part` file of an interrupted download stays; the next download resumes from it.
    """
    try:
        piece.file.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(piece.file.with_name(f".{piece.file.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise BadInput(str(piece.file.parent), f"cannot write to this folder: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield piece.file.with_name(f".{piece.file.name}.part")
    except BlockingIOError:
        raise RunConflict(
            f"{piece.file}: another process is downloading this file; wait until it has finished"
        ) from None
    finally:
        os.close(lock)
