"""The charts of a page, and the HTML report with them.

Every run writes this report as report.html. A renderer process starts when the run ends, and draws while the rest of
the page is made, so that charts take almost no extra time on a machine with two cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from memorybench import charts
from memorybench.core.errors import BadInput
from memorybench.core.report_sections import Report, Table
from memorybench.reporting.html import is_heat_map
from memorybench.suites.html_report import MakePage, check_installed, to_html
from memorybench.suites.registry import suite_of
from memorybench.suites.run_comparison import RunComparison, compare_sides
from memorybench.suites.sides import ComparedRun, Side
from memorybench.suites.stored_run import StoredRun

from .parts import Spec
from .rendering import DRAWING_ERRORS, Renderer
from .run_charts import CHARTS, RunCharts

_MOST_COMPARED = 30_000
TITLES = {
    "forest": "Results",
    "heat-map": "Results by type",
    "score-cost": "Score against cost",
    "score-latency": "Score against latency",
    "failures": "Failures by reason",
    "score-context": "Score against context",
    "latency": "Latency",
}
"""The titles of the charts on a page about one run, by name. `trend` is missing: it depends on other runs."""


def page_specs(stored: StoredRun, report: Report, leave_out: tuple[str, ...] = ()) -> dict[str, Spec]:
    """Return the specs of the charts of a run, by name, without those in `leave_out` and those without data.

    The heat map is also left out if the report has a table that the page shades as a heat map.
    """
    run_charts, left_out = RunCharts(stored), set(leave_out)
    if any(isinstance(part, Table) and is_heat_map(part) for part in report.sections):
        left_out.add("heat-map")
    found = {name: CHARTS[name][1](run_charts) for name in TITLES if name not in left_out}
    return {name: spec for name, spec in found.items() if spec is not None}


def html_report(stored: StoredRun, report: Report) -> str:
    """Return the report as one file, with charts if vl-convert-python is installed."""
    check_installed()
    with start_page() as make_page:
        return make_page(stored, report) or ""


@contextmanager
def start_page() -> Iterator[MakePage]:
    """Start a renderer and yield the function that makes the page of a run from its report.

    Without vl-convert-python, no renderer is started, and the page has no charts.
    """
    if not charts.is_installed():
        yield lambda stored, report: to_html(
            stored, report, comparison=_compare_subjects(stored), why_no_charts=charts.MISSING
        )
        return
    with Renderer() as renderer:
        yield lambda stored, report: _with_charts(renderer, stored, report)


def _with_charts(renderer: Renderer, stored: StoredRun, report: Report) -> str:
    stored = stored.read_once()
    specs = page_specs(stored, report)
    drawing = renderer.draw({TITLES[name]: spec for name, spec in specs.items()})
    return to_html(stored, report, lambda: _drawn(drawing), _compare_subjects(stored), "they could not be drawn")


def _drawn(drawing: Future[list[tuple[str, str]]]) -> list[tuple[str, str]]:
    """Return the drawn charts; an empty list if the renderer failed, so that the page is still written."""
    try:
        return drawing.result()
    except DRAWING_ERRORS:
        return []


def _compare_subjects(stored: StoredRun) -> RunComparison | None:
    """Return a comparison of a run's providers.

    None if the run has fewer than two, if they share no question, or if the run has too many trials or several shards.
    """
    if len(stored.parts) > 1 or stored.run.planned > _MOST_COMPARED:
        return None
    run = ComparedRun(stored, stored.folder, measures=tuple(suite_of(stored.run).main_measures(stored)))
    names = Side(stored.run.id, run).subjects
    if len(names) < 2:
        return None
    try:
        return compare_sides([Side(name, run, name) for name in names])
    except BadInput:  # nothing was measured, or the providers share no question
        return None
