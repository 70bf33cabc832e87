"""Runs that have ended: their reports, the files for CI, and the exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memorybench.engine.run import Ending
from memorybench.files.writing import replacing
from memorybench.journal.places import journal_of
from memorybench.journal.run_changes import change_spec
from memorybench.reporting.markdown import to_markdown
from memorybench.reporting.report_files import FORMATS, append_summary, write_reports
from memorybench.secrets.redaction import redact_strings

from .html_report import page_without_charts
from .saved_report import save_report
from .starting import check_tags, find_baseline, results_of, saved_run
from .stored_run import open_stored_run
from .suite import SAVED_BASELINE, RunPlace
from .thresholds import add_checks, parse_thresholds, thresholds_to_save

if TYPE_CHECKING:
    from memorybench.core.report_sections import Report

    from .gate import Gate
    from .html_report import MakePage
    from .spec import RunOptions
    from .stored_run import StoredRun
    from .suite import Command, Suite
    from .summary import Summary
    from .thresholds import Check, Held


class FinishedRun(Struct, frozen=True):
    """A run that has ended, with its report."""

    place: RunPlace
    ending: Ending
    summary: Summary
    report: Report
    passed: bool
    """Whether the suite's own checks passed."""
    checks: Sequence[Check]
    """The results of the thresholds, and of the comparison with the baseline run."""
    blocked: str = ""
    """Why the run was not allowed to start; empty if it was."""


def find_finished(
    suite: Suite,
    command: Command,
    given: Mapping[str, Any],
    options: RunOptions,
    thresholds: Sequence[str] = (),
    redact: Callable[[str], str] = str,
    threshold_on: Held = "value",
    make_page: MakePage = page_without_charts,
) -> FinishedRun | None:
    """Return the run to resume, with its report, if all its trials are scored; otherwise None.

    `options.resume` names the run; None is also returned if it is None. No subject is called: results come from the
    journal. Save new thresholds and a new baseline run, and add tags. Write the reports again if they change or if the
    run's folder has none.
    """
    if options.resume is None:
        return None
    check_tags(options)
    limits = parse_thresholds(thresholds)
    saved = saved_run(suite, command, given, options)
    place = RunPlace(results_of(command, options), saved.id)
    with open_stored_run([place.run_id], [place.results]) as stored:
        counts = stored.parts[0][0].counts(place.run_id)
        if stored.run.status != "complete" or counts["scored"] < stored.run.planned:
            return None
        from .gate import run_checks

        baseline = find_baseline(options, stored.spec.get(SAVED_BASELINE), place)
        changes = {SAVED_BASELINE: baseline and baseline.plain(), **thresholds_to_save(limits, threshold_on)}
        is_changed = any(stored.spec.get(name) != value for name, value in changes.items())
        stored = stored.with_spec(changes)
        checks, gate = run_checks(stored, limits, threshold_on)
        if is_changed:
            change_spec(place.results, saved, redact_strings(changes, redact))
        report = add_checks(suite.report(stored), checks, gate)
        if options.tags:
            from .run_changes import change_tags
            from .run_list import find_run

            change_tags(find_run(place.run_id, [place.results]), options.tags, redact)
        if is_changed or not any((place.folder / file).exists() for file, _ in FORMATS.values()):
            rewrite_reports(stored, report, make_page(stored, report))
        ending = Ending("complete", False, 0)
        checks += gate.checks if gate else ()
        return FinishedRun(place, ending, stored.summary, report, suite.passes(stored), checks)


def rewrite_reports(
    stored: StoredRun, report: Report, html: str | None, formats: Iterable[str] = FORMATS
) -> list[Path]:
    """Write the reports of a run into its folder. Raise RunConflict if another process is writing the run."""
    lock = journal_of(stored.folder).lock(stored.run.id)
    try:
        files = write_reports(report, stored.folder / stored.run.id, formats, html)
        save_report(stored, report)
    finally:
        lock.release()
    return files


def gate_of(stored: StoredRun) -> Gate | None:
    """Compare a run with its baseline run; return None if it has none."""
    if stored.spec.get(SAVED_BASELINE) is None:
        return None
    from .gate import check_gate

    return check_gate(stored)


def write_ci_files(finished: FinishedRun, options: RunOptions, redact: Callable[[str], str]) -> None:
    """Write the files that `--junit` and `--step-summary` name."""
    if options.junit is not None:
        from .junit import to_junit

        with open_stored_run([finished.place.run_id], [finished.place.results]) as stored:
            text = redact(to_junit(finished.place.run_id, stored.trials(), finished.checks))
        with replacing(options.junit) as file:
            file.write(text)
    if options.step_summary is not None:
        lines = [f"{'❌' if check.missed else '✅'} {check.text}" for check in finished.checks]
        markdown = to_markdown(finished.report, lines)
        append_summary(options.step_summary, markdown, redact)


def exit_code(finished: FinishedRun, tell: Callable[[str], None]) -> int:
    """Call `tell` with the text of every check, and return the exit code of a run.

    0: complete. 1: not complete, or with failed or unscored trials. 2: not allowed to start. 3: missed a threshold, a
    check of the suite or its baseline. 130: interrupted.
    """
    if finished.ending.interrupted:
        return 130
    if finished.blocked:
        return 2
    if finished.ending.paused:
        return 1
    for check in finished.checks:
        tell(check.text)
    if any(check.missed for check in finished.checks):
        return 3
    counts = finished.summary.counts
    if counts["failed"] or counts["unscored"] or finished.summary.status != "complete":
        return 1
    return 0 if finished.passed else 3
