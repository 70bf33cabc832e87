"""From the name of a trace source to traces in a file: a LangSmith project, JSONL, or OTLP JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memorybench.core.errors import BadInput
from memorybench.core.extraction import FeedbackSink, TraceSource
from memorybench.core.plans import Limits
from memorybench.core.trials import Subject
from memorybench.engine.limiter import RateLimiter
from memorybench.engine.retries import RetryState, with_retries
from memorybench.engine.stopping import Stop
from memorybench.http.client import open_http
from memorybench.http.replies import Reply
from memorybench.traces.jsonl import JsonlTraces
from memorybench.traces.langsmith import API_URL, TAG, Ask, LangSmith, RunQuery
from memorybench.traces.otlp import OtlpTraces
from memorybench.traces.paths import OF_FILES, OF_RUNS, TracePaths
from memorybench.traces.spool import Spool, spool

from .environment import first_variable, redactor

KEY_VARIABLES = ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")
URL_VARIABLES = ("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT")
_UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


@dataclass(frozen=True, slots=True)
class FileTraces:
    source: TraceSource

    async def fetch(self, path: Path) -> tuple[Subject, Spool]:
        return self.source.subject, await spool(self.source, path, redactor().clean)

    async def open_feedback(self, stack: AsyncExitStack) -> FeedbackSink | None:
        return None


@dataclass(frozen=True, slots=True)
class LangSmithTraces:
    query: RunQuery
    paths: TracePaths
    key: str

    async def fetch(self, path: Path) -> tuple[Subject, Spool]:
        async with self._open() as source:
            return source.subject, await spool(source, path, redactor().clean)

    async def open_feedback(self, stack: AsyncExitStack) -> FeedbackSink | None:
        return await stack.enter_async_context(self._open())

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[LangSmith]:
        async with open_http(redactor()) as http:
            url = first_variable(*URL_VARIABLES) or API_URL
            yield LangSmith(http, self.key, self.query, self.paths, url=url, attempt=_with_retries)


def resolve_traces(
    source: str,
    *,
    file: str | None,
    project: str | None,
    tag: str | None,
    since: str | None,
    limit: int | None,
    paths: Mapping[str, str],
) -> FileTraces | LangSmithTraces:
    since_time = parse_time(since) if since else None
    if source in ("jsonl", "otlp"):
        if file is None:
            raise BadInput("--source", "the file is missing", expected=f"--source {source} FILE")
        trace_paths = TracePaths.of(OF_FILES, paths)
        if source == "otlp":
            return FileTraces(OtlpTraces(Path(file), trace_paths, since=since_time, limit=limit))
        return FileTraces(JsonlTraces(Path(file), trace_paths, limit=limit))
    if project is None:
        raise BadInput("--project", "missing", expected="the name of a LangSmith project")
    key = first_variable(*KEY_VARIABLES)
    if key is None:
        raise BadInput(KEY_VARIABLES[0], "not set", remedy="set it, or judge a file with --source jsonl FILE")
    query = RunQuery(project, tag=tag or TAG, since=since_time, limit=limit)
    return LangSmithTraces(query, TracePaths.of(OF_RUNS, paths), key)


def parse_duration(text: str) -> timedelta | None:
    """Parses `24h`, `30m`, `7d`, `2w` or `45s`; None for other texts. Raise OverflowError if it is too long."""
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not (number.isascii() and number.isdecimal()):
        return None
    return int(number) * _UNITS[unit]


def parse_time(since: str) -> datetime:
    """Parses a duration before now, such as `24h`, or a date."""
    try:
        if (duration := parse_duration(since)) is not None:
            return datetime.now(UTC) - duration
        at = datetime.fromisoformat(since)
    except (ValueError, OverflowError):  # OverflowError: before the year 1
        raise BadInput("--since", f"invalid time {since!r}", expected="24h, 7d or 2026-01-31") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


async def _with_retries(ask: Ask) -> Reply:
    """Pages are fetched before there is a run, with the retries that steps have."""
    return await with_retries(ask, RateLimiter("LangSmith", Limits(), Stop()), RetryState())
