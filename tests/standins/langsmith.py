"""LangSmith's API as its client 0.14 speaks it: projects, both run queries, feedback.

    with running(LangSmithServer()) as server:
        server.add(inputs={"conversation": "…"}, outputs={"output": {}})
        server.newer = False                      # an installation without the newer query
        server.stub.next(status(429, headers={"Retry-After": "7"}))
        ...                                       # ask server.url with the key KEY
        assert len(server.feedback) == 3 and not server.repeated

Reads the filter language as far as `and`, `has`, `eq` and `neq` go, and refuses the rest.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from aiohttp import web

from tests.doubles.stub import Call

from .base import KEY, Handler, Refused, StandIn, body, checked, query, route

PROJECT = "support"
TAG = "memory_extraction"
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
BEGAN = NOW - timedelta(days=90)
RUN = ("id", "name", "run_type", "status", "start_time", "end_time", "error", "extra", "inputs", "outputs", "tags")
PLACES = ("trace_id", "dotted_order", "session_id", "parent_run_id", "parent_run_ids", "reference_example_id")
SPENT = ("completion_cost", "completion_tokens", "prompt_cost", "prompt_tokens", "total_cost", "total_tokens")
BESIDE = ("app_path", "events", "feedback_stats", "first_token_time", "s3_urls", "child_run_ids")
FIELDS = frozenset((*RUN, *PLACES, *SPENT, *BESIDE))
NEWER_FIELDS = frozenset(
    field.upper() for field in FIELDS - {"session_id", "parent_run_id", "s3_urls", "child_run_ids"}
) | {"PROJECT_ID"}
NEWER_QUERY = {
    "filter?": str,
    "min_start_time?": str,
    "max_start_time?": str,
    "page_size?": int,
    "project_ids": list,
    "selects?": list,
    "is_root?": bool,
    "cursor?": str,
}
OLDER_QUERY = {
    "session": list,
    "filter?": str,
    "start_time?": str,
    "select?": list,
    "limit?": int,
    "is_root?": bool,
    "cursor?": str,
}
FEEDBACK = {
    "id": str,
    "run_id": str,
    "session_id?": str,
    "trace_id?": str,
    "key": str,
    "score?": (int, float, bool),
    "value?": (dict, str, int, float),
    "comment?": str,
    "extra?": dict,
    "feedback_source": dict,
    "start_time?": str,
    "created_at?": str,
    "modified_at?": str,
    "extend_trace_retention?": bool,
}
SOURCES = {"api", "model", "app"}
_TERM = re.compile(r'(has|eq|neq)\((\w+), ("(?:[^"\\]|\\.)*")\)')

Wanted = Callable[[Mapping[str, Any]], bool]


class LangSmithServer(StandIn):
    def __init__(self) -> None:
        super().__init__()
        self.project = self.new_id()
        self.newer = True
        """Whether it has the newer query; else 404."""
        self.older = True
        """Whether it still has the older one; else 501."""
        self.latency = 0.0
        self.runs: list[dict[str, Any]] = []
        """The latest first."""
        self.feedback: dict[str, dict[str, Any]] = {}
        """By id, as it was posted last."""
        self.repeated: list[str] = []
        """Ids that were posted again."""

    def add(
        self,
        *,
        inputs: Any,
        outputs: Any = None,
        tags: Sequence[str] = (TAG,),
        status: str = "success",
        error: str | None = None,
        age: timedelta | None = None,
        **more: Any,
    ) -> str:
        """Add a run that began `age` ago, by default a minute before the previous one, and return its id."""
        id = self.new_id()
        began = (NOW - (age or timedelta(minutes=len(self.runs)))).isoformat()
        run = {"id": id, "trace_id": id, "name": "extract", "run_type": "chain", "status": status, "start_time": began}
        reply = {"inputs": inputs, "outputs": outputs, "tags": list(tags), "error": error, "dotted_order": id}
        self.runs.append({**run, **reply, "session_id": self.project, **more})
        self.runs.sort(key=lambda run: run["start_time"], reverse=True)
        return id

    async def answer(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        if self.latency:
            await asyncio.sleep(self.latency)
        return await super().answer(request, call)

    def _handler(self, method: str, path: str) -> tuple[Handler, Sequence[str]]:
        return super()._handler(method, path.removeprefix("/api/v1"))

    def _check_key(self, call: Call) -> None:
        if call.headers.get("x-api-key") != KEY:
            raise Refused(401, "x-api-key is missing or wrong")

    @route("GET", "/info")
    def info(self, call: Call) -> Any:
        return {
            "version": "0.16.20",
            "instance_flags": {"sdb_query_enabled": self.newer, "ch_query_enabled": self.older},
        }

    @route("GET", "/sessions")
    def sessions(self, call: Call) -> Any:
        parameters = query(call, {"limit": str, "name": str, "include_stats?": str})
        if parameters["name"] != PROJECT:
            return []
        known = {"id": self.project, "name": PROJECT, "start_time": BEGAN.isoformat(), "tenant_id": str(UUID(int=7))}
        return [{**known, "reference_dataset_id": None}]

    @route("POST", "/api/v2/runs/query")
    def query_runs(self, call: Call) -> Any:
        if not self.newer:
            raise Refused(404, "no such path")
        parameters = body(call, NEWER_QUERY)
        self._check_projects(parameters["project_ids"])
        fields = _fields(parameters.get("selects") or ["ID"], NEWER_FIELDS)
        size = _within(parameters.get("page_size", 100), 1000, "page_size")
        since = parameters.get("min_start_time") or (NOW - timedelta(days=1)).isoformat()
        runs, following = self._page(parameters, _instant(since), size)
        items = [_newer(run, fields) for run in runs]
        return {"items": items, **({"next_cursor": following} if following else {})}

    @route("POST", "/runs/query")
    def list_runs(self, call: Call) -> Any:
        if not self.older:
            raise Refused(501, "run queries have moved")
        parameters = body(call, OLDER_QUERY)
        self._check_projects(parameters["session"])
        fields = _fields(parameters.get("select") or sorted(FIELDS), FIELDS)
        size = _within(parameters.get("limit", 100), 100, "limit")
        runs, following = self._page(parameters, _instant(parameters.get("start_time") or BEGAN.isoformat()), size)
        return {
            "runs": [{field: run[field] for field in fields if field in run} for run in runs],
            "cursors": {"next": following},
        }

    @route("POST", "/feedback")
    def create_feedback(self, call: Call) -> Any:
        given = body(call, FEEDBACK)
        source = checked(given["feedback_source"], {"type": SOURCES, "metadata?": dict}, "feedback_source")
        for name in ("id", "run_id", "session_id"):
            _check_uuid(given.get(name, self.project), name)
        if all(run["id"] != given["run_id"] for run in self.runs):
            raise Refused(404, f"no run {given['run_id']}")
        if given.get("session_id", self.project) != self.project:
            raise Refused(422, "session_id: the run is of another project")
        known = self.feedback.get(given["id"])
        if known is not None:
            if (known["run_id"], known["key"]) != (given["run_id"], given["key"]):
                raise Refused(409, "the id belongs to other feedback")
            self.repeated.append(given["id"])
        self.feedback[given["id"]] = given
        return {**given, "feedback_source": source}

    def _page(
        self, parameters: Mapping[str, Any], since: datetime, size: int
    ) -> tuple[list[dict[str, Any]], str | None]:
        matches = _filter(parameters.get("filter", ""))
        runs = [run for run in self.runs if _instant(run["start_time"]) >= since and matches(run)]
        start = _place(parameters["cursor"]) if "cursor" in parameters else 0
        rest = start + size < len(runs)
        return runs[start : start + size], _cursor(start + size) if rest else None

    def _check_projects(self, ids: Sequence[Any]) -> None:
        if list(ids) != [self.project]:
            raise Refused(404, f"no project {ids}")


def _newer(run: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    reply = {"PROJECT_ID": run["session_id"], "RUN_TYPE": run["run_type"].upper(), "STATUS": run["status"].upper()}
    return {field.lower(): reply.get(field, run.get(field.lower())) for field in fields}


def _fields(parameters: Sequence[Any], known: frozenset[str]) -> Sequence[str]:
    for field in parameters:
        if field not in known:
            raise Refused(422, f"there is no field {field!r} to select")
    return parameters


def _within(given: int, most: int, name: str) -> int:
    if not 1 <= given <= most:
        raise Refused(422, f"{name}: {given} is not between 1 and {most}")
    return given


def _instant(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(422, f"{text!r} is no date") from None
    if at.tzinfo is None:
        raise Refused(422, f"{text!r} has no time zone")
    return at


def _check_uuid(text: str, name: str) -> None:
    try:
        UUID(text)
    except ValueError:
        raise Refused(422, f"{name}: {text!r} is no UUID") from None


def _filter(text: str) -> Wanted:
    if not text:
        return lambda run: True
    inner = re.fullmatch(r"and\((.*)\)", text)
    terms = re.split(r", (?=(?:has|eq|neq)\()", inner[1]) if inner else [text]
    conditions = [_condition(term) for term in terms]
    return lambda run: all(condition(run) for condition in conditions)


def _condition(term: str) -> Wanted:
    parsed = _TERM.fullmatch(term)
    if parsed is None:
        raise Refused(400, f"invalid filter at {term!r}")
    verb, field, value = parsed[1], parsed[2], json.loads(parsed[3])
    match verb:
        case "has":
            return lambda run: value in (run[field] or ())
        case "eq":
            return lambda run: run[field] == value
        case _:
            return lambda run: run[field] != value


def _cursor(place: int) -> str:
    return base64.urlsafe_b64encode(f"after {place}".encode()).decode()


def _place(cursor: str) -> int:
    try:
        return int(base64.urlsafe_b64decode(cursor).decode().removeprefix("after "))
    except ValueError:
        raise Refused(400, f"{cursor!r} is no cursor of ours") from None
