"""A run's reports: written before it is complete, written again by `memorybench report`, shown by --resume."""

import json
import os
import signal
import sqlite3
from pathlib import Path

import pytest

from memorybench.cli.main import main
from memorybench.suites import running
from tests.cli.command import Command, measured
from tests.engine.workload import in_child

SAMPLE = Path(__file__).parents[2] / "data/sample-dataset.json"
EVAL = ("eval", "--providers", "bm25", "none", "--end", "3", "--run-id", "r")
SUITES = {
    "bench": EVAL,
    "audit": (
        "audit",
        str(SAMPLE),
        "--model",
        "scripted/quote",
        "--judge-model",
        "none",
        "--limit",
        "9",
        "--run-id",
        "r",
    ),
    "extraction": ("extraction", "run", "--extractor", "amnesiac", "--run-id", "r"),
    "hygiene": ("hygiene", "run", "memory-skip-local", "--store", "reference", "--run-id", "r"),
}
FILES = {"report.json", "report.md", "report.html"}


def status(folder: Path) -> str:
    with sqlite3.connect(folder / "results.db") as db:
        return str(db.execute("SELECT status FROM runs WHERE id = 'r'").fetchone()[0])


def report_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "r").glob("report.*")}


def in_report_writing(arguments: tuple[str, ...], number: signal.Signals) -> int | None:
    """Run a command that gets a signal when it begins to write its reports; return its exit code, None if killed."""
    write = running.write_reports

    def interrupted(*args: object, **options: object) -> None:
        os.kill(os.getpid(), number)
        write(*args, **options)

    def work() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored if the tests run in the background
        running.write_reports = interrupted
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        os._exit(main(list(arguments)))

    return in_child(work)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, None), (signal.SIGINT, 130)])
def test_a_run_stopped_while_it_writes_its_reports_is_not_complete_and_resumes(
    command: Command, number: signal.Signals, code: int | None
) -> None:
    """R3"""
    whole = command(*EVAL, "--json", "--output", "whole").json
    assert in_report_writing(EVAL, number) == code
    results = command.folder / "results"
    assert status(results) != "complete"
    assert command("eval", "--resume", "r").code == 0
    assert status(results) == "complete"
    assert set(report_files(results)) == FILES
    assert measured(json.loads(report_files(results)["report.json"])) == measured(whole)


def test_an_interrupted_report_is_followed_by_the_command_that_continues(command: Command) -> None:
    """R3"""

    def interrupt(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "write_reports", interrupt)
        said = command(*EVAL, "--output", "elsewhere")
    assert said.code == 130
    assert "memorybench eval --resume r --output elsewhere" in said.err


def test_resuming_a_finished_run_shows_its_report(command: Command) -> None:
    """R15: nothing is written, neither data nor keys are needed."""
    whole = command(*EVAL, "--json").json
    results = command.folder / "results"
    before = (results / "results.db").read_bytes(), report_files(results)
    said = command("eval", "--resume", "r", "--json")
    assert (said.code, said.json) == (0, whole)
    shown = command("eval", "--resume", "r")
    assert shown.code == 0
    assert "bm25" in shown.out
    assert "is complete" in shown.out
    assert ((results / "results.db").read_bytes(), report_files(results)) == before


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--threshold", "recall@5=0"), 0),
        (("--threshold", "recall@1=1.0"), 3),
        (("--threshold", "no-such-measure=1"), 2),
        (("--end", "5"), 2),
        (("--run-id", "other"), 2),
    ],
)
def test_a_finished_run_is_held_to_thresholds(command: Command, arguments: tuple[str, ...], code: int) -> None:
    """R15: thresholds do not apply to baselines."""
    command.once(*EVAL)
    assert command("eval", "--resume", "r", *arguments).code == code


@pytest.mark.slow
def test_the_usual_targets_of_an_extraction_run_apply_when_it_is_resumed(command: Command) -> None:
    """R15"""
    arguments = SUITES["extraction"]
    code = command(*arguments).code
    assert code == 3
    assert command("extraction", "run", "--resume", "r").code == 3


def test_a_finished_run_belongs_to_its_command(command: Command) -> None:
    command.once(*EVAL)
    said = command("hygiene", "run", "--resume", "r", "--output", "results")
    assert said.code == 2
    assert "memorybench eval --resume r" in said.err


def test_resuming_a_finished_run_writes_lost_reports_again(command: Command) -> None:
    """R3: an earlier version could complete a run and be killed before its reports."""
    command.once(*EVAL)
    results = command.folder / "results"
    written = report_files(results)
    for name in FILES:
        (results / "r" / name).unlink()
    assert command("eval", "--resume", "r").code == 0
    assert report_files(results) == written


def test_python_returns_a_finished_run_that_is_resumed(command: Command) -> None:
    from memorybench.api import evaluate

    command.once(*EVAL)
    finished = evaluate(resume="r")
    assert (finished.run_id, finished.summary.status) == ("r", "complete")


def test_a_run_killed_before_it_was_recorded_is_started_again(command: Command) -> None:
    """R13"""
    assert command.killed(*EVAL, "--output", "elsewhere", at=1)
    said = command("eval", "--resume", "r", "--output", "elsewhere")
    assert (said.code, len(said.err.splitlines())) == (2, 1)
    assert "start it again" in said.err
    assert "--results" not in said.err
    assert command(*EVAL, "--output", "elsewhere").code == 0


def test_resuming_in_a_folder_without_results_names_the_flag_of_the_command(command: Command) -> None:
    """R13"""
    said = command("eval", "--resume", "r")
    assert (said.code, len(said.err.splitlines())) == (2, 1)
    assert "--output" in said.err
    assert "--results" not in said.err
