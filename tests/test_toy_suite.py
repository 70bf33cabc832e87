"""A suite from another package: one folder and one entry point give it a command, resume, --json and a report."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import memorybench
from tests.cli.command import Command
from tests.doubles.packages import install_package

PACKAGE = Path(__file__).parent / "suite_package"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_package(PACKAGE, tmp_path_factory.mktemp("suite"))


@pytest.fixture(autouse=True)
def toy_suite(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(site)


@pytest.mark.slow
def test_an_installed_suite_is_a_command_of_the_program(site: Path, tmp_path: Path) -> None:
    program = [sys.executable, "-m", "memorybench", "toy", "--size", "2", "--json"]
    done = subprocess.run(
        program, cwd=tmp_path, env={"PYTHONPATH": str(site)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["suite"] == "toy"


def test_a_toy_suite_has_a_command_with_flags_from_its_spec(command: Command) -> None:
    help_text = command("toy", "--help").out
    assert "--size N" in help_text
    assert "Set the number of cases (default: 4)" in help_text
    assert "--resume RUN" in help_text
    assert command("schema", "toy").json["properties"]["size"]["minimum"] == 1
    assert "toy" in [entry["name"] for entry in command("list", "--suites", "--json").json]


def test_a_toy_suite_has_json_thresholds_and_reports(command: Command) -> None:
    document = command("toy", "--size", "6", "--run-id", "r", "--json").json
    (measure,) = document["results"][0]["measures"]
    assert (document["suite"], measure["name"], measure["value"], measure["n"]) == ("toy", "even", 0.5, 6)
    report = command.folder / "results" / "r"
    assert json.loads((report / "report.json").read_text()) == document
    assert "numbers that are even" in (report / "report.md").read_text()
    assert "even" in command("results", "r").out
    first = command("export", "r", "--format", "json").json[0]["item"]
    assert command("show", "r", first, "--json").json["suite"] == "toy"
    assert "even=" in command("show", "r", first).out
    assert command("toy", "--threshold", "even=0.9").code == 3


def test_a_case_without_a_question_is_shown_without_empty_sections(command: Command) -> None:
    command("toy", "--size", "2", "--run-id", "r")
    titles = set(command("show", "r", "0").out.splitlines())
    assert "Scores" in titles
    assert not titles & {"Question", "Expected"}


def test_a_killed_toy_run_is_resumed_and_not_changed(command: Command) -> None:
    assert command.killed("toy", "--size", "5", "--run-id", "r", at=4)
    changed = command("toy", "--resume", "r", "--size", "6")
    assert changed.code == 2
    assert "--size" in changed.err
    document = command("toy", "--resume", "r", "--json").json
    assert document["counts"]["scored"] == 5 == document["counts"]["planned"]


def test_python_runs_the_toy_suite_by_its_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert memorybench.run("toy", size=2).measure("counter", "even").value == 0.5
