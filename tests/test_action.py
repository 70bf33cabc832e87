"""The GitHub Action: its file is valid, its flags exist, and its steps do what they say."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from memorybench.cli.main import verb_parser

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
INPUTS = {
    "COMMAND": "eval",
    "ARGUMENTS": "",
    "THRESHOLD": "",
    "BASELINE": "",
    "MAX_DROP": "",
    "RESULTS": "results",
    "BUNDLE": "true",
}
DEFAULTS = {name: given["default"] for name, given in ACTION["inputs"].items()}


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """The environment that GitHub gives to a step."""
    (tmp_path / "bin").mkdir()
    return {
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "step_summary.md"),
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_REPOSITORY": "someone/agent",
    }


def perform(name: str, runner: dict[str, str], folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run a step as GitHub does: its script in a file, its inputs in the environment."""
    step, suffix = STEPS[name], {"bash": "sh", "python": "py"}[STEPS[name]["shell"]]
    script = folder / f"step.{suffix}"
    script.write_text(step["run"], encoding="utf-8")
    command = {"bash": ["bash", "-e", "-o", "pipefail"], "python": [sys.executable]}[step["shell"]]
    return subprocess.run(
        [*command, str(script)], env={**runner, **inputs}, cwd=folder, capture_output=True, text=True, check=False
    )


def stub(runner: dict[str, str], program: str, replies: str) -> Path:
    """A program on the path that writes its arguments to a file."""
    folder = Path(runner["PATH"].split(os.pathsep)[0])
    calls = folder / f"{program}.calls"
    file = folder / program
    file.write_text(f'#!/bin/sh\necho "$@" >> "{calls}"\n{replies}\n', encoding="utf-8")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return calls


def test_every_step_runs_something_and_every_input_is_used() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert all(("run" in step) != ("uses" in step) for step in STEPS.values())
    assert all(step.get("shell") for step in STEPS.values() if "run" in step)
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert [name for name in DEFAULTS if f"inputs.{name}" not in text] == []


def test_no_input_is_part_of_a_script() -> None:
    assert [name for name, step in STEPS.items() if "${{" in step.get("run", "")] == []


def test_every_flag_of_the_action_and_of_its_page_exists() -> None:
    known = {flag for verb in ("eval", "bundle") for flag in verb_parser("memorybench", verb)._option_string_actions}
    used = set(re.findall(r'"(--[a-z-]+)"', STEPS["Run memorybench"]["run"]))
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    used |= set(re.findall(r"`(--[a-z-]+)", page)) | set(re.findall(r"memorybench eval.*?(--[a-z-]+)", page))
    assert len(used) >= 5
    assert used - known - {"--format"} == set()


def test_the_example_of_the_page_uses_inputs_that_exist() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    examples = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    steps: list[dict[str, Any]] = [
        step for example in examples for job in example["jobs"].values() for step in job["steps"]
    ]
    used = {name for step in steps if "memorybench" in step.get("uses", "") for name in step["with"]}
    assert used
    assert used <= set(DEFAULTS)


@pytest.mark.slow
@pytest.mark.parametrize(("threshold", "code"), [("recall@5=0", 0), ("recall@5=0 recall@10=1.0", 3)])
def test_a_run_leaves_the_exit_code_and_the_files(
    runner: dict[str, str], tmp_path: Path, threshold: str, code: int
) -> None:
    arguments = "--providers bm25 --end 4 --run-id 'r'"
    inputs = {**INPUTS, "ARGUMENTS": arguments, "THRESHOLD": threshold}
    done = perform("Run memorybench", runner, tmp_path, **inputs)
    assert done.returncode == 0, done.stderr
    report = tmp_path / "memorybench-report"
    assert (tmp_path / "output").read_text().splitlines() == [f"exit-code={code}", f"report={report}"]
    assert (tmp_path / "results" / "r" / "report.md").exists()
    assert "<testsuites" in (report / "junit.xml").read_text(encoding="utf-8")
    summary = (report / "summary.md").read_text(encoding="utf-8")
    assert (tmp_path / "step_summary.md").read_text(encoding="utf-8") == summary
    verified = subprocess.run(
        [sys.executable, "-m", "memorybench", "verify", str(report / "run.mbz")],
        env=runner,
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert verified.returncode == 0
    assert perform("Pass or fail", runner, tmp_path, CODE=str(code)).returncode == code


@pytest.mark.slow
def test_a_run_is_compared_with_its_baseline(runner: dict[str, str], tmp_path: Path) -> None:
    first = {**INPUTS, "ARGUMENTS": "--providers bm25 --end 24 --run-id main", "BASELINE": "baseline/results/main"}
    done = perform("Run memorybench", runner, tmp_path, **{**first, "RESULTS": "baseline/results"})
    assert "::warning::" in done.stdout  # the first run of a repository has no baseline
    worse = {**first, "ARGUMENTS": "--providers bm25 --end 24 --top-k 1 --run-id r", "MAX_DROP": "3 recall@10=5"}
    perform("Run memorybench", runner, tmp_path, **worse)
    assert [line for line in (tmp_path / "output").read_text().splitlines() if "code" in line] == [
        "exit-code=0",
        "exit-code=3",
    ]
    assert "baseline missed" in (tmp_path / "memorybench-report" / "summary.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_an_input_is_never_run_as_a_command(runner: dict[str, str], tmp_path: Path) -> None:
    hostile = "--providers $(touch planted) `touch planted` ; touch planted"
    assert perform("Run memorybench", runner, tmp_path, **{**INPUTS, "ARGUMENTS": hostile}).returncode == 0
    assert "exit-code=2" in (tmp_path / "output").read_text()
    assert not (tmp_path / "planted").exists()


def test_a_build_fails_if_the_run_did_not_even_start(runner: dict[str, str], tmp_path: Path) -> None:
    assert perform("Pass or fail", runner, tmp_path, CODE="").returncode == 1


@pytest.mark.parametrize(
    ("install", "extras", "expected"),
    [
        ("action", "embed", f"-m pip install {ROOT}[embed]"),
        ("action", "", f"-m pip install {ROOT}"),
        ("memorybench==0.2", "embed", "-m pip install memorybench==0.2"),
    ],
)
def test_the_chosen_version_is_installed(
    runner: dict[str, str], tmp_path: Path, install: str, extras: str, expected: str
) -> None:
    calls = stub(runner, "python", "")
    assert perform("Install memorybench", runner, tmp_path, INSTALL=install, EXTRAS=extras).returncode == 0
    assert calls.read_text().strip() == expected


@pytest.mark.parametrize(("earlier", "request_line"), [("", "--method POST"), ("echo 17", "--method PATCH")])
def test_a_comment_is_written_once_and_then_replaced(
    runner: dict[str, str], tmp_path: Path, earlier: str, request_line: str
) -> None:
    (tmp_path / "summary.md").write_text("# Report\n", encoding="utf-8")
    calls = stub(runner, "gh", f'case "$*" in *--jq*) {earlier or ":"} ;; esac')
    inputs = {"GH_TOKEN": "token", "NUMBER": "5", "REPORT": str(tmp_path)}
    assert perform("Comment on the pull request", runner, tmp_path, **inputs).returncode == 0
    assert request_line in calls.read_text().splitlines()[-1]
    assert (tmp_path / "comment.md").read_text(encoding="utf-8") == "<!-- memorybench -->\n# Report\n"
