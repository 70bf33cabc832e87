"""SIGKILL and SIGINT at any moment of start, run, report writing and resume: the last resume writes the same reports.

The moments are points in the CPU time of the process, so they do not depend on how busy the machine is.
MEMORYBENCH_TEST_KILLS and MEMORYBENCH_TEST_INTERRUPTS set the counts of the full sweep.
"""

import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from memorybench.cli.main import main
from tests.cli.command import Command, measured
from tests.engine.workload import in_child

EVAL = ("eval", "--providers", "bm25", "none", "--end", "4", "--seed", "1", "--run-id", "r", "--output")
RESUME = ("eval", "--resume", "r", "--output")
KILLS, INTERRUPTS = (
    int(os.environ.get(f"MEMORYBENCH_TEST_{name}", n)) for name, n in (("KILLS", 200), ("INTERRUPTS", 50))
)


def stop(arguments: tuple[str, ...], number: signal.Signals, seconds: float, errors: Path) -> int | None:
    """Run a command that gets a signal after so many seconds of CPU time; return its exit code, None if killed."""

    def work() -> None:
        sys.stdout, sys.stderr = open(os.devnull, "w"), errors.open("w")  # noqa: SIM115  pytest captures the parent's
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGPROF, lambda *_: os.kill(os.getpid(), number))
        signal.setitimer(signal.ITIMER_PROF, seconds)
        code = main(list(arguments))
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stderr.flush()
        os._exit(code)

    return in_child(work)


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def is_recorded(folder: Path) -> bool:
    if not (folder / "results.db").exists():
        return False
    with closing(sqlite3.connect(folder / "results.db")) as db:
        return bool(db.execute("SELECT count(*) FROM runs WHERE id = 'r'").fetchone()[0])


def without_times(markdown: str) -> list[str]:
    """The lines of report.md that two runs of one spec share."""
    head = markdown.split("## Time and cost")[0]
    return [line for line in head.splitlines() if "UTC" not in line and "results/" not in line]


def sweep(command: Command, kills: int, interrupts: int) -> int:
    """Stop runs until so many signals have hit one, and return how often one was resumed to the same reports.

    A run that ended before its signal does not count.
    """
    command(*EVAL, "whole")  # imports everything, so that the children take the same time
    before = cpu_seconds()
    assert stop((*EVAL, "timed"), signal.SIGKILL, 600, command.folder / "errors") == 0
    seconds = cpu_seconds() - before
    resumed = 0
    chance, left = random.Random(14), {signal.SIGKILL: kills, signal.SIGINT: interrupts}
    for _ in range(10 * (kills + interrupts)):
        number = chance.choice([number for number, n in left.items() if n])
        arguments = RESUME if is_recorded(command.folder / "stopped") else EVAL
        moment = chance.uniform(0.01, 1.0) * seconds
        code = stop((*arguments, "stopped"), number, moment, command.folder / "errors")
        errors = (command.folder / "errors").read_text()
        assert code in (None, 0, 130), errors
        assert "Traceback" not in errors, errors
        assert "never retrieved" not in errors, errors
        left[number] -= code != 0
        if code == 0 or not any(left.values()) or chance.random() < 0.2:
            assert_resumes_to_the_same_reports(command)
            resumed += 1
        if not any(left.values()):
            return resumed
    raise AssertionError(f"too few signals hit a run: {left} left")


def assert_resumes_to_the_same_reports(command: Command) -> None:
    folder = command.folder / "stopped"
    said = command(*(RESUME if is_recorded(folder) else EVAL), "stopped")
    assert said.code == 0, said.err
    places = (folder / "r", command.folder / "whole/r")
    resumed, whole = (json.loads((place / "report.json").read_text()) for place in places)
    assert measured(resumed) == measured(whole)
    resumed_text, whole_text = (without_times((place / "report.md").read_text()) for place in places)
    assert resumed_text == whole_text
    assert command("validate", "stopped/results.db").code == 0
    shutil.rmtree(folder)


def test_runs_stopped_at_a_few_moments_end_with_the_same_reports(command: Command) -> None:
    assert sweep(command, kills=3, interrupts=1) >= 1


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_runs_stopped_at_any_moment_end_with_the_same_reports(command: Command) -> None:
    """R3"""
    assert sweep(command, KILLS, INTERRUPTS) >= 1
