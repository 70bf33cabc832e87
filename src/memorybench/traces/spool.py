"""Fetches traces once, into a file of the run: they need not fit into RAM, and a resumed run reads the same traces."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

from msgspec import Struct

from memorybench.core.errors import BadInput, JournalError
from memorybench.core.extraction import Trace, TraceSource, UnusableTrace

T = TypeVar("T")
_UNUSABLE = b'{"problem":'
_BUFFER = 2**16


class RecordFile(Struct, Generic[T], frozen=True):
    """The records in a file, one per line. Each iteration reads the file again."""

    path: Path
    parse: Callable[[bytes], T]
    size: int

    @classmethod
    def open(cls, path: Path, parse: Callable[[bytes], T]) -> RecordFile[T]:
        with path.open("rb") as file:
            return cls(path, parse, sum(1 for _ in file))

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[T]:
        with self.path.open("rb") as file:
            yield from map(self.parse, file)


def parse_trace(line: bytes) -> Trace:
    record = UnusableTrace if line.startswith(_UNUSABLE) else Trace
    return record.model_validate_json(line)


async def spool(source: TraceSource, path: Path, redact: Callable[[str], str] = str) -> RecordFile[Trace]:
    """Return the traces in the file `path`. If it does not exist, first fetch all traces of `source` into it.

    After an interruption, all traces are fetched again, because the cursors of services expire within a day. Raise
    BadInput if the source has no trace, or if the value at one of the user's paths is missing in every trace.
    """
    if path.exists():  # noqa: ASYNC240  one call, before anything else runs
        return RecordFile.open(path, parse_trace)
    ids: set[str] = set()
    unusable: list[UnusableTrace] = []
    with private_draft(path, "traces") as file:
        async for trace in source.traces():
            if trace.id in ids:
                continue  # runs move to later pages when new runs are added
            ids.add(trace.id)
            if isinstance(trace, UnusableTrace):
                unusable.append(trace)
                fields = trace.plain()
                row = json.dumps({"problem": fields.pop("problem"), **fields}, separators=(",", ":"))
            else:
                row = trace.model_dump_json()
            file.write(f"{redact(row)}\n".encode())
        _check_usable(source.subject.name, len(ids), unusable)
    return RecordFile(path, parse_trace, len(ids))


def _check_usable(source: str, size: int, unusable: Sequence[UnusableTrace]) -> None:
    if not size:
        raise BadInput(source, "the source has no matching traces", remedy="check the project, the tag and --since")
    for option, count in Counter(trace.missing for trace in unusable).items():
        if option and count == size:
            problem = f"{unusable[0].problem}; all {size} traces have this problem"
            raise BadInput(source, problem, remedy=f"set {option}")


@contextmanager
def private_draft(path: Path, content: str) -> Iterator[BinaryIO]:
    """Create a file that gets the name `path` only when the context ends, so that a file of this name is complete.

    Raise JournalError if the file cannot be written. `content` says in the error what the file contains.
    """
    unfinished = path.with_name(f"{path.name}.part")
    try:
        with create_private(unfinished) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except OSError as error:
        raise JournalError(
            f"{path}: cannot write the {content}: {error.strerror or error}; free some disk space"
        ) from None
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def create_private(path: Path) -> BinaryIO:
    """Create a file that only its owner can read, because conversations are private."""
    return open(path, "wb", _BUFFER, opener=lambda name, flags: os.open(name, flags, 0o600))
