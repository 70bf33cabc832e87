"""Eight workers and the process of `eval` share a run; they and the server of the journal are killed at random."""

from __future__ import annotations

import asyncio
import json
import os
import random
import select
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest
from aiohttp import web

from memorybench.cli.main import main
from memorybench.journal.places import journal_of, results_folder
from memorybench.journal.run_reader import RunReader
from perf.postgres_server import PostgresServer, empty_database
from tests.cli.command import Command, measured
from tests.doubles.stub import Call, Stub, completion
from tests.real.boxes import THINGS, write_benchmark

pytest_plugins = ("tests.real.local_postgres",)
pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

WORKERS = 8
CONCURRENCY = 2
PRICE = 0.0035
"""Of one call of the stub: 1,000 tokens in and 100 out of gpt-4o."""
MODELS = ("--answering-model", "gpt-4o", "--judge-model", "gpt-4o", "--concurrency", f"{CONCURRENCY}")
EVAL = ("eval", "--benchmarks", "boxes", "--providers", "bm25", *MODELS, "--run-id", "nightly")


def digest(prompt: str) -> str:
    return sha256(prompt.encode()).hexdigest()[:16]


class Model:
    """A model in a process of its own. When a call arrives, it writes the time and the prompt's digest to a pipe.

    Its answers to questions that contain `unanswered` cannot be read.
    """

    def __init__(self, unanswered: str | None = None) -> None:
        self._unanswered = unanswered
        self.calls, self._calls = os.pipe()
        addresses, address = os.pipe()
        self._process = fork(lambda: self._serve(address))
        self.url = os.read(addresses, 100).decode()

    def close(self) -> None:
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)

    def _serve(self, address: int) -> None:
        with Stub() as stub:
            stub.always(self._answer)
            os.write(address, f"{stub.url}/v1".encode())
            signal.pause()

    async def _answer(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        prompt = call.json["messages"][-1]["content"]
        os.write(self._calls, f"{time.time():.6f} {digest(prompt)}\n".encode())
        await asyncio.sleep(0.02)
        if self._unanswered and prompt.startswith("You answer") and f"Where is the {self._unanswered}" in prompt:
            return await completion("", choices=[])(request, call)
        verdict = "yes" if int(digest(prompt), 16) % 2 else "no"
        text = f"Answer {digest(prompt)}" if prompt.startswith("You answer") else verdict
        return await completion(text)(request, call)


def fork(work: Callable[[], object]) -> int:
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        work()
        code = 0
    except SystemExit as left:
        code = int(left.code or 0)
    finally:
        os._exit(code)


@dataclass
class Fleet:
    """The process of `eval` and the workers; one that is killed is started again until the run is complete."""

    command: Command
    server: PostgresServer
    database: str
    model: Model
    budget: float | None = None
    has_failures: bool = False
    """Whether trials of the run fail."""
    calls: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """When each prompt was sent to the model."""
    kills: list[float] = field(default_factory=list)
    killed: Counter[str] = field(default_factory=Counter)
    """How many of each kind."""
    lost_calls: int = 0
    """How many calls were in flight in the killed processes, at most."""
    _processes: dict[int, int] = field(default_factory=dict)
    """Places by process id: 0 is `eval`."""
    _received: bytes = b""

    def run(self, victims: Sequence[str], chance: random.Random, calls_of_eval: int = 1) -> None:
        """Kill one victim after the other, each after a few more calls; return when every process has ended.

        The workers start after so many calls of `eval`.
        """
        left = list(victims)
        try:
            self._start(0, is_new=True)
            self._receive(calls_of_eval)
            for place in range(1, WORKERS + 1):
                self._start(place)
            while self._processes:
                if left and self._receive(chance.randint(2, 6)):
                    self._kill(left.pop(0), chance)
                elif not left:
                    self._receive(1)
                self._restart_dead()
        finally:
            for process in self._processes:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
        # how many fit into the run depends on the machine
        assert len(self.kills) >= len(victims) // 2, "the run is too short for so many kills"
        fewest = {"worker": len(victims) // 4, "eval": len(victims) // 25, "server": len(victims) // 25}
        assert all(self.killed[kind] >= n for kind, n in fewest.items()), self.killed

    def _start(self, place: int, *, is_new: bool = False) -> None:
        if place:
            arguments = ("worker", "--run", "nightly", "--concurrency", f"{CONCURRENCY}")
        elif is_new:
            arguments = (*EVAL, *(("--budget", f"{self.budget}") if self.budget else ()))
        else:
            arguments = ("eval", "--resume", "nightly", "--concurrency", f"{CONCURRENCY}")
        arguments = (*arguments, "--journal", self.database)
        self._processes[fork(lambda: self._perform(place, arguments))] = place

    def _perform(self, place: int, arguments: Sequence[str]) -> None:
        with (self.command.folder / f"log{place}").open("a") as log:
            sys.stdout = sys.stderr = log
            code = main(list(arguments))
            log.flush()
        sys.exit(code)

    def _kill(self, victim: str, chance: random.Random) -> None:
        self._restart_dead()
        places = {"eval": [0], "worker": range(1, WORKERS + 1)}.get(victim, range(WORKERS + 1))
        processes = [process for process, place in self._processes.items() if place in places]
        if not processes:
            return  # the run is complete
        self.kills.append(time.time())
        self.killed[victim] += 1
        if victim == "server":
            self.server.stop()
            self.server.start()
            self.lost_calls += CONCURRENCY * len(self._processes)
            return
        os.kill(chance.choice(processes), signal.SIGKILL)
        self.lost_calls += CONCURRENCY

    def _restart_dead(self) -> None:
        for process, place in list(self._processes.items()):
            ended, status = os.waitpid(process, os.WNOHANG)
            if not ended:
                continue
            del self._processes[process]
            code = os.waitstatus_to_exitcode(status)
            # `eval` ends with one line when the server is stopped, and so does a worker that has not joined yet
            last_line = self.log(place).splitlines()[-1:]
            is_lost = last_line and last_line[0].startswith(f"memorybench: {self.database}: ")
            if code == -9 or (is_lost and code in (1, 2)):
                self._start(place)
            else:
                # a worker that finds nothing left to do exits with 0
                expected = ((1,) if place == 0 else (0, 1)) if self.budget or self.has_failures else (0,)
                assert code in expected, self.log(place)

    def _receive(self, count: int) -> bool:
        """Wait until the model gets so many more calls; return False if a process ends before."""
        while count:
            if not select.select([self.model.calls], [], [], 0.05)[0]:
                if any(self._has_ended(process) for process in self._processes):
                    return False
                continue
            self._received += os.read(self.model.calls, 4096)
            *lines, self._received = self._received.split(b"\n")
            for line in lines:
                at, prompt = line.decode().split()
                self.calls[prompt].append(float(at))
            count = max(0, count - len(lines))
        return True

    def _has_ended(self, process: int) -> bool:
        return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def forget_calls(self) -> int:
        """Forget the calls of an earlier run; return their number."""
        count = 0
        while select.select([self.model.calls], [], [], 0)[0]:
            count += os.read(self.model.calls, 4096).count(b"\n")
        return count

    def log(self, place: int) -> str:
        file = self.command.folder / f"log{place}"
        return file.read_text() if file.exists() else ""  # a process may be killed before it opens its log

    @property
    def repeats(self) -> int:
        return sum(len(starts) - 1 for starts in self.calls.values())


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Model]:
    model = Model(getattr(request, "param", None))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
    monkeypatch.setenv("OPENAI_BASE_URL", model.url)
    yield model
    model.close()


def some_victims(kills: int, chance: random.Random) -> list[str]:
    """Seven workers, two times `eval` and once the server among any ten, in a random order."""
    victims: list[str] = []
    while len(victims) < kills:
        ten = ["worker"] * 7 + ["eval"] * 2 + ["server"]
        chance.shuffle(ten)
        victims += ten
    return victims[:kills]


def commit_times(database: str) -> dict[str, float]:
    """Return when the answer or verdict of each prompt was committed."""
    sql = (
        "SELECT inputs, extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8 FROM steps WHERE attempt IS NOT NULL"
    )
    with closing(journal_of(results_folder(Path(), database)).open_for_reading()) as db:
        return {digest(json.loads(inputs)["prompt"]): at for inputs, at in db.execute(sql)}


@pytest.mark.parametrize(
    ("kills", "histories"), [(10, 48), pytest.param(100, 140, marks=pytest.mark.slow)], ids=["ten", "hundred"]
)
def test_killed_processes_and_servers_change_no_figure(
    command: Command, own_server: PostgresServer, model: Model, kills: int, histories: int
) -> None:
    write_benchmark(command.folder, histories)
    whole = command(*EVAL, "--output", "single", "--json")
    assert whole.code == 0, whole.err
    chance = random.Random(kills)
    fleet = Fleet(command, own_server, empty_database(own_server.address), model)
    fleet.forget_calls()
    fleet.run(some_victims(kills, chance), chance)
    at = ("--journal", fleet.database)
    figures = {**command("results", "nightly", *at, "--json").json, "possibly_charged_twice": 0}
    assert measured(figures) == measured(whole.json), "I3 and I4"
    assert command("validate", *at).code == 0
    committed = commit_times(fleet.database)
    assert committed.keys() == fleet.calls.keys(), "I1"
    for prompt, starts in fleet.calls.items():
        assert max(starts) < committed[prompt], "I2: a call was repeated whose result had been committed"
    assert fleet.repeats <= fleet.lost_calls, "I2"
    with RunReader.open(results_folder(Path(), fleet.database)) as run_reader:
        assert fleet.repeats <= run_reader.possibly_charged_twice("nightly") <= fleet.lost_calls
    counts = f"{len(fleet.kills)} of {kills} kills, {len(committed)} paid calls, {fleet.repeats} repeated"
    print(f"{counts}; at most {fleet.lost_calls} allowed")


@pytest.mark.parametrize("model", ["kettle"], indirect=True)
def test_workers_that_join_later_do_not_repeat_failed_trials(
    command: Command, own_server: PostgresServer, model: Model
) -> None:
    write_benchmark(command.folder, 24)
    whole = command(*EVAL, "--output", "single", "--json")
    assert (whole.code, whole.json["counts"]["failed"]) == (1, 24), whole.err
    fleet = Fleet(command, own_server, empty_database(own_server.address), model, has_failures=True)
    calls = fleet.forget_calls()
    fleet.run((), random.Random(0), calls_of_eval=65)
    at = ("--journal", fleet.database)
    joined = command("worker", "--run", "nightly", *at, "--json")
    assert (joined.code, joined.json["status"], joined.json["performed"]) == (0, "complete", 0)
    fleet.forget_calls()
    assert (sum(map(len, fleet.calls.values())), fleet.repeats) == (calls, 0)
    written = json.loads((command.folder / "results/nightly/report.json").read_bytes())
    stored = command("results", "nightly", *at, "--json").json
    assert measured(written) == measured(stored) == measured(whole.json)


@pytest.mark.parametrize(
    ("kills", "histories"), [(6, 24), pytest.param(30, 60, marks=pytest.mark.slow)], ids=["six", "thirty"]
)
def test_killed_processes_do_not_exceed_the_budget(
    command: Command, own_server: PostgresServer, model: Model, kills: int, histories: int
) -> None:
    write_benchmark(command.folder, histories)
    assert command(*EVAL, "--output", "single").code == 0, "the processes inherit the imported modules"
    chance, budget = random.Random(kills), round(histories * len(THINGS) * 1.8 * PRICE, 4)
    fleet = Fleet(command, own_server, empty_database(own_server.address), model, budget)
    fleet.forget_calls()
    fleet.run(some_victims(kills, chance), chance)
    in_flight = CONCURRENCY * (WORKERS + 1)
    with RunReader.open(results_folder(Path(), fleet.database)) as run_reader:
        recorded, *_ = run_reader.costs("nightly")
        lost, unknown = run_reader.costs_of_lost_calls("nightly")
        counts = run_reader.counts("nightly")
    assert unknown == 0
    assert budget <= recorded + lost < budget + in_flight * PRICE
    paid = sum(map(len, fleet.calls.values()))
    assert paid * PRICE < budget + in_flight * PRICE
    over = f"{paid - budget / PRICE:+.1f} calls against the budget of {budget / PRICE:.1f}"
    print(f"{len(fleet.kills)} of {kills} kills, {paid} paid calls, {over}; {in_flight} in flight at most")
    assert sum(counts.values()) == histories * len(THINGS), "I4"
    assert counts["blocked"] > 0
