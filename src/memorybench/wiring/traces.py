"""Fetches traces and memory operations from a LangSmith project or from files of several formats."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.core.extraction import FeedbackSink, Trace, TraceSource
from memorybench.core.plans import Limits
from memorybench.core.trials import Subject
from memorybench.engine.limiter import RateLimiter
from memorybench.engine.retries import RetryState, with_retries
from memorybench.engine.stopping import Stop
from memorybench.http.client import open_http
from memorybench.http.replies import Reply
from memorybench.traces.exported_spans import LANGFUSE, LANGSMITH, SpanNames
from memorybench.traces.jsonl import JsonlTraces
from memorybench.traces.langfuse import API_URL as LANGFUSE_URL
from memorybench.traces.langfuse import LangfuseScores
from memorybench.traces.langsmith import API_URL, TAG, Ask, LangSmith, RunQuery
from memorybench.traces.operations import OperationFiles, Selection, collect, is_collected
from memorybench.traces.otlp import OtlpTraces
from memorybench.traces.paths import OF_FILES, OF_RUNS, TracePaths
from memorybench.traces.spool import RecordFile, create_private, spool

from .environment import first_variable, redactor

if TYPE_CHECKING:
    from memorybench.suites.extraction.spec import OnlineSpec as ExtractionOnlineSpec
    from memorybench.suites.online.spec import OnlineSpec

KEY_VARIABLES = ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")
URL_VARIABLES = ("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT")
LANGFUSE_KEYS = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
LANGFUSE_URLS = ("LANGFUSE_BASE_URL", "LANGFUSE_HOST")
_UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


class FileTraces(Struct, frozen=True):
    """The traces in a file of the user."""

    source: TraceSource
    origin: str = "jsonl"

    async def fetch(self, path: Path) -> tuple[Subject, RecordFile[Trace]]:
        """Copy the traces into a file of the run, unless it exists. Costs nothing."""
        return self.source.subject, await spool(self.source, path, redactor().clean)

    async def open_feedback(self, stack: AsyncExitStack) -> FeedbackSink | None:
        """Open the service that scores are sent to; None if the source accepts no scores."""
        return await open_langfuse(stack) if self.origin == LANGFUSE else None


class LangSmithTraces(Struct, frozen=True):
    """The traces of a LangSmith project."""

    query: RunQuery
    paths: TracePaths
    key: str

    async def fetch(self, path: Path) -> tuple[Subject, RecordFile[Trace]]:
        async with self.open() as source:
            return source.subject, await spool(source, path, redactor().clean)

    async def open_feedback(self, stack: AsyncExitStack) -> FeedbackSink | None:
        return await stack.enter_async_context(self.open())

    @asynccontextmanager
    async def open(self) -> AsyncIterator[LangSmith]:
        async with open_http(redactor()) as http:
            url = first_variable(*URL_VARIABLES) or API_URL
            yield LangSmith(http, self.key, self.query, self.paths, url=url, attempt=_with_retries)


class FileOperations(Struct, frozen=True):
    """The memory searches and writes that are recorded in files of spans."""

    path: Path
    source: str
    selection: Selection

    @property
    def since(self) -> str | None:
        """The date and time from which operations are read; None: from the first."""
        return self.selection.since.isoformat() if self.selection.since is not None else None

    async def fetch(self, folder: Path) -> OperationFiles:
        """Collect the operations into files in this folder, unless they exist. Costs nothing."""
        subject = Subject(role="traces", name=self.path.name or str(self.path), settings={"source": self.source})
        return collect(self.path, folder, subject, self.selection, source=self.source, redact=redactor().clean)

    async def open_feedback(self, stack: AsyncExitStack) -> FeedbackSink | None:
        return await open_langfuse(stack) if self.source == LANGFUSE else None


class LangSmithOperations(Struct, frozen=True):
    """The memory searches and writes that are recorded in the runs of a LangSmith project."""

    traces: LangSmithTraces
    selection: Selection

    @property
    def since(self) -> str | None:
        return self.selection.since.isoformat() if self.selection.since is not None else None

    async def fetch(self, folder: Path) -> OperationFiles:
        subject = Subject(role="traces", name=self.traces.query.project, settings={"source": LANGSMITH})
        runs = folder / "runs.jsonl.part"
        try:
            if not is_collected(folder):
                async with self.traces.open() as service:
                    await _store_runs(service, runs)
            return collect(runs, folder, subject, self.selection, source=LANGSMITH, redact=redactor().clean)
        finally:
            runs.unlink(missing_ok=True)

    async def open_feedback(self, stack: AsyncExitStack) -> FeedbackSink | None:
        return await self.traces.open_feedback(stack)


async def _store_runs(service: LangSmith, path: Path) -> None:
    size = 0
    with create_private(path) as file:
        async for run in service.runs():
            size += file.write(f"{json.dumps(run)}\n".encode())
    if not size:
        raise BadInput(
            "--project", "the project has no matching runs", remedy="check the name of the project and --since"
        )


async def open_langfuse(stack: AsyncExitStack) -> FeedbackSink:
    """Open a client that sends scores to Langfuse. Raise BadInput if a key is not set."""
    public, secret = langfuse_keys()
    http = await stack.enter_async_context(open_http(redactor()))
    url = first_variable(*LANGFUSE_URLS) or LANGFUSE_URL
    return LangfuseScores(http, public, secret, url=url)


def langfuse_keys() -> tuple[str, str]:
    """Return the keys of Langfuse from the environment; raise BadInput if one is not set."""
    keys = [first_variable(name) for name in LANGFUSE_KEYS]
    for name, key in zip(LANGFUSE_KEYS, keys, strict=True):
        if key is None:
            raise BadInput(name, "this environment variable is not set", remedy="set it, or leave out --feedback")
    return str(keys[0]), str(keys[1])


def resolve_operations(query: OnlineSpec) -> FileOperations | LangSmithOperations:
    names = SpanNames(frozenset(query.search_names), frozenset(query.write_names))
    since = parse_time(query.since) if query.since else None
    selection = Selection(tuple(query.kinds), since, query.limit, names)
    if query.source == LANGSMITH and query.file is None:
        runs = RunQuery(_project(query.project), tag=None, since=since)
        return LangSmithOperations(LangSmithTraces(runs, TracePaths.of(OF_RUNS), _langsmith_key()), selection)
    if query.file is None:
        raise BadInput(
            "FILE",
            "missing",
            expected="a file or folder of spans",
            remedy="name a file, or use --source langsmith --project NAME",
        )
    _check_no_project(query.project)
    if query.feedback and query.source == LANGFUSE:
        langfuse_keys()
    return FileOperations(Path(query.file), query.source, selection)


def resolve_traces(query: ExtractionOnlineSpec) -> FileTraces | LangSmithTraces:
    since = parse_time(query.since) if query.since else None
    if query.source == LANGSMITH:
        runs = RunQuery(_project(query.project), tag=query.tag or TAG, since=since, limit=query.limit)
        return LangSmithTraces(runs, TracePaths.of(OF_RUNS, query.paths), _langsmith_key())
    if query.file is None:
        raise BadInput("--source", "no file is named", expected=f"--source {query.source} FILE")
    _check_no_project(query.project)
    file, paths = Path(query.file), TracePaths.of(OF_FILES, query.paths)
    if query.source == "jsonl":
        return FileTraces(JsonlTraces(file, paths, since=since, limit=query.limit))
    names = SpanNames(writes=frozenset(query.write_names))
    spans = OtlpTraces(file, paths, source=query.source, names=names, since=since, limit=query.limit)
    return FileTraces(spans, query.source)


def _check_no_project(name: str | None) -> None:
    if name is not None:
        raise BadInput(
            "--project",
            "not supported with FILE",
            expected="FILE, or --source langsmith --project NAME",
            remedy="leave out one of them",
        )


def _project(name: str | None) -> str:
    if name is None:
        raise BadInput("--project", "missing", expected="the name of a LangSmith project")
    return name


def _langsmith_key() -> str:
    key = first_variable(*KEY_VARIABLES)
    if key is None:
        raise BadInput(
            KEY_VARIABLES[0], "this environment variable is not set", remedy="set it, or use --source jsonl FILE"
        )
    return key


def parse_duration(text: str) -> timedelta | None:
    """Parse a duration such as `45s`, `30m`, `24h`, `7d` or `2w`; return None for other texts.

    Raise OverflowError if it is too long.
    """
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not (number.isascii() and number.isdecimal()):
        return None
    return int(number) * _UNITS[unit]


def parse_time(since: str) -> datetime:
    """Return the time that a duration before now (such as `24h`) or a date means; UTC unless it names a time zone."""
    try:
        if (duration := parse_duration(since)) is not None:
            return datetime.now(UTC) - duration
        at = datetime.fromisoformat(since)
    except (ValueError, OverflowError):  # OverflowError: before the year 1
        raise BadInput("--since", f"invalid time {since!r}", expected="a time such as 24h, 7d or 2026-01-31") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


async def _with_retries(ask: Ask) -> Reply:
    """Send a request with the same retries as a step of a run."""
    return await with_retries(ask, RateLimiter("LangSmith", Limits(), Stop()), RetryState())
