"""All runs: searched, filtered and sorted; those that are running show their progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from memorybench.view.results import RunRow, with_query

from . import number, render, results_of

_PAGE = 100
SORTS: Mapping[str, Callable[[RunRow], Any]] = {
    "started": lambda row: (row.run.created, row.run.id),
    "run": lambda row: row.run.id.lower(),
    "benchmark": lambda row: (row.run.suite, row.benchmarks),
    "headline": lambda row: max((one.measure.value or 0.0 for one in row.headlines), default=-1.0),
    "n": lambda row: max((one.measure.n for one in row.headlines), default=-1),
    "status": lambda row: row.run.status,
}


def page(request: Request) -> Response:
    folders = results_of(request).list_runs()
    every = [row for folder in folders for row in folder.rows]
    wanted = {name: request.query_params.get(name, "") for name in ("q", "suite", "status", "tag", "sort", "order")}
    rows = [row for row in every if _matches(row, wanted)]
    sort = wanted["sort"] if wanted["sort"] in SORTS else "started"
    descending = (wanted["order"] or ("desc" if sort in ("started", "headline", "n") else "asc")) == "desc"
    rows.sort(key=SORTS[sort], reverse=descending)
    first = number(request, "offset")

    def address(**changes: str | int) -> str:
        return with_query("/", **{**wanted, **changes})

    return render(
        request,
        "runs.html",
        here="runs",
        folders=folders,
        rows=rows[first : first + _PAGE],
        total=len(rows),
        every=len(every),
        first=first,
        size=_PAGE,
        wanted=wanted,
        sort=sort,
        descending=descending,
        address=address,
        suites=sorted({row.run.suite for row in every}),
        statuses=sorted({row.run.status for row in every}),
        tags=sorted({tag for row in every for tag in row.tags}),
        is_live=any(row.run.status == "running" for row in every),
    )


def _matches(row: RunRow, wanted: Mapping[str, str]) -> bool:
    text = " ".join((row.run.id, row.run.suite, *row.benchmarks, *row.subjects, *row.tags)).lower()
    return (
        all(word in text for word in wanted["q"].lower().split())
        and wanted["suite"] in ("", row.run.suite)
        and wanted["status"] in ("", row.run.status)
        and (not wanted["tag"] or wanted["tag"] in row.tags)
    )
