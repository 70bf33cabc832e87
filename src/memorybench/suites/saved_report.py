"""Saves the report of a large finished run, because the viewer would take minutes and much memory to compute it."""

from dataclasses import replace

from pydantic import ValidationError

from memorybench.core.records import Record
from memorybench.core.report_sections import Report
from memorybench.files.reading import read_inside
from memorybench.files.writing import write_file

from .stored_run import StoredRun
from .summary import Summary

FILE_NAME = "view.json"
LARGE = 5_000
"""A run with at least this many trials saves its report. The report of a smaller run is computed each time."""


class SavedReport(Record):
    """A saved report: its sections, and the summary that charts are made from."""

    created: str
    report: Report
    summary: Summary


def save_report(stored: StoredRun, report: Report) -> None:
    """Save the report of a run, if the run is large and complete."""
    run = stored.run
    if len(stored.parts) == 1 and run.status == "complete" and run.planned >= LARGE:
        saved = SavedReport(created=run.created, report=replace(report, document={}), summary=stored.summary)
        write_file(stored.folder / run.id / FILE_NAME, saved.model_dump_json())


def load_report(stored: StoredRun) -> tuple[StoredRun, Report] | None:
    """Return the run with its saved summary, and its saved report; None if there is none or the run has changed."""
    run = stored.run
    try:
        saved = SavedReport.model_validate_json(read_inside(stored.folder, f"{run.id}/{FILE_NAME}"))
    except (OSError, ValidationError):
        return None
    written = saved.created, saved.summary.run_id, saved.summary.status, saved.summary.finished
    if written != (run.created, run.id, "complete", run.finished) or run.status != "complete":
        return None
    return stored.with_summary(saved.summary), saved.report
