"""A folder from a stranger: no verb starts, imports, sends or writes what its files name without consent."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memorybench.catalog.files import DATA
from memorybench.cli.main import MEMAUDIT_VERBS, VERBS
from tests.cli.command import Command
from tests.doubles import hostile_folder
from tests.doubles.hostile_folder import ENVIRONMENT, SENTINEL, everything, hostile_runs
from tests.doubles.stub import Stub, reply

RUNNER = Path(__file__).with_name("hostile_runner.py")
Report = dict[str, Any]


def commands(folder: Path) -> Iterator[list[str]]:
    """Every verb, on every hostile name that it takes."""
    configs = everything(folder / "harm", "")
    for name in configs["provider"]:
        yield ["eval", "--providers", name, "--limit", "1"]
        yield ["eval", "--providers", name, "--limit", "1", "--dry-run"]
        yield ["extraction", "run", "--extractor", name, "--limit", "1"]
    for name in ("adapter-file", "mcp-command", "header"):
        yield ["audit", str(DATA / "sample-dataset.json"), "--provider", name, "--model", "scripted/echo"]
    yield ["audit", "probes", "data.json"]
    yield ["audit", "probes", str(DATA / "sample-dataset.json"), "--probes", "data.json", "--probe-model", "stranger"]
    for name in configs["benchmark"]:
        yield ["eval", "--benchmarks", name, "--providers", "bm25"]
        yield ["data", "pull", name]
        yield ["data", "preview", name]
        yield ["data", "preview", f"benchmarks/configs/{name}.yaml"]
        yield ["judge", "calibrate", "labels.jsonl", "--benchmark", name, "--judge-model", "scripted/echo"]
    for name in configs["extractor"]:
        yield ["extraction", "run", "--extractor", name, "--limit", "1"]
    yield ["extraction", "run", "--extractor", "evil:evil"]
    yield ["extraction", "run", "--extractor", "./evil.py:evil"]
    yield ["extraction", "online", "--source", "jsonl", "data.json", "--judge-model", "scripted/echo"]
    for name in configs["store"]:
        yield ["hygiene", "run", "memory-skip-local", "--store", name]
        yield ["hygiene", "forget", "--store", name]
        yield ["hygiene", "corrections", "--store", name]
    yield ["online", "data.json", "--judge-model", "scripted/echo"]
    yield ["online", ".", "--judge-model", "scripted/echo"]
    yield ["online", "receive", "--output", "results/spans", "--port", "0", "--for", "1s"]
    yield ["hygiene", "record", "--store", "s-mcp-command", "--", "true"]
    for name in configs["agent"]:
        paid = ["--agent-turn", "--i-understand-model-cost"]
        yield ["hygiene", "run", "memory-skip-local", "--agent", name, *paid]
    yield ["hygiene", "run", "stranger"]
    yield ["hygiene", "list"]
    yield ["hygiene", "scan", "."]
    yield ["hygiene", "scan", "--store", "s-mcp-command"]
    for kind, names in configs.items():
        for name in names:
            yield ["describe", name, "--kind", kind]
            yield ["describe", name, "--kind", kind, "--yaml"]
            yield ["validate", f"{kind}s/configs/{name}.yaml"]
    verbs = {"bench": ["eval"], "audit": ["audit"], "extraction": ["extraction", "run"], "hygiene": ["hygiene", "run"]}
    for run, (suite, _) in hostile_runs(folder / "harm").items():
        yield [*verbs[suite], "--resume", run, "--output", "results"]
        yield ["results", run]
        yield ["export", run]
        yield ["report", run]
        yield ["plot", run]
        yield ["show", run, "q1"]
        yield ["compare", run, "r-evaluator"]
        yield ["bundle", run, "--output", f"results/{run}.mbz"]
        yield ["verify", f"results/{run}.mbz"]
        yield ["verify", f"results/{run}.mbz", "--rejudge", "scripted/judge", "--sample", "2"]
        yield ["runs", "tag", run, "seen"]
    yield ["keygen", "results/signing-key"]
    yield ["leaderboard", "results", "--output", "results/site"]
    yield ["score", "r-evaluator", "--judge-model", "scripted/echo"]
    yield from (["validate", name] for name in ("results/results.db", "scenarios/stranger.json", "data.json"))
    yield from (["list"], ["list", "--json"], ["doctor"], ["results"], ["data", "list"], ["data", "verify"])
    yield from (["schema", "provider"], ["completion", "bash"])
    for kind in ("provider", "benchmark", "extractor"):
        yield ["init", kind, next(iter(configs[kind]))]  # exists already
    yield ["init", "provider", "new", "--probe", "http://127.0.0.1:9"]
    yield ["merge", "results", "--run-id", "merged"]
    yield ["worker", "--journal", "postgresql://127.0.0.1:1/results"]
    yield ["view", "../../etc", "--no-browser"]  # refused; tests/view has the pages of hostile runs


def snapshot(folder: Path) -> dict[str, str]:
    """The content of every file, without the results."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "results" not in path.relative_to(folder).parts[0]
    }


