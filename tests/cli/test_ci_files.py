"""`--junit` and `--step-summary`: files that CI servers show."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from memorybench.api import evaluate
from tests.cli.command import Command


def suites(path: Path) -> dict[str, ElementTree.Element]:
    return {suite.get("name", ""): suite for suite in ElementTree.parse(path).getroot()}


def test_a_run_writes_junit_with_its_thresholds(command: Command) -> None:
    said = command(
        *("eval", "--providers", "bm25", "none", "--end", "6", "--junit", "junit.xml"),
        *("--threshold", "recall@5=0.0", "--threshold", "recall@10=1.0"),
    )
    assert said.code == 3
    found = suites(command.folder / "junit.xml")
    assert list(found) == ["starter × bm25", "checks"]
    assert {case.get("name"): len(case) for case in found["checks"]} == {
        "threshold recall@5": 0,
        "threshold recall@10": 1,
    }


def test_a_resumed_run_that_is_complete_writes_junit_again(command: Command) -> None:
    assert command("eval", "--providers", "bm25", "--end", "3", "--run-id", "r", "--junit", "one.xml").code == 0
    assert command("eval", "--resume", "r", "--junit", "two.xml").code == 0
    one, two = ((command.folder / name).read_text(encoding="utf-8") for name in ("one.xml", "two.xml"))
    assert one == two


@pytest.mark.parametrize("flag", ["--junit", "--step-summary"])
def test_a_file_that_cannot_be_written_is_refused_before_the_run(command: Command, flag: str) -> None:
    said = command("eval", "--providers", "bm25", "--end", "2", flag, "missing/file")
    assert (said.code, said.err.split(":")[1].strip()) == (2, flag)
    assert not (command.folder / "results").exists()


def test_github_gets_the_report_as_a_step_summary(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = command.folder / "summary.md"
    summary.write_text("an earlier step\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    arguments = ("eval", "--providers", "bm25", "--end", "3", "--threshold", "recall@5=1.0")
    assert command(*arguments, "--run-id", "r").code == 3
    text = summary.read_text(encoding="utf-8")
    report = (command.folder / "results" / "r" / "report.md").read_text(encoding="utf-8")
    assert text.startswith("an earlier step\n# ")
    assert "threshold missed: starter × bm25: recall@5" in text
    assert report.split("\n", 1)[1].strip() in text


def test_a_step_summary_stays_below_the_limit_of_github(command: Command) -> None:
    summary = command.folder / "summary.md"
    summary.write_bytes(b"x\n" * (512 * 1024 - 500))
    assert command("eval", "--providers", "bm25", "--end", "3", "--step-summary", "summary.md").code == 0
    assert 1024 * 1024 - 1000 < summary.stat().st_size <= 1024 * 1024
    assert "report.md" in summary.read_text(encoding="utf-8")[-200:]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write into every folder")
def test_a_folder_without_permission_is_reported_before_the_run(command: Command) -> None:
    folder = command.folder / "reports"
    folder.mkdir(mode=0o500)
    said = command("eval", "--providers", "bm25", "--end", "1", "--junit", "reports/junit.xml")
    assert (said.code, "--junit" in said.err) == (2, True)
    assert not (command.folder / "results").exists()


def test_a_secret_reaches_neither_junit_nor_the_summary(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTES_API_KEY", "sentinel-4711-secret")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(command.folder / "summary.md"))
    command("eval", "--providers", "bm25", "--end", "2", "--junit", "j.xml", "--run-id", "sentinel-4711-secret")
    for name in ("j.xml", "summary.md"):
        assert "sentinel-4711" not in (command.folder / name).read_text(encoding="utf-8")


def test_python_writes_the_same_files(tmp_path: Path) -> None:
    files = {"junit": tmp_path / "junit.xml", "step_summary": tmp_path / "summary.md"}
    evaluate(providers=["bm25"], limit=3, output=tmp_path / "results", run_id="r", **files)
    assert list(suites(files["junit"])) == ["starter × bm25"]
    assert files["step_summary"].read_text(encoding="utf-8").startswith("# memorybench eval: r")


@pytest.mark.slow
def test_a_killed_run_writes_its_files_when_it_is_resumed(command: Command) -> None:
    arguments = ("eval", "--providers", "bm25", "--end", "6")
    assert command(*arguments, "--run-id", "whole", "--junit", "whole.xml").code == 0
    assert command.killed(*arguments, "--run-id", "r", "--junit", "killed.xml", "--step-summary", "s.md", at=6)
    assert not (command.folder / "killed.xml").exists()
    assert not (command.folder / "s.md").exists()
    assert command("eval", "--resume", "r", "--junit", "resumed.xml", "--step-summary", "s.md").code == 0

    def cases(name: str) -> dict[str | None, int]:
        return {case.get("name"): len(case) for case in suites(command.folder / name)["starter × bm25"]}

    assert cases("resumed.xml") == cases("whole.xml")
    assert (command.folder / "s.md").read_text(encoding="utf-8").count("# memorybench eval: r\n") == 1


@pytest.mark.slow
def test_the_workflow_without_the_action_passes(command: Command) -> None:
    page = (Path(__file__).parents[2] / "docs/ci.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"- run: memorybench (.*)", page)
    assert command(*shlex.split(line)).code == 0
    assert {"junit.xml", "results"} <= {path.name for path in command.folder.iterdir()}
