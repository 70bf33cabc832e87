"""Runs on real Ray clusters: one that `--ray local` starts, and one that is addressed. Skipped where Ray is missing."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memorybench.journal.places import journal_of, results_folder
from memorybench.journal.run_reader import RunReader
from tests.cli.command import Command, measured
from tests.cli.test_extraction import KNOWN
from tests.doubles.stub import Call, Stub, completion, status

pytest_plugins = ("tests.real.local_postgres",)
pytestmark = pytest.mark.real
pytest.importorskip("ray", reason="Ray is not installed")

ROOT = Path(__file__).parents[2]
KEY = "sk-sentinel-0123456789"
RUN = "shared"
CONCURRENCY = 2
EVAL = ("eval", "--providers", "bm25", "--limit", "120", "--answering-model", "gpt-4o", "--seed", "1")
ENVIRONMENT = {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "t" * 64}
LOCAL = ("--ray", "local", "--workers", "4", "--cpus-per-worker", "0.25", "--concurrency", f"{CONCURRENCY}")


@pytest.fixture
def journal(postgres: str) -> str:
    """The address of an empty database."""
    import psycopg

    with psycopg.connect(f"{postgres}postgres", autocommit=True) as db:
        db.execute("DROP DATABASE IF EXISTS ray_journal WITH (FORCE)")
        db.execute("CREATE DATABASE ray_journal")
    return f"{postgres}ray_journal"


class SlowModel(Stub):
    """A model that takes 20 ms per call, and can let calls wait."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.02
        self.waits_after: int | None = None
        self.released = threading.Event()
        self.waiting = 0
        self.always(self._answer)

    async def _answer(self, request: Any, call: Call) -> Any:
        if self.waits_after is not None and len(self.calls) > self.waits_after:
            self.waiting += 1
            await asyncio.to_thread(self.released.wait)
        await asyncio.sleep(self.seconds)
        return await completion(hashlib.sha256(call.body).hexdigest()[:8])(request, call)

    def prompts(self) -> list[str]:
        return [call.json["messages"][-1]["content"] for call in self.calls]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowModel]:
    with SlowModel() as model:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{model.url}/v1")
        yield model


