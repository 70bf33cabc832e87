"""The charts of a page, and the HTML report with them."""

from __future__ import annotations

from memorybench.core.errors import BadInput
from memorybench.core.report_sections import Report, Table
from memorybench.reporting.html import is_heat_map
from memorybench.suites.html_report import to_html
from memorybench.suites.run_comparison import RunComparison, compare_sides
from memorybench.suites.sides import ComparedRun, Side
from memorybench.suites.stored_run import StoredRun

from .rendering import is_installed, render_inline
from .run_charts import CHARTS, RunCharts
from .specs import Spec

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
"""The charts of a page about one run. `trend` depends on other runs."""


def page_specs(stored: StoredRun, report: Report, leave_out: tuple[str, ...] = ()) -> dict[str, Spec]:
    """Return the charts that say more than the tables of the report, by name."""
    charts, left_out = RunCharts(stored), set(leave_out)
    if any(isinstance(part, Table) and is_heat_map(part) for part in report.sections):
        left_out.add("heat-map")
    found = {name: CHARTS[name][1](charts) for name in TITLES if name not in left_out}
    return {name: spec for name, spec in found.items() if spec is not None}


def html_report(stored: StoredRun, report: Report) -> str:
    """Return the report as one file, with charts if vl-convert-python is installed."""
    specs = page_specs(stored, report) if is_installed() else {}
    charts = [(TITLES[name], render_inline(spec, TITLES[name])) for name, spec in specs.items()]
    return to_html(stored, report, charts, _compare_subjects(stored))


def _compare_subjects(stored: StoredRun) -> RunComparison | None:
    """Compare the providers of a run; None if fewer than two share questions, or the run has too many trials."""
    if len(stored.parts) > 1 or stored.run.planned > _MOST_COMPARED:
        return None
    run = ComparedRun(stored, stored.folder)
    names = Side(stored.run.id, run).subjects
    if len(names) < 2:
        return None
    try:
        return compare_sides([Side(name, run, name) for name in names])
    except BadInput:  # nothing was measured, or nothing in common
        return None
