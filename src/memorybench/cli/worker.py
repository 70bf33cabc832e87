"""Joins a run that another process has begun, on this or another machine, until every question has an outcome."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from .arguments import add_consent, add_json, positive, split_list

if TYPE_CHECKING:
    from memorybench.core.errors import MemorybenchError
    from memorybench.journal.rows import Run
    from memorybench.suites.running import FinishedRun


_LONGEST_WAIT = 60.0
"""Seconds that a worker waits for a database that was restarted."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--journal", metavar="URL", required=True, help="Join a run of this Postgres database")
    parser.add_argument("--run", metavar="RUN", help="Join this run (default: the newest unfinished one)")
    parser.add_argument(
        "--concurrency", metavar="N", type=positive, help="Limit the calls in flight (default: the run's)"
    )
    add_consent(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    import json
    import sys
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="memorybench-worker-") as folder:
        finished = _work_again(args, Path(folder))
    ending, counts = finished.ending, finished.summary.counts
    facts = {"run": finished.place.run_id, "performed": ending.performed, "status": ending.status}
    if args.json:
        print(json.dumps(facts))
    else:
        print(f"Run {finished.place.run_id}: {ending.performed} trials performed here; the run is {ending.status}")
    if ending.interrupted:
        return 130
    if ending.paused:
        print(f"memorybench: {ending.paused}", file=sys.stderr)
    return 0 if ending.status == "complete" and not (counts["failed"] or counts["unscored"]) else 1


def _work_again(args: argparse.Namespace, folder: Path) -> FinishedRun:
    """Perform the work; join the run again whenever the database was restarted or the lease has expired."""
    import sys
    from tempfile import mkdtemp

    from memorybench.core.errors import DatabaseLost, DatabaseUnreachable
    from memorybench.journal.places import results_folder

    results = results_folder(folder, args.journal)
    args.run = _choose(results, args.run).id
    while True:
        try:
            return _work(args, Path(mkdtemp(dir=folder)))
        except (DatabaseLost, DatabaseUnreachable) as error:
            print(f"memorybench: {error}; joining the run again", file=sys.stderr, flush=True)
            _wait_for_database(results, error)


def _wait_for_database(results: Path, lost: MemorybenchError) -> None:
    """Wait until the database accepts connections; raise `lost` if it does not do so for a minute."""
    import time

    from memorybench.core.errors import DatabaseUnreachable
    from memorybench.journal.places import journal_of

    deadline, delay = time.monotonic() + _LONGEST_WAIT, 0.1
    while True:
        try:
            journal_of(results).exists()
            return
        except DatabaseUnreachable:
            if time.monotonic() > deadline:
                raise lost from None
        time.sleep(delay)
        delay = min(2 * delay, 5.0)


def _work(args: argparse.Namespace, folder: Path) -> FinishedRun:
    """Perform the part of the run that is left for this process; reports and stores are in a temporary folder."""
    from memorybench.journal.places import results_folder
    from memorybench.reporting.progress_view import show_progress
    from memorybench.suites import running
    from memorybench.suites.registry import suite_of
    from memorybench.suites.spec import RunOptions
    from memorybench.wiring.live import LiveWiring

    chosen = _choose(results_folder(folder, args.journal), args.run)
    suite = suite_of(chosen)
    command = suite.command_of(chosen)
    options = RunOptions(output=folder, journal=args.journal, resume=chosen.id, concurrency=args.concurrency)
    given = {"allow_code": args.allow_code, "allow_env": split_list(args.allow_env)}
    wiring = LiveWiring()
    start = running.start(suite, command, {name: value for name, value in given.items() if value}, options, wiring)
    return running.run(start, show=show_progress)


def _choose(results: Path, name: str | None) -> Run:
    from memorybench import __version__
    from memorybench.core.errors import BadInput, RunConflict
    from memorybench.journal.run_reader import RunReader
    from memorybench.suites.registry import suite

    with RunReader.open(results) as run_reader:
        # a calibration has no suite: only the command that began it can continue it
        unfinished = [run for run in run_reader.runs() if run.status in ("running", "partial") and suite(run.suite)]
        if name is None and not unfinished:
            raise BadInput("--run", "every run of the journal is finished", remedy="start one with --journal first")
        chosen = run_reader.run(name) if name else unfinished[-1]
    if chosen.program != f"memorybench {__version__}":
        remedy = "install that version here, or finish the run where it was begun"
        raise RunConflict(f"run {chosen.id} was begun by {chosen.program}, this is memorybench {__version__}; {remedy}")
    return chosen
