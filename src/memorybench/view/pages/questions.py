"""The questions of a run: filtered, searched and paged, one line per question with a mark per provider."""

from __future__ import annotations

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from memorybench.suites.failures import FAILURE_REASONS, right_text
from memorybench.suites.registry import suite_of
from memorybench.view.index import LONGEST_TEXT, PAGE, UNEXPLAINED, Filter
from memorybench.view.results import run_url

from . import number, render, results_of

OUTCOMES = ("right", "wrong", "undecided", UNEXPLAINED, *(reason for reason in FAILURE_REASONS if reason != "wrong"))


def filter_of(query: QueryParams) -> Filter:
    """Return the filter in the query string. Long values are cut, because SQLite rejects very long patterns."""
    return Filter(**{name: query.get(name, "")[:LONGEST_TEXT] for name in Filter.__struct_fields__})


def page(request: Request) -> Response:
    place, run_id = request.path_params["place"], request.path_params["run"]
    results = results_of(request)
    filter, first = filter_of(request.query_params), number(request, "offset")
    with results.open(place, run_id) as stored:
        index, own = results.index, results.questions(place, stored)
        run, subjects = stored.run, results.subjects(own, stored.run)
        total = index.count(own, filter)

        def address(**changes: str | int) -> str:
            return run_url(place, run_id, "questions", **{**filter.parameters(), **changes})

        return render(
            request,
            "questions.html",
            here="runs",
            place=place,
            run=run,
            filter=filter,
            filters=filter.parameters(),
            link_filters={name: value for name, value in filter.parameters().items() if name != "benchmark"},
            questions=index.page(own, filter, first),
            total=total,
            first=first,
            size=PAGE,
            address=address,
            subjects=subjects,
            types=index.values(own, "type"),
            benchmarks=index.values(own, "benchmark"),
            outcomes=OUTCOMES,
            right=right_text(run),
            noun=suite_of(run).case_noun(run),
        )
