"""Joins a run that another process started, and works on it until all trials are done."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from memorybench import __version__
from memorybench.core.errors import BadInput, DatabaseLost, DatabaseUnreachable, RunConflict
from memorybench.engine.run import Ending
from memorybench.engine.stopping import Stop
from memorybench.journal.places import journal_of, results_folder
from memorybench.journal.rows import Run
from memorybench.journal.run_reader import RunReader
from memorybench.suites import running
from memorybench.suites.registry import suite, suite_of
from memorybench.suites.running import Show
from memorybench.suites.spec import RunOptions, make_spec
from memorybench.suites.starting import start_run
from memorybench.wiring.live import LiveWiring

_LONGEST_WAIT = 60.0
"""The most seconds that a worker waits for a database that does not accept connections."""


class JoinedRun(Struct, frozen=True):
    run_id: str
    ending: Ending
    is_good: bool
    """Whether a supervisor need not start the worker again: the run is complete without failed or unscored trials, it
    was complete before, or its budget was used up before this worker performed a trial."""


def join_run(
    journal: str,
    run_id: str | None,
    given: Mapping[str, Any],
    *,
    show: Show,
    options: Mapping[str, Any] | None = None,
    new_stop: Callable[[], Stop] = Stop,
) -> JoinedRun:
    """Join a run and perform its trials until none is left. If `run_id` is None, join the newest unfinished run.

    Join the run again whenever the connection to the database was lost, or the database ended this process's lease.
    `given` are values that are not saved with the run, such as consent; `options` are values of RunOptions, such as
    the concurrency. `new_stop` is called each time that the run is joined.
    """
    results = results_folder(Path(), journal)
    run_id = _choose(results, run_id).id
    while True:
        try:
            return _join_once(journal, run_id, given, show, options or {}, new_stop())
        except (DatabaseLost, DatabaseUnreachable) as error:
            problem = str(error).partition(";")[0]
            print(f"memorybench: {problem}; waiting to join the run again", file=sys.stderr, flush=True)
            _wait_for_database(results)


def _join_once(
    journal: str, run_id: str, given: Mapping[str, Any], show: Show, values: Mapping[str, Any], stopping: Stop
) -> JoinedRun:
    """Join the run once and perform its trials until none is left. Memory stores on disk are in a temporary folder.

    Trials that failed or were blocked are not repeated; only `--resume` repeats them.
    """
    with TemporaryDirectory(prefix="memorybench-worker-") as name:
        folder = Path(name)
        chosen = _choose(results_folder(folder, journal), run_id)
        if chosen.status == "complete":
            return JoinedRun(chosen.id, Ending("complete", False, 0), is_good=True)
        chosen_suite = suite_of(chosen)
        options = make_spec(RunOptions, {**values, "output": folder, "journal": journal, "resume": chosen.id})
        start = start_run(chosen_suite, chosen_suite.command_of(chosen), given, options, LiveWiring())
        if start.prepared.blocked:  # only this process cannot continue: it must not record the run as blocked
            raise RunConflict(f"run {chosen.id}: {start.prepared.blocked}")
        ending = running.join(start, show=show, stopping=stopping)
        with RunReader.open(start.place.results, thorough=False) as run_reader:
            counts = run_reader.status_counts(chosen.id)
    is_good = ending.status == "complete" and not (counts["failed"] or counts["unscored"])
    return JoinedRun(chosen.id, ending, is_good or (ending.is_blocked and not ending.performed))


def _wait_for_database(results: Path) -> None:
    """Wait until the database accepts connections. Raise DatabaseLost after a minute."""
    deadline, delay = time.monotonic() + _LONGEST_WAIT, 0.1
    while True:
        try:
            journal_of(results).exists()
            return
        except DatabaseUnreachable as error:
            if time.monotonic() > deadline:
                remedy = "recorded results are safe; start the worker again when the database answers"
                raise DatabaseLost(f"{error.where}: no connection for {_LONGEST_WAIT:.0f} s; {remedy}") from None
        time.sleep(delay)
        delay = min(2 * delay, 5.0)


def _choose(results: Path, name: str | None) -> Run:
    with RunReader.open(results) as run_reader:
        # without runs of `calibrate`, which have no suite: only the process that began one can continue it
        unfinished = [run for run in run_reader.runs() if run.status in ("running", "partial") and suite(run.suite)]
        if name is None and not unfinished:
            raise BadInput(
                "--run", "the journal has no unfinished run", remedy="start a run with the same --journal first"
            )
        chosen = run_reader.run(name, "--run") if name else unfinished[-1]
    if chosen.program != f"memorybench {__version__}":
        remedy = "install that version here, or finish the run where it was started"
        raise RunConflict(
            f"run {chosen.id} was started by {chosen.program}, but this is memorybench {__version__}; {remedy}"
        )
    return chosen
