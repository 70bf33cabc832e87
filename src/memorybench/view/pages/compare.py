"""Compares runs or providers: settings that differ, paired differences, and the questions that one side wins."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from memorybench.charts import is_installed
from memorybench.charts.run_charts import slope
from memorybench.core.errors import MemorybenchError
from memorybench.core.report_sections import Provenance, Report, Row, Table
from memorybench.suites.comparison import Pair
from memorybench.suites.comparison_tables import Only, select_cases
from memorybench.suites.html_report import verdict_of
from memorybench.suites.run_comparison import RunComparison
from memorybench.suites.setting_differences import SETTINGS
from memorybench.view.results import MOST_COMPARED, NotFound, Results, run_url, with_query

from . import number, render, results_of

_PAGE = 50
_MOST_SIDES = 6
_MOST_WARNINGS = 10
"""The most warnings that are shown at once: each pair of providers may have its own."""
_ONLY: dict[str, Only] = {"wins": "wins", "losses": "losses", "changed": "changed"}


def page(request: Request) -> Response:
    results = results_of(request)
    query = request.query_params
    chosen = [text for text in dict.fromkeys(query.getlist("side")) if text][:_MOST_SIDES]
    sides: list[tuple[int, str, str | None]] = []
    only, first = _ONLY.get(query.get("only", "")), number(request, "offset")
    compared, report, error, status = None, None, "", 200
    try:
        chosen = chosen or _default_sides(results)
        sides = [parse_side(text) for text in chosen]
        compared = results.compare(sides) if sides else None
        report = compared.report(only, _PAGE, first) if compared else None
    except (NotFound, MemorybenchError) as problem:  # the form stays, to choose other sides
        error, status = str(problem), 404 if isinstance(problem, NotFound) else 422
    rows = [row for folder in results.list_runs() for row in folder.rows]
    choices = [
        (f"{row.place}/{row.run.id}{f':{subject}' if subject else ''}", row.name, subject)
        for row in rows
        for subject in ("", *row.subjects)
    ]
    judges = [
        f"Run {row.name}: judge {judge} failed its check. Do not rely on its verdicts."
        for row in rows
        for judge in row.failed_judges
        if (row.place, row.run.id) in [side[:2] for side in sides]
    ]
    sections = [one for one in report.sections if not isinstance(one, Provenance)] if report else []
    is_measure = (isinstance(one, Table) and one.title != SETTINGS for one in sections)
    split = next((place for place, found in enumerate(is_measure) if found), 0)
    response = render(
        request,
        "compare.html",
        here="compare",
        choices=choices,
        chosen=chosen,
        error=error,
        compared=compared,
        chart=_chart(results, compared),
        verdict=_verdict(compared, report),
        settings=sections[:split],
        sections=sections[split:],
        report=report,
        tests_of_run=_tests_of_run(results, sides, compared),
        warnings=[*judges, *(report.warnings if report else ())],
        most_warnings=_MOST_WARNINGS,
        only=query.get("only", ""),
        first=first,
        size=_PAGE,
        total=_most_cases(compared, only),
        link=_linker(sides, compared),
        address=lambda **changes: _address(chosen, {"only": query.get("only", ""), **changes}),
    )
    response.status_code = status
    return response


def _default_sides(results: Results) -> list[str]:
    """Return the sides to compare if the user chose none: the two best subjects of the newest run that has several.

    A baseline counts as worse than every provider. If the run has more than two providers, return the whole run:
    comparing only the best two would hide that several tests are made.
    """
    rows = [
        row
        for folder in results.list_runs()
        for row in folder.rows
        if row.headlines and len(row.subjects) > 1 and row.run.planned <= MOST_COMPARED
    ]
    for row in sorted(rows, key=lambda row: row.run.created, reverse=True):
        with results.open(row.place, row.run.id) as stored:
            roles = results.subjects(results.questions(row.place, stored), stored.run)
        lead = row.headlines[0]
        values = {
            subject: one.value
            for (benchmark, subject), measures in row.measures.items()
            for one in measures
            if (benchmark, one.name) == (lead.benchmark, lead.measure.name) and one.value is not None
        }
        names = sorted(values, key=lambda name: values[name], reverse=lead.measure.higher_is_better)
        names.sort(key=lambda name: roles.get(name) == "baseline")
        if len([name for name in names if roles.get(name) != "baseline"]) > 2:
            return [f"{row.place}/{row.run.id}"]
        if len(names) > 1:
            return [f"{row.place}/{row.run.id}:{name}" for name in names[:2]]
    return []


def _verdict(compared: RunComparison | None, report: Report | None) -> Sequence[str]:
    if compared is None or report is None or not compared.comparisons:
        return ()
    if len(compared.comparisons) == 1 or len(compared.sides) == 2:
        firsts: dict[str, Pair] = {}
        for pair in compared.comparisons:
            firsts.setdefault(pair.benchmark, pair)
        several = len(firsts) > 1
        return [f"{name}: {pair.sentence()}" if several else pair.sentence() for name, pair in firsts.items()]
    heading, sentences = verdict_of(report, compared, among="among those compared")
    return [heading, *sentences]


def _tests_of_run(
    results: Results, sides: list[tuple[int, str, str | None]], compared: RunComparison | None
) -> tuple[str, int, int] | None:
    """Return (address, providers, tests) of a run if only some of its providers are compared; otherwise None.

    `providers` is the number of all its providers, `tests` the number of tests if all of them were compared.
    """
    runs = {side[:2] for side in sides}
    if compared is None or len(runs) > 1 or len(sides) < 2:
        return None
    ((place, run_id),) = runs
    with results.open(place, run_id) as stored:
        roles = results.subjects(results.questions(place, stored), stored.run)
    providers = [name for name, role in roles.items() if role != "baseline"]
    if len(providers) <= len(sides) or any(subject not in providers for _, _, subject in sides):
        return None
    return run_url(place, run_id), len(providers), compared.tests * comb(len(providers), 2) // comb(len(sides), 2)


def _chart(results: Results, compared: RunComparison | None) -> str | None:
    spec = slope(compared) if compared is not None and is_installed() else None
    return None if spec is None else results.draw(spec, "Comparison by type")


def parse_side(text: str) -> tuple[int, str, str | None]:
    """Parse `0/RUN` or `0/RUN:PROVIDER`, where 0 is the index of a results folder; return (folder, run, provider)."""
    place, _, rest = text.partition("/")
    run, _, subject = rest.partition(":")
    if not (place.isascii() and place.isdecimal() and len(place) < 6) or not run:
        raise NotFound(f"invalid side {text}; expected FOLDER/RUN or FOLDER/RUN:PROVIDER, as the form sends it")
    return int(place), run, subject or None


def _most_cases(compared: RunComparison | None, only: Only | None) -> int:
    if compared is None or only is None:
        return 0
    return max((len(select_cases(pair, only)) for pair in compared.comparisons), default=0)


def _linker(sides: list[tuple[int, str, str | None]], compared: RunComparison | None) -> Any:
    """Return a function that returns the address of the question that a table row is about; "" for other cells."""
    pairs = compared.comparisons if compared else ()
    benchmarks = list(dict.fromkeys(pair.benchmark for pair in pairs))
    case_ids = {
        f"{case.case_id} {case.variant}".strip(): case.case_id for pair in pairs for case in pair.cases if case.variant
    }

    def link(table: Table, row: Row, place: int) -> str:
        if place or table.columns[0].heading != "question id" or not isinstance(row[0], str):
            return ""
        benchmark = next((name for name in benchmarks if table.title.startswith(f"{name}:")), "")
        folder, run, _ = sides[0]
        return run_url(folder, run, "question", benchmark=benchmark, case=case_ids.get(row[0], row[0]))

    return link


def _address(chosen: list[str], more: dict[str, Any]) -> str:
    path = with_query("/compare", **more)
    return f"{path}{'&' if '?' in path else '?'}{urlencode([('side', text) for text in chosen], errors='replace')}"
