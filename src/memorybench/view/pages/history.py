"""A conversation of a run: its sessions with evidence, by date, and the questions that rest on each turn.

The journal has the turns that contain an answer, not whole conversations: a report must not need the dataset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from memorybench.suites.report_parts import gold_turns
from memorybench.view.index import Filter, Question
from memorybench.view.results import NotFound

from . import number, render, results_of

_PAGE = 200
"""Questions whose evidence is read for one page."""


def page(request: Request) -> Response:
    place, run_id = request.path_params["place"], request.path_params["run"]
    results, first = results_of(request), number(request, "offset")
    with results.open(place, run_id) as stored:
        ((reader, run),) = stored.parts
        own = results.questions(place, stored)
        clusters = results.index.values(own, "cluster")
        cluster = request.query_params.get("cluster", "") or next(iter(clusters), "")
        if cluster not in clusters:
            raise NotFound(f"history {cluster} not found in run {run_id}" if cluster else "this run has no histories")
        filter = Filter(cluster=cluster)
        asked = results.index.page(own, filter, first, _PAGE)
        cases = [(one, reader.case(run.id, one.benchmark, one.case_id) or {}) for one in asked]
        return render(
            request,
            "history.html",
            here="runs",
            place=place,
            run=run,
            clusters=clusters,
            cluster=cluster,
            sessions=sessions_of(cases),
            questions=asked,
            total=results.index.count(own, filter),
            first=first,
            size=_PAGE,
            wanted=request.query_params.get("case", ""),
        )


def sessions_of(cases: list[tuple[Question, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return sessions by date, each with its recorded turns, each turn with the questions that rest on it."""
    sessions: dict[str, dict[str, dict[str, Any]]] = {}
    for question, case in cases:
        for turn in gold_turns(case) or ():
            id = str(turn.get("id") or turn.get("content", "")[:40])
            session = str(turn.get("session") or id.rpartition(":")[0] or "session")
            known = sessions.setdefault(session, {}).setdefault(id, {**turn, "id": id, "questions": []})
            known["questions"].append(question)
    found = [
        {"id": session, "at": min(str(turn.get("at") or "") for turn in turns.values()), "turns": _ordered(turns)}
        for session, turns in sessions.items()
    ]
    return sorted(found, key=lambda session: (session["at"], session["id"]))


def _ordered(turns: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    def place(turn: Mapping[str, Any]) -> tuple[int, str]:
        last = str(turn["id"]).rpartition(":")[2]
        return (int(last) if last.isdecimal() and len(last) < 10 else 0), str(turn["id"])

    return sorted(turns.values(), key=place)
