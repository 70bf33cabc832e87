"""LangSmith: runs page by page, and feedback. A client of our own, for theirs weighs much and retries by itself.

Runs come from the newer query API; an installation that does not have it is asked by the older one, which the
service itself gives up after January 2027.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from memorybench.core.errors import BadInput, Malformed, ServiceError
from memorybench.core.extraction import Trace
from memorybench.core.trials import Subject
from memorybench.http.client import Http
from memorybench.http.replies import Reply
from memorybench.text.sanitize import preview

from .paths import TracePaths, Unfound

API_URL = "https://api.smith.langchain.com"
TAG = "memory_extraction"
PAGE = 100
"""Runs in a page: what the service gives unless asked for more, and the most that the older API gives."""
SHARES = ("precision", "recall", "f1")
"""What is posted as feedback of its own; whatever else is told goes with each as `extra`."""

_NOT_THERE = frozenset({404, 405, 501})
_CONFLICT = 409
_STATUS = re.compile(r"\S+ \S+: HTTP (\d{3})\b")
_ALWAYS = ("id", "start_time", "inputs", "outputs", "error")
_EPOCH = "1970-01-01T00:00:00+00:00"

Ask = Callable[[], Awaitable[Reply]]
Attempt = Callable[[Ask], Awaitable[Reply]]
"""Performs one request of a page, more than once where that is worth it. Feedback is a step, which has its own."""


@dataclass(frozen=True, slots=True)
class RunQuery:
    project: str
    tag: str = TAG
    since: datetime | None = None
    """None: since the project began. The service would otherwise tell of the last day only."""
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class _Project:
    id: str
    began: str


@dataclass(frozen=True, slots=True)
class _Page:
    runs: Sequence[Mapping[str, Any]]
    next: str | None


class LangSmith:
    """A source of traces, and a sink of feedback on them."""

    def __init__(
        self,
        http: Http,
        key: str,
        query: RunQuery,
        paths: TracePaths,
        *,
        url: str = API_URL,
        attempt: Attempt | None = None,
    ) -> None:
        settings = {"source": "langsmith", "tag": query.tag, "paths": paths.texts}
        self.subject = Subject(role="traces", name=query.project, settings=settings)
        self._http = http
        self._key = key
        self._query = query
        self._paths = paths
        self._url = url.rstrip("/")
        self._attempt = attempt or _at_once
        self._resolving = asyncio.Lock()
        self._resolved: _Project | None = None

    async def traces(self) -> AsyncIterator[Trace]:
        """As many as were asked for, in the order of the service: the latest first."""
        given = 0
        async for run in self._runs():
            yield self._trace(run)
            given += 1
            if given == self._query.limit:
                return

    async def post(self, trace: str, scores: Mapping[str, float], comment: str) -> None:
        """One feedback for each share; its id follows from run and name, so that a repeat puts it in its own place."""
        project = await self._project()
        counts = {name: value for name, value in scores.items() if name not in SHARES}
        for name in SHARES:
            if name in scores:
                await self._give(_feedback(trace, project.id, name, scores[name], counts, comment))

    async def _give(self, feedback: Mapping[str, Any]) -> None:
        try:
            await self._ask("POST", f"{self._url}/feedback", feedback)
        except ServiceError as error:
            if _status(error) != _CONFLICT:  # it is there already
                raise

    def _trace(self, run: Mapping[str, Any]) -> Trace:
        where = f"run {run['id']}"
        try:
            return self._paths.trace(run, where)
        except BadInput as error:
            # nobody can mend a run of last night: it counts as failed, and the others go on
            return Unfound(id=run["id"], conversation=(), problem=str(error))

    async def _runs(self) -> AsyncIterator[Mapping[str, Any]]:
        project = await self._project()
        ask, cursor = self._ask_newer, None
        seen: set[str] = set()
        while True:
            try:
                page = await ask(project, cursor)
            except ServiceError as error:
                if cursor is not None or ask == self._ask_older or _status(error) not in _NOT_THERE:
                    raise
                ask = self._ask_older
                continue
            for run in page.runs:
                yield run
            cursor = page.next
            if not cursor:  # a page may be empty and have others after it
                return
            if cursor in seen:
                raise Malformed(f"{self._url}: the pages go round in a circle")
            seen.add(cursor)

    async def _ask_newer(self, project: _Project, cursor: str | None) -> _Page:
        body = {
            "filter": self._filter,
            "min_start_time": self._since(project),
            "page_size": self._page_size,
            "project_ids": [project.id],
            "selects": [field.upper() for field in self._fields],
        }
        reply = await self._attempt(
            lambda: self._ask("POST", f"{_base(self._url)}/api/v2/runs/query", _turned(body, cursor))
        )
        told = _object(reply)
        return _Page(_listed(reply, told.get("items")), _cursor(reply, told.get("next_cursor")))

    async def _ask_older(self, project: _Project, cursor: str | None) -> _Page:
        body = {
            "session": [project.id],
            "filter": self._filter,
            "start_time": self._since(project),
            "select": self._fields,
            "limit": self._page_size,
        }
        reply = await self._attempt(lambda: self._ask("POST", f"{self._url}/runs/query", _turned(body, cursor)))
        told = _object(reply)
        cursors = told.get("cursors") or {}
        return _Page(_listed(reply, told.get("runs")), _cursor(reply, cursors.get("next")))

    async def _project(self) -> _Project:
        """Asked for once, by whoever comes first: on resume that may be fifty feedbacks at a time."""
        async with self._resolving:
            if self._resolved is None:
                self._resolved = await self._attempt_project()
            return self._resolved

    async def _attempt_project(self) -> _Project:
        name = self._query.project
        params = {"limit": "1", "name": name, "include_stats": "false"}
        reply = await self._attempt(lambda: self._ask("GET", f"{self._url}/sessions", params=params))
        match reply.json():
            case []:
                raise BadInput(
                    "--project", f"there is no project {preview(name)}", remedy="check its name, and the key"
                )
            case [{"id": str(id), **more}]:
                began = more.get("start_time")
                return _Project(id, began if isinstance(began, str) else _EPOCH)
            case _:
                raise reply.malformed("expected a list of one project")

    async def _ask(self, method: str, url: str, body: Any = None, params: Mapping[str, str] | None = None) -> Reply:
        return await self._http.request(method, url, headers={"x-api-key": self._key}, params=params, json=body)

    @property
    def _filter(self) -> str:
        """Runs with the tag that have ended: one that still goes on has no output yet."""
        return f'and(has(tags, {json.dumps(self._query.tag)}), neq(status, "pending"))'

    @property
    def _fields(self) -> list[str]:
        return list(dict.fromkeys((*_ALWAYS, *self._paths.roots)))

    @property
    def _page_size(self) -> int:
        return min(PAGE, self._query.limit or PAGE)

    def _since(self, project: _Project) -> str:
        return self._query.since.isoformat() if self._query.since else project.began


def _feedback(
    run: str, project: str, name: str, value: float, counts: Mapping[str, float], comment: str
) -> dict[str, Any]:
    try:
        place = UUID(run)
    except ValueError:
        raise ServiceError(f"run {preview(run)}: its id is no UUID, so it can not be given feedback") from None
    return {
        "id": str(uuid5(place, f"memorybench/{name}")),
        "run_id": run,
        "session_id": project,
        "key": name,
        "score": value,
        "comment": comment,
        "extra": dict(counts),
        "feedback_source": {"type": "model", "metadata": {"program": "memorybench"}},
        "extend_trace_retention": False,  # to look at a trace must not make it dearer to keep
    }


async def _at_once(ask: Ask) -> Reply:
    return await ask()


def _base(url: str) -> str:
    """The newer API is reached from the host, wherever the older one begins."""
    return url.removesuffix("/api/v1").removesuffix("/api")


def _turned(body: Mapping[str, Any], cursor: str | None) -> dict[str, Any]:
    return {**body, "cursor": cursor} if cursor else dict(body)


def _object(reply: Reply) -> Mapping[str, Any]:
    told = reply.json()
    if not isinstance(told, dict):
        raise reply.malformed("expected an object")
    return told


def _listed(reply: Reply, runs: Any) -> Sequence[Mapping[str, Any]]:
    if not isinstance(runs, list):
        raise reply.malformed("expected a list of runs")
    if not all(isinstance(run, dict) and isinstance(run.get("id"), str) for run in runs):
        raise reply.malformed("a run has no id")
    return runs


def _cursor(reply: Reply, cursor: Any) -> str | None:
    if cursor is not None and not isinstance(cursor, str):
        raise reply.malformed("the cursor is no text")
    return cursor


def _status(error: ServiceError) -> int | None:
    """The HTTP status that an error speaks of; the wire tells it in words only."""
    told = _STATUS.match(str(error))
    return int(told[1]) if told else None
