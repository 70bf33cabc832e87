"""One measure of a provider on a benchmark, over all runs that have it."""

from __future__ import annotations

from collections import Counter

from starlette.requests import Request
from starlette.responses import Response

from memorybench.charts import is_installed
from memorybench.charts.run_charts import trend_of
from memorybench.core.measures import Measure
from memorybench.core.report_sections import Column, Difference, Table, text_column
from memorybench.suites.comparison import HEADLINES
from memorybench.suites.setting_differences import changed_settings
from memorybench.view.results import Results, RunRow

from . import render, results_of


def page(request: Request) -> Response:
    query = request.query_params
    rows = [row for folder in results_of(request).list_runs() for row in folder.rows if row.measures]
    rows.sort(key=lambda row: (row.run.created, row.run.id))
    measured = [
        key
        for row in reversed(rows)
        for key, measures in row.measures.items()
        if any(one.value is not None for one in measures)
    ]
    measured.sort(key=Counter(measured).__getitem__, reverse=True)  # those with most runs first
    benchmarks = list(dict.fromkeys(benchmark for benchmark, _ in measured))
    benchmark = _chosen(query.get("benchmark", ""), benchmarks)
    subjects = list(dict.fromkeys(subject for name, subject in measured if name == benchmark))
    subject = _chosen(query.get("provider", ""), subjects)
    points = [(row, row.measures[benchmark, subject]) for row in rows if (benchmark, subject) in row.measures]
    runs = Counter(one.name for _, measures in points for one in measures if one.value is not None)
    names = sorted(runs, key=lambda name: HEADLINES.index(name) if name in HEADLINES else len(HEADLINES))
    names.sort(key=runs.__getitem__, reverse=True)  # those of most runs first
    measure = _chosen(query.get("measure", ""), names)
    found = [(row, one) for row, measures in points for one in measures if one.name == measure and one.n]
    table = _table(found, subject, measure)
    places = {row.name: row for row, _ in found}
    return render(
        request,
        "trends.html",
        here="trends",
        benchmarks=benchmarks,
        benchmark=benchmark,
        subjects=subjects,
        subject=subject,
        names=names,
        measure=measure,
        table=table,
        chart=_chart(results_of(request), found, subject, f"{measure} of {subject}"),
        link=lambda table, row, place: places[row[0]].url if place == 0 and row[0] in places else "",
    )


def _chart(results: Results, points: list[tuple[RunRow, Measure]], subject: str, title: str) -> str | None:
    """Return the chart of the newest runs as SVG; None if there are fewer than two."""
    if not is_installed():
        return None
    spec = trend_of([(row.run.model_copy(update={"id": row.name}), one) for row, one in points], subject, title)
    return None if spec is None else results.draw(spec, title)


def _chosen(wanted: str, known: list[str]) -> str:
    return wanted if wanted in known else next(iter(known), "")


def _table(points: list[tuple[RunRow, Measure]], subject: str, measure: str) -> Table:
    rows = []
    before: tuple[RunRow, Measure] | None = None
    for row, one in points:
        change, settings = None, ""
        if before is not None:
            settings = ", ".join(changed_settings(before[0].run, row.run, subject))
            if before[1].value is not None and one.value is not None:
                change = Difference(one.value - before[1].value, unit=one.unit)
        started = row.run.created.replace("T", " ")[:16]
        rows.append((row.name, started, row.run.program, row.run.status, one, change, one, settings))
        before = row, one
    columns = (
        text_column("run"),
        text_column("started (UTC)"),
        text_column("version"),
        text_column("status"),
        Column(f"{measure} [95%]", "interval"),
        Column("change"),
        Column("n", "n"),
        text_column("changed settings", wrap=True),
    )
    return Table("", columns, tuple(reversed(rows)))
