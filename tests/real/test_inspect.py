"""Exported logs, read by inspect_ai itself and served by its viewer."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from memorybench.cli.main import main
from memorybench.core.trials import Failure
from tests.suites.recorded import record, scored, undone

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its many dependencies warn about is not ours to mend
    inspect_log = pytest.importorskip("inspect_ai.log", reason="inspect-ai is not installed: pip install inspect-ai")

pytestmark = [
    pytest.mark.real,
    pytest.mark.usefixtures("leftovers_collected"),
    pytest.mark.filterwarnings("ignore"),
]

INSPECT = [sys.executable, "-c", "from inspect_ai._cli.main import main; main()"]
ENVIRONMENT = {**os.environ, "PYTHONWARNINGS": "ignore", "NO_COLOR": "1"}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of an answered run, of one without answers, and of one where things went wrong."""
    folder = tmp_path_factory.mktemp("inspect")
    results = folder / "results"
    common = ["--limit", "12", "--output", str(results)]
    answering = ["--answering-model", "scripted/quote", "--judge-model", "scripted/judge"]
    assert main(["eval", "--providers", "bm25", "none", "--run-id", "answered", *answering, *common]) == 0
    assert main(["eval", "--providers", "full-context", "--run-id", "found", "--answering-model", "none", *common]) == 0
    outcomes = [
        scored("q1", 0.25),
        scored("q1", 1.0, variant="again"),
        undone("q2", "failed", Failure(kind="Malformed", message="no JSON", traceback="line 1")),
        undone("q3", "unscored", Failure(kind="Unreadable", message="perhaps")),
    ]
    record(results, outcomes, "partial", id="troubled")
    record(results, outcomes[2:3], id="hopeless")
    for run in ("answered", "found", "troubled", "hopeless"):
        told = ["--format", "inspect", "--results", str(results), "--output", str(folder / "logs")]
        assert main(["export", run, *told]) == 0
    return folder / "logs"


def read(logs: Path, run: str, memory: str) -> Any:
    found = [inspect_log.read_eval_log(str(path)) for path in logs.iterdir()]
    (log,) = [log for log in found if log.eval.run_id == run and log.eval.solver == memory]
    return log


def test_inspect_reads_every_log_whole_and_by_its_header(logs: Path) -> None:
    listed = inspect_log.list_eval_logs(str(logs))
    assert len(listed) == 5 == len(list(logs.iterdir()))
    for info in listed:
        whole = inspect_log.read_eval_log(info)
        header = inspect_log.read_eval_log(info, header_only=True)
        assert (info.task, info.task_id) == (whole.eval.task, whole.eval.task_id)
        assert (header.eval, header.results, header.stats) == (whole.eval, whole.results, whole.stats)
        assert header.samples is None
        assert len(whole.samples) == whole.results.logged_samples


def test_samples_and_figures_arrive_as_they_were_exported(logs: Path) -> None:
    log = read(logs, "answered", "bm25")
    assert (log.version, log.status, log.eval.task, log.eval.model) == (2, "success", "starter", "scripted/quote")
    assert log.eval.dataset.sample_ids == [sample.id for sample in log.samples]
    assert len(log.samples) == 12
    right = [sample.scores["correct"].value for sample in log.samples]
    assert log.results.scores[0].metrics["accuracy"].value == right.count("C") / 12
    assert all(sample.output.completion == sample.messages[-1].text != "" for sample in log.samples)
    assert all(sample.target for sample in log.samples)
    assert read(logs, "found", "full-context").eval.model == "none"


def test_errors_are_in_the_fields_that_inspect_reads(logs: Path) -> None:
    log = read(logs, "troubled", "shelf")
    assert log.status == "cancelled"
    assert [(sample.id, sample.epoch) for sample in log.samples] == [("q1", 1), ("q1", 2), ("q2", 1), ("q3", 1)]
    assert [sample.error and sample.error.message for sample in log.samples] == [None, None, "Malformed: no JSON", None]
    assert log.stats.model_usage["scripted/quote"].total_cost == 0.25
    hopeless = read(logs, "hopeless", "shelf")
    assert (hopeless.status, hopeless.error.message) == ("error", "Malformed: no JSON")


def test_nothing_is_lost_when_inspect_writes_the_log_again(logs: Path, tmp_path: Path) -> None:
    for path in logs.iterdir():
        again = tmp_path / f"{path.stem}.eval"  # its own binary format
        inspect_log.write_eval_log(inspect_log.read_eval_log(str(path)), str(again))
        first, second = (inspect_log.read_eval_log(str(one)) for one in (path, again))
        for log in (first, second):
            log.samples.sort(key=lambda sample: sample.uuid)  # it has an order of its own
        assert first.model_dump(mode="json") == second.model_dump(mode="json")


def test_the_command_lists_and_dumps_them(logs: Path) -> None:
    listed = json.loads(inspect("log", "list", "--json", "--log-dir", str(logs), cwd=logs.parent))
    assert len(listed) == 5
    for path in logs.iterdir():
        dumped = json.loads(inspect("log", "dump", str(path), cwd=logs.parent))
        assert len(dumped["samples"]) == len(json.loads(path.read_text(encoding="utf-8"))["samples"])


def test_the_viewer_serves_them(logs: Path, viewer: str) -> None:
    served = fetch(f"{viewer}/api/logs")["files"]
    assert len(served) == 5
    for one in served:
        log = fetch(f"{viewer}/api/logs/{quote(one['name'], safe='')}")
        assert log["version"] == 2
        assert log["samples"]


@pytest.fixture
def viewer(logs: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["view", "start", "--log-dir", str(logs), "--host", "127.0.0.1", "--port", str(port)]
    with (logs.parent / "viewer.log").open("wb") as said:
        server = subprocess.Popen([*INSPECT, *command], stdout=said, stderr=said, cwd=logs.parent, env=ENVIRONMENT)
        try:
            while True:
                try:
                    fetch(f"http://127.0.0.1:{port}/api/logs")
                    break
                except URLError:
                    assert server.poll() is None, (logs.parent / "viewer.log").read_text()
                    time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait()


def inspect(*arguments: str, cwd: Path) -> str:
    done = subprocess.run([*INSPECT, *arguments], capture_output=True, text=True, cwd=cwd, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fetch(address: str) -> Any:
    with urlopen(address) as reply:
        return json.load(reply)
