"""Makes the HTML page of a run. For small runs, which have no charts, the rest of this package is not imported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memorybench import charts
from memorybench.reporting.report_files import HTML_FILE
from memorybench.suites import html_report
from memorybench.suites.html_report import MakePage, has_charts, page_without_charts

if TYPE_CHECKING:
    from memorybench.core.report_sections import Report
    from memorybench.journal.rows import Run
    from memorybench.suites.stored_run import StoredRun


@contextmanager
def start_page(run: Run) -> Iterator[MakePage]:
    """Start the renderer if the page of the run gets charts, and yield the function that makes the page."""
    if not (html_report.is_installed() and has_charts(run)):
        yield page_without_charts
        return
    from .page import start_page as start_with_charts

    with start_with_charts() as make_page:
        yield make_page


def make_page(stored: StoredRun, report: Report) -> str | None:
    """Return the HTML page of a run that has already ended; None if jinja2 is not installed."""
    with start_page(stored.run) as make:
        return make(stored, report)


def missing_extra() -> str:
    """Return a sentence if report.html is missing or has no charts because a package is not installed; otherwise ""."""
    if not html_report.is_installed():
        return f"No {HTML_FILE} was written: {html_report.MISSING}"
    if not charts.is_installed():
        return f"{HTML_FILE} has no charts: {charts.MISSING}"
    return ""