@pytest.fixture(scope="module")
def ray_folder() -> Iterator[Path]:
    """A folder with a short name: Ray makes sockets in it."""
    folder = Path(tempfile.mkdtemp(prefix="mb-ray-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


class Process:
    """A command in a process of its own."""

    def __init__(self, folder: Path, ray_folder: Path, *arguments: str) -> None:
        environment = {**os.environ, **ENVIRONMENT, "RAY_TMPDIR": str(ray_folder)}
        self._child = subprocess.Popen(
            [sys.executable, "-m", "memorybench", *arguments],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pid = self._child.pid

    def wait(self) -> tuple[int, str, str]:
        out, err = self._child.communicate()
        return self._child.returncode, out, err

    def read_error_until(self, text: str) -> bool:
        """Read standard error up to a line with this text; False if it ended before."""
        assert self._child.stderr is not None
        return any(text in line for line in iter(self._child.stderr.readline, ""))

    def send(self, number: signal.Signals) -> None:
        self._child.send_signal(number)

    @property
    def has_ended(self) -> bool:
        return self._child.poll() is not None


def wait_until(model: SlowModel, process: Process, waiting: int) -> None:
    """Return when so many calls wait for the model: fewer than the histories allow, or one would be sent again."""
    while model.waiting < waiting:
        assert not process.has_ended, process.wait()
        time.sleep(0.05)


def workers_of(journal: str, without: int) -> list[int]:
    """The ids of processes that are connected to the journal."""
    import psycopg

    sql = "SELECT DISTINCT application_name FROM pg_stat_activity WHERE application_name LIKE 'memorybench %'"
    with psycopg.connect(journal) as db:
        names = [name for (name,) in db.execute(sql)]
    return [pid for name in names if (pid := int(name.split()[-1])) not in (without, os.getpid())]


def committed_prompts(journal: str) -> set[str]:
    with closing(journal_of(results_folder(Path(), journal)).open_for_reading()) as db:
        rows = db.rows("SELECT inputs FROM steps WHERE name = 'answer'", (), many=True)
        return {json.loads(row["inputs"])["prompt"] for row in rows}


def single_process(command: Command) -> str:
    """The figures of a run that one process performs."""
    said = command(*EVAL, "--run-id", "alone", "--output", "alone", "--json")
    assert said.code == 0, said.err
    return figures(said.json)


def figures(document: Mapping[str, Any]) -> str:
    """A report without its circumstances, its time and the number of calls that were in flight at a kill."""
    without = ("possibly_charged_twice", "timestamp")
    return measured({name: value for name, value in document.items() if name not in without})


def assert_nothing_was_repeated(prompts: list[str], before: int, committed: set[str], kills: int) -> None:
    """`committed` are the prompts that were recorded when the model had got the first `before` prompts."""
    assert committed
    assert not committed & set(prompts[before:]), "no committed call is repeated"
    places = {prompt: [place for place, one in enumerate(prompts) if one == prompt] for prompt in set(prompts)}
    repeated = sorted(found for found in places.values() if len(found) > 1)
    assert sum(len(found) - 1 for found in repeated) <= CONCURRENCY * kills, (before, repeated)


def test_ray_starts_a_killed_worker_again_and_the_run_completes(
    command: Command, journal: str, model: SlowModel, ray_folder: Path
) -> None:
    model.waits_after = 40
    driver = Process(command.folder, ray_folder, *EVAL, "--run-id", RUN, "--journal", journal, *LOCAL, "--json")
    wait_until(model, driver, waiting=3)
    before, committed = len(model.calls), committed_prompts(journal)
    workers = workers_of(journal, driver.pid)
    assert len(workers) == 4
    os.kill(workers[0], signal.SIGKILL)
    model.released.set()
    code, out, err = driver.wait()
    assert code == 0, err
    assert "Ray started it again" in err
    assert_nothing_was_repeated(model.prompts(), before, committed, kills=1)
    with RunReader.open(results_folder(Path(), journal)) as run_reader:
        assert run_reader.run(RUN).status == "complete"
        assert run_reader.possibly_charged_twice(RUN) <= CONCURRENCY
    assert KEY not in out + err
    assert figures(json.loads(out)) == single_process(command)


def test_workers_without_ray_do_the_same(command: Command, journal: str, model: SlowModel, ray_folder: Path) -> None:
    at = ("--journal", journal)
    assert command.killed(*EVAL, "--run-id", RUN, *at, at=9), "a run without a driver"
    made = len(model.calls)
    model.waits_after = made + 40
    work = ("worker", *at, "--run", RUN, "--concurrency", f"{CONCURRENCY}")
    workers = [Process(command.folder, ray_folder, *work) for _ in range(4)]
    wait_until(model, workers[0], waiting=3)
    before, committed = len(model.calls), committed_prompts(journal)
    os.kill(workers[3].pid, signal.SIGKILL)
    workers.append(Process(command.folder, ray_folder, *work))
    model.released.set()
    ended = [worker.wait() for worker in workers]
    assert [code for code, _, _ in ended] == [0, 0, 0, -signal.SIGKILL, 0], ended
    assert_nothing_was_repeated(model.prompts()[made:], before - made, committed, kills=1)
    figures_of_run = figures(command("results", RUN, *at, "--json").json)
    assert figures_of_run == single_process(command)


def test_a_worker_does_not_repeat_the_failures_of_a_complete_run(
    command: Command, journal: str, model: SlowModel
) -> None:
    """A supervisor that starts ended workers again must not spend anything."""
    model.always(status(400))
    at = ("--journal", journal)
    assert command(*EVAL[:3], "--limit", "4", *EVAL[5:], "--run-id", RUN, *at).code == 1
    calls = len(model.calls)
    joined = command("worker", *at, "--run", RUN, "--json")
    assert (joined.code, joined.json) == (0, {"run": RUN, "performed": 0, "status": "complete"})
    assert len(model.calls) == calls


def test_a_worker_needs_consent_and_leaves_the_run_to_others_without_it(
    command: Command, journal: str, model: SlowModel
) -> None:
    at, consent = ("--journal", journal), ("--agent-turn", "--i-understand-model-cost")
    agent = ("hygiene", "run", "memory-skip-local", "--agent", "builtin", "--model", "gpt-4o-mini")
    assert command.killed(*agent, *consent, "--run-id", RUN, *at, at=2)
    calls = len(model.calls)
    assert command("worker", *at, "--run", RUN).code == 2
    assert len(model.calls) == calls
    assert command("runs", *at, "--json").json[0]["status"] == "partial", "the run is not recorded as blocked"
    assert command("worker", *at, "--run", RUN, *consent, "--json").json["status"] == "complete"


def test_sigterm_drains_the_workers_and_the_run_resumes(
    command: Command, journal: str, model: SlowModel, ray_folder: Path
) -> None:
    model.waits_after = 40
    at = ("--journal", journal)
    driver = Process(command.folder, ray_folder, *EVAL, "--run-id", RUN, *at, *LOCAL)
    wait_until(model, driver, waiting=3)
    driver.send(signal.SIGTERM)
    model.seconds = 1.0  # slow, so that calls are left when the workers stop
    model.released.set()
    code, out, err = driver.wait()
    assert code == 130, err
    assert f"--resume {RUN}" in out
    assert "--ray local --workers 4 --cpus-per-worker 0.25" in out
    calls, committed = model.prompts(), committed_prompts(journal)
    assert committed == set(calls), "calls in flight were finished and recorded"
    model.seconds = 0.02
    resumed = Process(command.folder, ray_folder, "eval", "--resume", RUN, *at, *LOCAL, "--json")
    code, out, err = resumed.wait()
    assert code == 0, err
    assert max(Counter(model.prompts()).values()) == 1, "no call is repeated"
    assert figures(json.loads(out)) == single_process(command)


def test_a_second_signal_kills_the_workers_and_names_the_command_that_resumes(
    command: Command, journal: str, model: SlowModel, ray_folder: Path
) -> None:
    model.waits_after = 40
    at = ("--journal", journal)
    driver = Process(command.folder, ray_folder, *EVAL, "--run-id", RUN, *at, *LOCAL)
    wait_until(model, driver, waiting=3)
    workers = workers_of(journal, without=driver.pid)
    driver.send(signal.SIGTERM)
    assert driver.read_error_until("again stops at once")
    driver.send(signal.SIGTERM)
    code, _, err = driver.wait()
    assert code == 130, err
    [resume] = [line for line in err.splitlines() if f"--resume {RUN}" in line]  # Ray may print lines after it
    assert "--ray local --workers 4 --cpus-per-worker 0.25" in resume
    while any(is_running(pid) for pid in workers):  # a process that is killed takes a moment to end
        time.sleep(0.01)
    model.released.set()


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Cluster:
    """A Ray cluster that `ray start` made, as an administrator does. Its processes have no keys of the user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        program = Path(sys.executable).parent / "ray"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
        environment = {**kept, **ENVIRONMENT}
        options = ["--num-cpus", "4", "--include-dashboard", "false", "--disable-usage-stats", "--block"]
        self._log = (folder / "cluster.log").open("w")
        self._child = subprocess.Popen(
            [program, "start", "--head", "--port", str(port), "--temp-dir", str(folder), *options],
            cwd=folder,
            env=environment,
            stdout=self._log,
            stderr=self._log,
        )
        while not self._is_ready(port):
            assert self._child.poll() is None, (folder / "cluster.log").read_text()
            time.sleep(0.1)

    def _is_ready(self, port: int) -> bool:
        return "Ray runtime started" in (self.folder / "cluster.log").read_text()

    def stop(self) -> None:
        self._child.terminate()
        self._child.wait()
        self._log.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="mb-ray-"))
    cluster = Cluster(folder)
    yield cluster
    cluster.stop()
    shutil.rmtree(folder, ignore_errors=True)


def on(cluster: Cluster, journal: str, *more: str) -> tuple[str, ...]:
    return ("--journal", journal, "--ray", cluster.address, "--workers", "2", *more, "--json")


def test_files_and_variables_reach_the_workers_of_a_cluster(
    command: Command, journal: str, model: SlowModel, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_KEY", KEY)
    card = {"name": "acme", "baseUrl": f"{model.url}/v1", "auth": {"type": "bearer", "envVar": "ACME_KEY"}}
    (command.folder / "models.yaml").write_text(json.dumps({"models": [card]}))
    evaluate = ("eval", "--providers", "bm25", "--limit", "12", "--answering-model", "acme")
    without = Process(command.folder, cluster.folder, *evaluate, "--run-id", RUN, *on(cluster, journal))
    code, _, err = without.wait()
    assert code == 1, err
    assert "ACME_KEY" in err.splitlines()[-1]
    assert not model.calls, "the workers lack the key"
    files = ("--ray-files", "models.yaml", "--ray-env", "ACME_KEY")
    resumed = Process(command.folder, cluster.folder, "eval", "--resume", RUN, *on(cluster, journal, *files))
    code, out, err = resumed.wait()
    assert code == 0, err
    assert {call.headers["Authorization"] for call in model.calls} == {f"Bearer {KEY}"}
    assert list(cluster.folder.rglob("working_dir_files/*/models.yaml")), "Ray has copied the file"
    alone = command(*evaluate, "--run-id", "alone", "--output", "alone", "--json")
    assert figures(json.loads(out)) == figures(alone.json)
    for file in (*cluster.folder.rglob("*"), *(command.folder / "results").rglob("*")):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file
    assert KEY not in out + err


@pytest.mark.parametrize(
    "verb",
    [
        (
            *("audit", str(ROOT / "data/sample-dataset.json"), "--limit", "8"),
            *("--model", "scripted/quote", "--judge-model", "scripted/judge"),
        ),
        ("hygiene", "run", "memory-skip-local", "--seed", "1"),
        ("extraction", "run", "--extractor", f"{KNOWN}:perfect", "--allow-code", "--limit", "8"),
    ],
    ids=["audit", "hygiene", "extraction"],
)
def test_every_suite_has_the_same_figures_on_a_cluster(
    command: Command, journal: str, cluster: Cluster, verb: tuple[str, ...]
) -> None:
    shared = Process(command.folder, cluster.folder, *verb, "--run-id", RUN, *on(cluster, journal))
    code, out, err = shared.wait()
    alone = command(*verb, "--run-id", "alone", "--output", "alone", "--json")
    assert code == alone.code in (0, 3), err
    assert figures(json.loads(out)) == figures(alone.json)


@pytest.mark.parametrize(
    ("flags", "where"),
    [
        (("--ray", "127.0.0.1:1"), "--ray"),
        (("--workers", "99"), "--workers"),
        (("--ray-env", "NOT_SET_ANYWHERE"), "--ray-env"),
        (("--ray-files", "missing.yaml"), "--ray-files"),
    ],
    ids=["unreachable", "too few CPUs", "variable", "file"],
)
def test_a_run_that_cannot_start_leaves_nothing(
    command: Command, journal: str, model: SlowModel, cluster: Cluster, flags: tuple[str, ...], where: str
) -> None:
    process = Process(command.folder, cluster.folder, *EVAL, *on(cluster, journal, *flags))
    code, out, err = process.wait()
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith(f"memorybench: {where}: ")
    assert not model.calls
    assert list(command.folder.iterdir()) == []
    assert command("runs", "--journal", journal).code == 2, "nothing was recorded"
