"""Reads runs from LangSmith, and posts feedback. LangSmith's own client is large and has its own retries, so it is not
used.

Runs are read with the newer of two query APIs, or with the older one if an installation does not have the newer. The
hosted service ends the older API after January 2027.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from msgspec import Struct

from memorybench.core.errors import BadInput, Malformed, ServiceError
from memorybench.core.extraction import Trace, UnusableTrace
from memorybench.core.trials import Subject
from memorybench.http.client import Http
from memorybench.http.replies import Reply
from memorybench.text.sanitize import preview

from .paths import TracePaths

API_URL = "https://api.smith.langchain.com"
TAG = "memory_extraction"
PAGE = 100
"""Runs per page: the default of the service, and the maximum of the older API."""

_NOT_SUPPORTED = frozenset({404, 405, 501})
_CONFLICT = 409
_ALWAYS = ("id", "start_time", "inputs", "outputs", "error")
_OF_SPANS = ("trace_id", "name", "run_type", "extra")
_EPOCH = "1970-01-01T00:00:00+00:00"

Ask = Callable[[], Awaitable[Reply]]
Attempt = Callable[[Ask], Awaitable[Reply]]
"""A function that calls an `Ask`, which sends one request and returns the reply, and retries it after an error.
Feedback is sent without it, because the engine retries the steps that send feedback."""


class RunQuery(Struct, frozen=True):
    project: str
    tag: str | None = TAG
    """Only runs with this tag are read; None: all runs."""
    since: datetime | None = None
    """Only runs that started at this time or later are read; None: runs of any time."""
    limit: int | None = None


class _Project(Struct, frozen=True):
    id: str
    start: str


class LangSmith:
    """Reads traces from a project of LangSmith, and posts feedback about them."""

    def __init__(
        self,
        http: Http,
        key: str,
        query: RunQuery,
        paths: TracePaths,
        *,
        attempt: Attempt,
        url: str = API_URL,
    ) -> None:
        settings = {"source": "langsmith", "tag": query.tag, "paths": paths.texts}
        self.subject = Subject(role="traces", name=query.project, settings=settings)
        self._http = http
        self._key = key
        self._query = query
        self._paths = paths
        self._url = url.rstrip("/")
        self._attempt = attempt
        self._resolving = asyncio.Lock()
        self._resolved: _Project | None = None

    async def traces(self) -> AsyncIterator[Trace]:
        """Yield the traces in the order of the service, newest first."""
        count = 0
        async for run in self.runs():
            try:
                trace = self._paths.trace(run, f"run {run['id']}")
            except BadInput as error:
                # a finished run cannot be corrected, so it counts as failed, and the other runs are judged
                trace = UnusableTrace(id=run["id"], conversation=(), problem=str(error))
            yield trace
            count += 1
            if count == self._query.limit:
                return

    async def post(self, trace: str, name: str, value: float, counts: Mapping[str, float], comment: str) -> None:
        """Post one score as feedback, with `counts` as its `extra`.

        `trace` is the id of a run, or TRACE/RUN: the ids of a trace and of a run in it. The id of the feedback is
        derived from the run's id and `name`, so that posting the score again creates no second feedback.
        """
        project = await self._project()
        feedback = _feedback(trace.rpartition("/")[2], project.id, name, value, counts, comment)
        try:
            await self._send("POST", f"{self._url}/feedback", feedback)
        except ServiceError as error:
            if error.status != _CONFLICT:  # it exists already
                raise

    async def runs(self) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the runs in the order of the service, newest first."""
        project = await self._project()
        newer, cursor = True, None
        seen: set[str] = set()
        while True:
            try:
                runs, next_cursor = await self._fetch_page(project, cursor, newer=newer)
            except ServiceError as error:
                if cursor is not None or not newer or error.status not in _NOT_SUPPORTED:
                    raise
                newer = False
                continue
            for run in runs:
                yield run
            cursor = next_cursor
            if not cursor:  # only a missing cursor ends the pages: more pages may follow an empty one
                return
            if cursor in seen:
                raise Malformed(f"{self._url}: two pages have the same cursor, so that reading would never end")
            seen.add(cursor)

    async def _fetch_page(
        self, project: _Project, cursor: str | None, *, newer: bool
    ) -> tuple[Sequence[Mapping[str, Any]], str | None]:
        """Return the runs of one page, and the cursor of the next page (None on the last page).

        `newer` says whether the newer of the two APIs is used.
        """
        since = self._query.since.isoformat() if self._query.since else project.start
        fields = list(dict.fromkeys((*_ALWAYS, *self._paths.roots)))
        if self._query.tag is None:
            fields += [*_OF_SPANS, "parent_run_ids" if newer else "parent_run_id"]
        size = min(PAGE, self._query.limit or PAGE)
        tag = self._query.tag
        done = 'neq(status, "pending")'
        body: dict[str, Any] = {"filter": done if tag is None else f"and(has(tags, {json.dumps(tag)}), {done})"}
        if newer:
            # the newer API starts at the host, wherever the older one starts
            url = f"{self._url.removesuffix('/api/v1').removesuffix('/api')}/api/v2/runs/query"
            body |= {"project_ids": [project.id], "min_start_time": since, "page_size": size}
            body["selects"] = [field.upper() for field in fields]
        else:
            url = f"{self._url}/runs/query"
            body |= {"session": [project.id], "start_time": since, "limit": size, "select": fields}
        if cursor:
            body["cursor"] = cursor
        reply = await self._attempt(lambda: self._send("POST", url, body))
        page = reply.json()
        if not isinstance(page, dict):
            raise reply.malformed("the reply is not a JSON object")
        runs = page.get("items" if newer else "runs")
        if not isinstance(runs, list):
            raise reply.malformed("the reply has no list of runs")
        if not all(isinstance(run, dict) and isinstance(run.get("id"), str) for run in runs):
            raise reply.malformed("a run has no id")
        next_cursor = page.get("next_cursor") if newer else (page.get("cursors") or {}).get("next")
        if next_cursor is not None and not isinstance(next_cursor, str):
            raise reply.malformed("the cursor of the next page is not a text")
        return runs, next_cursor

    async def _project(self) -> _Project:
        """Return the project. It is looked up once, even if several tasks need it at the same time."""
        async with self._resolving:
            if self._resolved is None:
                self._resolved = await self._find_project()
            return self._resolved

    async def _find_project(self) -> _Project:
        name = self._query.project
        params = {"limit": "1", "name": name, "include_stats": "false"}
        reply = await self._attempt(lambda: self._send("GET", f"{self._url}/sessions", params=params))
        match reply.json():
            case []:
                raise BadInput(
                    "--project",
                    f"project {preview(name)} not found",
                    remedy="check its name, and that the API key may read it",
                )
            case [{"id": str(id), **more}]:
                start = more.get("start_time")
                return _Project(id, start if isinstance(start, str) else _EPOCH)
            case _:
                raise reply.malformed("the reply is not a list of one project")

    async def _send(self, method: str, url: str, body: Any = None, params: Mapping[str, str] | None = None) -> Reply:
        return await self._http.request(method, url, headers={"x-api-key": self._key}, params=params, json=body)


def _feedback(
    run: str, project: str, name: str, value: float, counts: Mapping[str, float], comment: str
) -> dict[str, Any]:
    try:
        namespace = UUID(run)
    except ValueError:
        raise ServiceError(
            f"no feedback can be sent for the LangSmith run {preview(run)}: its id is not a UUID"
        ) from None
    return {
        "id": str(uuid5(namespace, f"memorybench/{name}")),
        "run_id": run,
        "session_id": project,
        "key": name,
        "score": value,
        "comment": comment,
        "extra": dict(counts),
        "feedback_source": {"type": "model", "metadata": {"program": "memorybench"}},
        "extend_trace_retention": False,  # feedback must not make a trace more expensive to store
    }
