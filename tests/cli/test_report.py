"""`memorybench report` writes the report files of a run again."""

import json
from pathlib import Path

import pytest

from memorybench.api import load_run
from memorybench.journal.lock import RunLock
from tests.cli.command import Command
from tests.cli.test_run_reports import EVAL, FILES, SUITES, report_files


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_report_writes_the_files_of_any_suite_again(command: Command, suite: str) -> None:
    """R3: the files equal those of the run, byte for byte; only the page has charts, which a small run leaves out."""
    command(*SUITES[suite], "--output", "results")
    results = command.folder / "results"
    written = report_files(results)
    assert set(written) == FILES
    for name in FILES:
        (results / "r" / name).unlink()
    assert command("report", "r").code == 0
    again = report_files(results)
    assert again.pop("report.html").startswith(written.pop("report.html")[:300])
    assert again == written


def test_report_writes_one_format_to_a_folder_and_names_its_files(command: Command) -> None:
    command(*EVAL, "--output", "elsewhere")
    said = command("report", "r", "--results", "elsewhere", "--format", "markdown", "--output", "new/folder", "--json")
    assert said.code == 0
    assert said.json == {"run_id": "r", "files": ["new/folder/report.md"]}
    assert (command.folder / "new/folder/report.md").read_bytes() == report_files(command.folder / "elsewhere")[
        "report.md"
    ]
    assert [path.name for path in (command.folder / "new/folder").iterdir()] == ["report.md"]


@pytest.mark.slow
def test_report_of_shards_needs_a_folder(command: Command) -> None:
    for run, start, end in (("a", "1", "2"), ("b", "3", "4")):
        command("eval", "--providers", "none", "--start", start, "--end", end, "--run-id", run)
    said = command("report", "a", "b")
    assert said.code == 2
    assert "--output" in said.err
    assert command("report", "a", "b", "--output", "both").code == 0
    document = json.loads((command.folder / "both/report.json").read_text())
    assert (document["run_id"], document["counts"]["planned"]) == ("a + b", 4)


@pytest.mark.slow
def test_a_report_that_cannot_be_written_is_one_line(command: Command) -> None:
    command.once(*EVAL)
    (command.folder / "file").write_text("")
    said = command("report", "r", "--output", "file")
    assert (said.code, len(said.err.splitlines())) == (2, 1)
    assert "file" in said.err


@pytest.mark.slow
def test_a_run_that_is_being_written_keeps_its_report_to_itself(command: Command) -> None:
    command.once(*EVAL)
    lock = RunLock(command.folder / "results/r", "r")
    try:
        assert command("report", "r").code == 2
        assert command("report", "r", "--output", "copy").code == 0
    finally:
        lock.release()


def test_python_writes_the_reports_again(command: Command, tmp_path: Path) -> None:
    command.once(*EVAL)
    files = load_run("r").write_reports(tmp_path / "copy", ["json"])
    assert files == [tmp_path / "copy/report.json"]
    assert files[0].read_bytes() == report_files(command.folder / "results")["report.json"]
