"""Traces fetched once into a file beside the run: memory stays flat, and a resumed run judges what it began with."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from memorybench.core.errors import BadInput, JournalError
from memorybench.core.extraction import Trace, TraceSource

from .paths import Unfound

_UNFOUND = b'{"problem":'
_BUFFER = 2**16  # some dozens of traces a write


@dataclass(frozen=True, slots=True)
class Spool:
    """Traces on disk, read anew each time they are asked for."""

    path: Path
    size: int
    problems: Mapping[str, str]
    """By trace id: why it can not be judged."""

    @classmethod
    def open(cls, path: Path) -> Spool:
        size, problems = 0, {}
        with path.open("rb") as file:
            for line in file:
                size += 1
                if line.startswith(_UNFOUND):
                    row = json.loads(line)
                    problems[row["id"]] = row["problem"]
        return cls(path, size, problems)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Trace]:
        with self.path.open("rb") as file:
            for line in file:
                yield (
                    Unfound.model_validate_json(line) if line.startswith(_UNFOUND) else Trace.model_validate_json(line)
                )


async def spool(source: TraceSource, path: Path) -> Spool:
    """The traces of `source`, in the file `path`: fetched where it is not there yet.

    The file appears whole or not at all; half of one is fetched anew, for a cursor does not outlive its day. Refused
    where there is no trace, or where a path finds nothing in any of them. A run that comes twice, because others were
    added while the pages were turned, is kept once.
    """
    if _finished(path):
        return Spool.open(path)
    unfinished = path.with_name(f"{path.name}.part")
    try:
        size, unfound = await _write(source.traces(), unfinished)
        _check(source.subject.name, size, unfound)
        os.replace(unfinished, path)
    except OSError as error:
        raise JournalError(f"{path}: the traces can not be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return Spool(path, size, {trace.id: trace.problem for trace in unfound})


async def _write(traces: AsyncIterator[Trace], path: Path) -> tuple[int, Sequence[Unfound]]:
    """How many there were, and those that can not be judged."""
    ids: set[str] = set()
    unfound: list[Unfound] = []
    with _private(path) as file:
        async for trace in traces:
            if trace.id in ids:
                continue
            ids.add(trace.id)
            if isinstance(trace, Unfound):
                unfound.append(trace)
            file.write(_row(trace) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    return len(ids), unfound


def _finished(path: Path) -> bool:
    return path.exists()


def _private(path: Path) -> BinaryIO:
    """A new file for its owner alone: what was said to an assistant is nobody else's business."""
    return open(path, "wb", _BUFFER, opener=lambda name, flags: os.open(name, flags, 0o600))


def _row(trace: Trace) -> bytes:
    if isinstance(trace, Unfound):
        fields = trace.plain()
        return json.dumps({"problem": fields.pop("problem"), **fields}, separators=(",", ":")).encode()
    return trace.model_dump_json().encode()


def _check(source: str, size: int, unfound: Sequence[Unfound]) -> None:
    if not size:
        raise BadInput(source, "has no such traces", remedy="look at the project, the tag and --since")
    for option, count in Counter(trace.missing for trace in unfound).items():
        if option and count == size:
            raise BadInput(source, f"{unfound[0].problem}, and so in all {size} traces", remedy=f"set {option}")
