"""Opens the LangSmith client on a local stand-in server, and reads its traces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from memorybench.core.extraction import Trace, TraceSource
from memorybench.http.client import open_http
from memorybench.secrets.redaction import Redactor
from memorybench.traces.langsmith import LangSmith, RunQuery
from memorybench.traces.paths import OF_RUNS, TracePaths
from tests.standins.base import KEY
from tests.standins.langsmith import PROJECT, LangSmithServer

RUN_PATHS = TracePaths.of(OF_RUNS)


@asynccontextmanager
async def open_langsmith(
    server: LangSmithServer, *, paths: TracePaths = RUN_PATHS, path: str = "", **query: Any
) -> AsyncIterator[LangSmith]:
    async with open_http(Redactor([KEY])) as http:
        run_query = RunQuery(**{"project": PROJECT, **query})
        yield LangSmith(http, KEY, run_query, paths, attempt=lambda ask: ask(), url=f"{server.url}{path}")


async def read_all(source: TraceSource) -> list[Trace]:
    return [trace async for trace in source.traces()]
