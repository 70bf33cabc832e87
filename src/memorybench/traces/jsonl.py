"""Reads traces from a JSONL file, which has one trace per line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.core.extraction import Trace
from memorybench.core.trials import Subject
from memorybench.files.rows import numbered_jsonl
from memorybench.text.sanitize import preview

from .paths import TracePaths, instant


class JsonlTraces:
    """Reads traces from a JSONL file. For an invalid line, it raises BadInput with the line number."""

    def __init__(
        self, path: Path, paths: TracePaths, *, since: datetime | None = None, limit: int | None = None
    ) -> None:
        self.subject = Subject(role="traces", name=path.name, settings={"source": "jsonl", "paths": paths.texts})
        self._path = path
        self._paths = paths
        self._since = since
        self._limit = limit

    async def traces(self) -> AsyncIterator[Trace]:
        ids: set[str] = set()
        for number, line in numbered_jsonl(self._path):
            if len(ids) == self._limit:
                return
            where = f"{self._path}:{number}"
            if not isinstance(line, dict):
                raise BadInput(where, f"invalid trace {preview(line)}", expected="an object")
            if self._since is not None and _start(line, where) < self._since:
                continue
            trace = self._paths.trace(line, where)
            if trace.id in ids:
                raise BadInput(
                    where,
                    f"another trace already has the id {preview(trace.id)}",
                    remedy="give each trace a different id",
                )
            ids.add(trace.id)
            yield trace


def _start(line: Mapping[str, Any], where: str) -> datetime:
    """Return the start time of a trace, in UTC if it has no time zone. Raise BadInput if it is missing."""
    at = instant(line.get("start_time"), where)
    if at is None:
        raise BadInput(where, '"start_time" is missing, but --since needs it', remedy="add it, or leave out --since")
    return at if at.tzinfo else at.replace(tzinfo=UTC)
