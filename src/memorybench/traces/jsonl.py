"""Traces from a JSONL file, one per line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from memorybench.core.errors import BadInput
from memorybench.core.extraction import Trace
from memorybench.core.trials import Subject
from memorybench.files.rows import numbered_jsonl
from memorybench.text.sanitize import preview

from .paths import TracePaths


class JsonlTraces:
    """Reads traces from a file. An invalid line raises BadInput with its number, so that the user can correct it."""

    def __init__(self, path: Path, paths: TracePaths, *, limit: int | None = None) -> None:
        self.subject = Subject(role="traces", name=path.name, settings={"source": "jsonl", "paths": paths.texts})
        self._path = path
        self._paths = paths
        self._limit = limit

    async def traces(self) -> AsyncIterator[Trace]:
        ids: set[str] = set()
        for number, line in numbered_jsonl(self._path):
            if len(ids) == self._limit:
                return
            where = f"{self._path}:{number}"
            if not isinstance(line, dict):
                raise BadInput(where, f"invalid trace {preview(line)}", expected="an object")
            trace = self._paths.trace(line, where)
            if trace.id in ids:
                raise BadInput(
                    where,
                    f"another trace already has the id {preview(trace.id)}",
                    remedy="give each trace a different id",
                )
            ids.add(trace.id)
            yield trace
