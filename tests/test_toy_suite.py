"""A suite from another package: one folder and one entry point give it a command, resume, --json and a report."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent / "suite_package"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The toy package, installed into a folder of its own."""
    folder = tmp_path_factory.mktemp("suite")
    subprocess.run(["cp", "-r", str(PACKAGE), str(folder / "source")], check=True)  # building leaves files behind
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *offline, "--target", str(folder / "site")]
    done = subprocess.run([*command, str(folder / "source")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {**os.environ, "PYTHONPATH": str(folder / "site"), "COLUMNS": "100"}


def memorybench(environment: dict[str, str], folder: Path, *arguments: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "memorybench", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def test_a_toy_suite_has_a_command_with_flags_from_its_spec(environment: dict[str, str], tmp_path: Path) -> None:
    help_text = memorybench(environment, tmp_path, "toy", "--help")
    assert "--size N" in help_text
    assert "Set the number of cases (default: 4)" in help_text
    assert "--resume RUN" in help_text
    schema = json.loads(memorybench(environment, tmp_path, "schema", "toy"))
    assert schema["properties"]["size"]["minimum"] == 1
    listing = json.loads(memorybench(environment, tmp_path, "list", "--suites", "--json"))
    assert "toy" in [entry["name"] for entry in listing]


def test_a_toy_suite_has_json_thresholds_and_reports(environment: dict[str, str], tmp_path: Path) -> None:
    document = json.loads(memorybench(environment, tmp_path, "toy", "--size", "6", "--run-id", "r", "--json"))
    (measure,) = document["results"][0]["measures"]
    assert (document["suite"], measure["name"], measure["value"], measure["n"]) == ("toy", "even", 0.5, 6)
    report = tmp_path / "results" / "r"
    assert json.loads((report / "report.json").read_text()) == document
    assert "numbers that are even" in (report / "report.md").read_text()
    assert "even" in memorybench(environment, tmp_path, "results", "r")
    memorybench(environment, tmp_path, "toy", "--threshold", "even=0.9", code=3)


def test_a_killed_toy_run_is_resumed_and_not_changed(environment: dict[str, str], tmp_path: Path) -> None:
    killed = {**environment, "MEMORYBENCH_FAULT_AT": "4"}
    memorybench(killed, tmp_path, "toy", "--size", "5", "--run-id", "r", code=-9)
    message = memorybench(environment, tmp_path, "toy", "--resume", "r", "--size", "6", code=2)
    assert "--size" in message
    document = json.loads(memorybench(environment, tmp_path, "toy", "--resume", "r", "--json"))
    assert document["counts"]["scored"] == 5 == document["counts"]["planned"]


def test_python_runs_the_toy_suite_by_its_spec(environment: dict[str, str], tmp_path: Path) -> None:
    code = "import memorybench; print(memorybench.run('toy', size=2).measure('counter', 'even').value)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert done.stdout.strip() == "0.5", done.stderr