@pytest.fixture
def server() -> Iterator[Stub]:
    with Stub() as stub:
        stub.always(reply({"results": []}))
        yield stub


def environment(folder: Path, home: Path) -> dict[str, str]:
    """The user's: keys, a home, and nothing that points into the stranger's folder."""
    (home / "tmp").mkdir(parents=True)
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**kept, **ENVIRONMENT, "HOME": str(home), "TMPDIR": str(home / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.mark.parametrize("thorough", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_verb_runs_or_sends_anything_without_consent(tmp_path: Path, server: Stub, thorough: bool) -> None:
    folder, home = tmp_path / "stranger", tmp_path / "home"
    folder.mkdir()
    hostile_folder.write(folder, server.url)
    hostile_folder.write_results(folder, hostile_runs(folder / "harm"))
    before = snapshot(folder)
    every = list(commands(folder))
    if not thorough:  # each verb with its first arguments, and some of the rest
        every = [*{one[0]: one for one in reversed(every)}.values(), *every[3::12]]
    finished = subprocess.run(
        [sys.executable, "-P", str(RUNNER), str(folder)],
        input=json.dumps(every),
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(folder, home) | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    reports: list[Report] = json.loads(finished.stdout)
    assert len(reports) == len(every)
    assert [report for report in reports if report["events"] and report["arguments"] != ["doctor"]] == []
    asked_docker = [event for report in reports for event in report["events"]]
    assert all("'version'" in event[-1] for event in asked_docker)  # doctor asks whether the user's Docker answers
    assert [report for report in reports if SENTINEL in report["err"]] == []
    assert snapshot(folder) == before
    sent = [
        call for call in server.calls if SENTINEL in f"{call.path}{dict(call.query)}{dict(call.headers)}{call.body!r}"
    ]
    assert sent == []
    verbs = {report["arguments"][0] for report in reports}
    assert verbs == {*VERBS, *MEMAUDIT_VERBS}, "a new verb is tried, too"


EVAL = ("eval", "--providers", "none", "--end", "2", "--run-id", "r")


@pytest.mark.parametrize("target", ["../../private", "link", "\udcff"])
def test_a_mark_of_a_rename_moves_nothing_out_of_the_results_folder(command: Command, target: str) -> None:
    private = command.folder / "private"
    private.mkdir()
    assert command(*EVAL).code == 0
    evil = command.folder / "results" / "evil"
    evil.mkdir()
    (evil / "config").write_text("hostile")
    (evil / ".change").write_text(f"rename {target}\n", "utf-8", "surrogateescape")
    (command.folder / "results" / "link").symlink_to(private)
    assert command("runs").code == 0
    assert (evil / "config").exists()
    assert list(private.iterdir()) == []


def test_a_file_with_the_name_of_a_mark_deletes_nothing(command: Command) -> None:
    assert command(*EVAL).code == 0
    notes = command.folder / "results" / "notes"
    notes.mkdir()
    (notes / ".change").write_text("archived\n")
    (notes / "plan.txt").write_text("mine")
    assert command("runs").code == 0
    assert (notes / "plan.txt").read_text() == "mine"


def test_a_folder_with_the_name_of_a_mark_does_not_become_that_of_a_run(command: Command) -> None:
    assert command(*EVAL).code == 0
    page = command.folder / "results" / "web" / "index.html"
    page.parent.mkdir()
    (page.parent / ".change").write_text("x\n")
    page.write_text("mine")
    assert command("runs").code == 0
    assert sorted(path.name for path in page.parent.iterdir()) == [".change", "index.html"]
    assert command(*EVAL[:-1], "web").code == 2
    assert page.read_text() == "mine"


@pytest.mark.parametrize("name", ["report.md", ".report.md.part", ".lock"])
def test_no_file_outside_the_results_folder_is_written_through_a_link(command: Command, name: str) -> None:
    assert command(*EVAL).code == 0
    private = command.folder / "private"
    private.write_text("mine")
    planted = command.folder / "results" / "r" / name
    planted.unlink(missing_ok=True)
    planted.symlink_to(private)
    assert command("report", "r").code == (2 if name == ".lock" else 0)
    assert private.read_text() == "mine"


def test_a_report_is_written_into_a_pipe(command: Command) -> None:
    assert command(*EVAL).code == 0
    pipe = command.folder / "pipe"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with open(end) as received:
        assert command("export", "r", "--format", "csv", "--output", "pipe").code == 0
        assert received.readline().startswith("run")


def test_python_m_imports_nothing_from_the_working_folder(tmp_path: Path) -> None:
    folder, home = tmp_path / "stranger", tmp_path / "home"
    folder.mkdir()
    hostile_folder.write(folder, "http://127.0.0.1:1")
    finished = subprocess.run(
        [sys.executable, "-m", "memorybench", "list", "--suites", "--json"],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(folder, home),
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert {row["name"] for row in json.loads(finished.stdout)} == {"bench", "audit", "extraction", "online", "hygiene"}
    assert not (folder / "harm").exists()
