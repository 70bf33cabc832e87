"""What can go wrong while several processes share a run in Postgres: each fault is one line, and nothing is lost."""

from __future__ import annotations

import asyncio
import os
import pwd
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from memorybench.cli.main import main
from memorybench.core.errors import DatabaseLost, Transient
from memorybench.core.plans import Limits
from memorybench.engine import run
from memorybench.engine.limiter import RateLimiter
from memorybench.engine.retries import RetryState, with_retries
from memorybench.engine.stopping import Stop
from memorybench.journal.checksums import CHECKSUMS
from memorybench.journal.places import journal_of, results_folder
from memorybench.journal.run_opening import open_run, reopen_run
from memorybench.journal.writer import Writer
from perf.postgres_server import PostgresServer, empty_database
from tests.cli.command import Command, Said, measured
from tests.doubles.stub import Call, Stub, completion, in_flight, until_gone
from tests.engine.workload import FINGERPRINTS, RUN, Ledger, committed, plan, report, run_once
from tests.real.boxes import write_benchmark

pytest_plugins = ("tests.real.local_postgres",)
pytestmark = pytest.mark.real

EVAL = ("eval", "--providers", "bm25", "--end", "24", "--run-id", "first")


def connect(address: str) -> Any:
    import psycopg

    return psycopg.connect(address, autocommit=True)


def error_lines(said: Said) -> list[str]:
    return [line for line in said.err.splitlines() if not line.startswith("starter × ")]  # progress


def assert_figures_of_a_whole_run(command: Command, database: str) -> None:
    whole = command(*EVAL, "--output", "file", "--json")
    assert measured(command("results", "first", "--journal", database, "--json").json) == measured(whole.json)
    assert command("validate", "--journal", database).code == 0


@pytest.mark.parametrize("per_second", [None, 1000.0], ids=["no rate", "a rate"])
def test_every_process_waits_for_the_retry_after_that_one_got(
    database: str, tmp_path: Path, per_second: float | None
) -> None:
    pause, refused_at, started_at = 0.5, 0.0, 0.0
    with open_run(results_folder(tmp_path / "first", database), RUN) as first, ExitStack() as stack:
        folder = results_folder(tmp_path / "second", database)
        second = stack.enter_context(reopen_run(folder, RUN.id, fingerprints=FINGERPRINTS))

        is_refused = asyncio.Event()

        async def refuse_once() -> None:
            nonlocal refused_at
            if not is_refused.is_set():
                refused_at = time.monotonic()
                is_refused.set()
                raise Transient("too many requests", status=429, retry_after=pause)

        async def call() -> None:
            nonlocal started_at
            started_at = time.monotonic()

        async def both() -> None:
            limits = Limits(per_second=per_second)
            one, other = (RateLimiter("model reader", limits, Stop(), writer) for writer in (first, second))
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(with_retries(refuse_once, one, RetryState()))
                await is_refused.wait()
                tasks.create_task(with_retries(call, other, RetryState()))

        asyncio.run(both())
        assert started_at - refused_at >= pause
        assert second.pause_left("model other") == 0, "other subjects are not paused"


@pytest.mark.parametrize("where", ["in a call", "in a commit"])
def test_a_process_that_was_stopped_loses_its_lease(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Another process continues its unit; what the first one still does is not recorded."""
    monkeypatch.setattr("memorybench.journal.postgres._LEASE_SECONDS", 1)
    monkeypatch.setattr("memorybench.journal.writer.HEARTBEAT_SECONDS", 0.2)
    ledger, calls, faults, is_continued = Ledger(tmp_path / "ledger"), 0, 0, False

    async def stop(call: str) -> None:
        nonlocal calls
        calls += 1
        if where == "in a call" and calls == 30:
            os.kill(os.getpid(), signal.SIGSTOP)

    def stop_in_commit() -> None:
        nonlocal faults, is_continued
        faults += 1
        is_before_end = faults % 2 == 1
        if where == "in a commit" and calls >= 30 and is_before_end and not is_continued:
            is_continued = True
            os.kill(os.getpid(), signal.SIGSTOP)

    def work() -> None:
        folder = results_folder(tmp_path / "stopped", database)
        with pytest.raises(DatabaseLost, match="lease expired"):
            run_once(folder, plan(ledger, hook=stop), fault=stop_in_commit)

    child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(99)
    assert os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1])
    folder = results_folder(tmp_path / "other", database)
    recorded, seen = committed(folder), len(ledger.read())
    assert run_once(folder, plan(ledger)).status == "complete"
    assert recorded
    assert not recorded & set(ledger.read()[seen:]), "I2"
    whole = report(folder)
    os.kill(child, signal.SIGCONT)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert report(folder) == whole
    run_once(tmp_path / "file", plan(Ledger(tmp_path / "file.ledger")))
    assert whole == report(tmp_path / "file"), "I3"


def test_a_worker_whose_server_stays_away_says_that_it_waits_and_then_that_it_ends(
    command: Command, own_server: PostgresServer, model: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memorybench.workers.joining._LONGEST_WAIT", 1.0)
    database = empty_database(own_server.address)
    write_benchmark(command.folder, 8)
    model.always(completion("yes"))
    at = ("--journal", database)
    assert command.killed(*BOXES, *at, at=9)
    errors, child = command.folder / "errors", os.fork()
    if not child:
        ended = 99
        try:
            with errors.open("w") as sys.stderr:
                ended = main(["worker", "--run", "first", *at])
        finally:
            os._exit(ended)
    ready = in_flight(model, 10)
    while not ready():
        time.sleep(0.01)
    own_server.stop()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1, errors.read_text()
    lines = [line for line in errors.read_text().splitlines() if line.startswith("memorybench: ")]
    assert len(lines) == 2, lines
    assert len({line.partition(";")[0] for line in lines}) == 2, "the same error twice"
    own_server.start()
    assert command("worker", "--run", "first", *at).code == 0


@pytest.mark.parametrize(("verb", "code"), [("worker", 0), ("eval", 1)])
def test_a_command_that_was_stopped_says_that_its_lease_expired(
    command: Command, database: str, model: Stub, monkeypatch: pytest.MonkeyPatch, verb: str, code: int
) -> None:
    """Another worker has completed the run; a worker sees that when it joins again."""
    monkeypatch.setattr("memorybench.journal.postgres._LEASE_SECONDS", 2)
    monkeypatch.setattr("memorybench.journal.writer.HEARTBEAT_SECONDS", 0.2)
    write_benchmark(command.folder, 8)
    model.always(completion("yes"))
    at, join = ("--journal", database), ("worker", "--run", "first", "--journal", database)
    if verb == "worker":
        assert command.killed(*BOXES, *at, at=9)
    errors, child = command.folder / "errors", os.fork()
    if not child:
        ended = 99
        try:
            with errors.open("w") as sys.stderr:
                ended = main([*join] if verb == "worker" else [*BOXES, *at])
        finally:
            os._exit(ended)
    ready = in_flight(model, 10)
    while not ready():
        time.sleep(0.01)
    os.kill(child, signal.SIGSTOP)
    assert command(*join).code == 0
    whole = measured(command("results", "first", *at, "--json").json)
    os.kill(child, signal.SIGCONT)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == code, errors.read_text()
    lines = [line for line in errors.read_text().splitlines() if line.startswith("memorybench: ")]
    assert lines
    assert all(line.startswith(f"memorybench: {database}: lease expired") for line in lines), lines
    assert measured(command("results", "first", *at, "--json").json) == whole
    assert command("validate", *at).code == 0


def test_a_process_that_waits_for_a_slow_call_keeps_its_lease(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memorybench.journal.postgres._LEASE_SECONDS", 1)
    monkeypatch.setattr("memorybench.journal.writer.HEARTBEAT_SECONDS", 0.1)

    async def wait(call: str) -> None:
        if call == "add:h0:0":
            await asyncio.sleep(2.5)

    work = plan(Ledger(tmp_path / "ledger"), haystacks=1, hook=wait)
    assert run_once(results_folder(tmp_path, database), work, run=RUN.model_copy(update={"planned": 5})).performed == 5


def test_leases_whose_names_have_the_same_short_hash_are_different(database: str, tmp_path: Path) -> None:
    sql = (
        "SELECT 'unit ' || min(n), 'unit ' || max(n) FROM generate_series(1, 400000) n"
        f" GROUP BY hashtext('{RUN.id}/unit ' || n) HAVING count(*) > 1 LIMIT 1"
    )
    with connect(database) as db:
        one, other = db.execute(sql).fetchone()
    folders = [results_folder(tmp_path / name, database) for name in ("first", "second")]
    with open_run(folders[0], RUN) as first, reopen_run(folders[1], RUN.id, fingerprints=FINGERPRINTS) as second:
        assert first.try_lease(one)
        assert second.try_lease(other)
        assert not second.try_lease(one)
        first.end_lease(one)
        assert second.try_lease(one)


def test_a_process_whose_commit_waits_for_a_lock_keeps_its_lease(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memorybench.journal.postgres._LEASE_SECONDS", 1)
    monkeypatch.setattr("memorybench.journal.writer.HEARTBEAT_SECONDS", 0.1)
    locking: list[Any] = []

    async def lock(call: str) -> None:
        if call == "add:h0:0":
            locking.append(connect(database))
            locking[0].execute("BEGIN; LOCK TABLE memorybench.attempts, memorybench.steps IN EXCLUSIVE MODE")
            asyncio.get_running_loop().call_later(2.5, locking[0].close)

    work = plan(Ledger(tmp_path / "ledger"), haystacks=1, hook=lock)
    assert run_once(results_folder(tmp_path, database), work, run=RUN.model_copy(update={"planned": 5})).performed == 5
    assert locking[0].closed


def test_a_run_that_lost_its_database_says_how_to_continue(
    command: Command, database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    commit, commits = Writer._commit, 0

    def disconnect(self: Writer, batch: Any) -> None:
        nonlocal commits
        commits += 1
        if commits == 10:
            with connect(database.replace("/journal", "/postgres")) as db:
                db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'journal'")
        commit(self, batch)

    monkeypatch.setattr(Writer, "_commit", disconnect)
    lost = command(*EVAL, "--journal", database)
    assert (lost.code, len(error_lines(lost))) == (1, 1), lost.err
    assert [record for record in caplog.records if record.name.startswith("psycopg")] == []
    resume = shlex.split(lost.err.partition("continue with: ")[2])
    assert resume == ["memorybench", "eval", "--resume", "first", "--journal", database]
    assert command(*resume[1:]).code == 0
    assert_figures_of_a_whole_run(command, database)


def test_the_error_about_an_unknown_run_names_the_database(command: Command, database: str) -> None:
    assert command(*EVAL, "--journal", database).code == 0
    for words in (("results", "missing"), ("eval", "--resume", "missing")):
        refused = command(*words, "--journal", database)
        assert refused.code == 2
        listed = shlex.split(refused.err.split("`")[1])
        assert listed == ["memorybench", "runs", "--journal", database]
        assert command(*listed[1:]).code == 0


def test_a_watch_follows_the_processes_of_other_machines(
    command: Command, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = ("--journal", database)
    assert command.killed(*EVAL, *at, at=9)
    elsewhere = journal_of(results_folder(command.folder / "elsewhere", database)).lock("first", shared=True)

    def finish_run(seconds: float) -> None:
        elsewhere.release()
        assert main(["worker", *at]) == 0

    monkeypatch.setattr("memorybench.cli.results.time", SimpleNamespace(sleep=finish_run))
    watched = command("results", "--watch", "first", *at)
    assert watched.code == 0, watched.out
    assert "--resume" not in watched.out, "nothing is left to resume"


def test_a_judge_is_calibrated_in_the_database(command: Command, database: str) -> None:
    rows = ('{"question": "Where?", "answer": "Lisbon", "response": "Lisbon", "label": "yes"}\n') * 2
    (command.folder / "labels.jsonl").write_text(rows)
    calibrate = ("judge", "calibrate", "labels.jsonl", "--judge-model", "scripted/judge", "--journal", database)
    assert command.killed(*calibrate, at=5)
    refused = command("worker", "--journal", database)
    assert (refused.code, refused.err.split(":")[1].strip()) == (2, "--run"), "a worker cannot perform a calibration"
    first = command(*calibrate, "--json")
    assert first.code == 0, first.err
    assert command(*calibrate, "--json").json == first.json, "the verdicts are reused"
    runs = command("runs", "--journal", database, "--json").json
    assert [(run["id"], run["status"]) for run in runs] == [(first.json["run_id"], "complete")]
    assert not (command.folder / "results/results.db").exists()


def test_a_worker_that_cannot_join_is_refused_in_one_line(command: Command, database: str) -> None:
    assert command.killed(*EVAL, "--journal", database, at=9)
    with connect(database) as db:
        db.execute("DROP ROLE IF EXISTS watcher")
        db.execute("CREATE ROLE watcher LOGIN")
        db.execute("GRANT USAGE ON SCHEMA memorybench TO watcher")
        db.execute("GRANT SELECT ON ALL TABLES IN SCHEMA memorybench TO watcher")
    read_only = database.replace("tester@", "watcher@")
    on_standby = f"{database}?options=-cdefault_transaction_read_only%3Don"
    for address in (read_only, on_standby, "postgresql://tester@127.0.0.1:1/journal"):
        refused = command("worker", "--journal", address)
        assert (refused.code, len(refused.err.splitlines())) == (2, 1), refused.err
        assert refused.err.startswith(f"memorybench: {address}: ")
    with connect(database) as db:
        db.execute("UPDATE memorybench.schema_version SET version = version + 1")
        refused = command("worker", "--journal", database)
        assert (refused.code, len(refused.err.splitlines())) == (2, 1), refused.err
        db.execute("UPDATE memorybench.schema_version SET version = version - 1")
        db.execute("REASSIGN OWNED BY watcher TO tester; DROP OWNED BY watcher; DROP ROLE watcher")
    assert command("worker", "--journal", database).code == 0
    assert_figures_of_a_whole_run(command, database)


def test_a_worker_with_other_data_is_refused_with_the_difference(command: Command, database: str) -> None:
    at = ("--journal", database)
    write_benchmark(command.folder, 8)
    assert command.killed("eval", "--benchmarks", "boxes", "--providers", "bm25", *at, at=9)
    data = command.folder / "benchmarks/datasets/boxes.json"
    saved = data.read_text()
    data.write_text(saved.replace("lamp", "candle"))
    refused = command("worker", *at)
    assert (refused.code, len(refused.err.splitlines())) == (2, 1), refused.err
    assert "boxes" in refused.err
    data.write_text(saved)
    assert command("worker", *at).code == 0


def test_the_progress_of_eval_counts_the_trials_of_workers(
    command: Command, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = ("--journal", database, "--concurrency", "1")
    performed, trials = run._perform_job, 0

    async def let_a_worker_help(*values: Any) -> Any:
        nonlocal trials
        trials += 1
        if trials == 1:
            environment = {**os.environ, "MEMORYBENCH_FAULT_AT": "40"}
            words = [sys.executable, "-m", "memorybench", "worker", *at]
            ended = await asyncio.to_thread(subprocess.run, words, env=environment, check=False)
            assert ended.returncode == -signal.SIGKILL
        return await performed(*values)

    monkeypatch.setattr(run, "_perform_job", let_a_worker_help)
    said = command("eval", "--providers", "bm25", "--limit", "24", *at, "--run-id", "first")
    assert said.code == 0, said.err
    assert trials < 24, "the worker has performed some"
    assert "starter × bm25: 24/24" in said.err


MODELS = ("--answering-model", "gpt-4o", "--judge-model", "gpt-4o", "--concurrency", "1")
BOXES = ("eval", "--benchmarks", "boxes", "--providers", "bm25", *MODELS, "--canaries", "0", "--run-id", "first")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    """A model that does not answer questions about a kettle when it is asked for the first time."""
    prompts: set[str] = set()

    async def reply(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        prompt = call.json["messages"][-1]["content"]
        is_first = prompt not in prompts
        prompts.add(prompt)
        if is_first and prompt.startswith("You answer") and "Where is the kettle" in prompt:
            return await completion("", choices=[])(request, call)
        return await completion("yes")(request, call)

    with Stub() as stub:
        stub.always(reply)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{stub.url}/v1")
        yield stub


def test_a_worker_does_not_repeat_failed_trials(command: Command, database: str, model: Stub) -> None:
    """The process that began the run was killed when trials had failed."""
    at = ("--journal", database)
    write_benchmark(command.folder, 8)
    assert command.killed(*BOXES, *at, at=170)
    assert command("results", "first", *at, "--json").json["counts"]["failed"] > 0
    joined = command("worker", *at, "--concurrency", "1", "--json")
    assert (joined.code, joined.json["status"]) == (1, "complete"), joined.err
    counts = command("results", "first", *at, "--json").json["counts"]
    assert (counts["scored"], counts["failed"]) == (16, 8)
    asked = Counter(call.json["messages"][-1]["content"] for call in model.calls)
    assert sum(asked.values()) - len(asked) <= 1, "the call in flight when the process was killed"
    again = command("worker", "--run", "first", *at, "--json")
    assert (again.code, again.json["performed"]) == (0, 0), "a supervisor need not start it again"
    assert command("eval", "--resume", "first", *at).code == 0, "it tries failed trials again"


def test_a_worker_of_a_run_without_budget_records_nothing(command: Command, database: str, model: Stub) -> None:
    at = ("--journal", database)
    write_benchmark(command.folder, 8)
    assert command(*BOXES, *at, "--budget", "0.02").code == 1

    def rows() -> list[dict[str, Any]]:
        with closing(journal_of(results_folder(Path(), database)).open_for_reading()) as db:
            return [dict(row) for table in CHECKSUMS for row in db.rows(f"SELECT * FROM {table}", (), many=True)]

    recorded, calls = rows(), len(model.calls)
    joined = command("worker", *at, "--json")
    assert (joined.code, joined.json["status"], joined.json["performed"]) == (0, "partial", 0), joined.err
    assert error_lines(joined)[-1].startswith("memorybench: run first: ")
    assert (rows(), len(model.calls)) == (recorded, calls)
    resumed = command("eval", "--resume", "first", *at, "--budget", "none", "--json")
    assert (resumed.code, resumed.json["counts"]["blocked"]) == (1, 0), "questions about kettles failed"


PRICE = 0.0035
"""Of one call of the stub: 1,000 tokens in and 100 out of gpt-4o."""


def test_calls_that_workers_lost_before_a_cost_is_known_count_in_the_budget(
    command: Command, database: str, model: Stub
) -> None:
    at = ("--journal", database, "--concurrency", "4")
    write_benchmark(command.folder, 8)
    model.always(until_gone())
    words, kills = (*BOXES, "--budget", f"{30 * PRICE}", *at), 0
    while command.killed_when(*words, ready=in_flight(model, 4)):
        words, kills = ("worker", "--run", "first", *at), kills + 1
    assert kills > 1
    assert len(model.calls) <= 30 + 4, "at most the calls in flight more than the budget"
    model.always(completion("yes"))
    figures = command("results", "first", *at[:2], "--json").json
    assert figures["possibly_charged_twice"] == len(model.calls)
    assert figures["circumstances"]["possibly_spent"] >= 30 * PRICE
    resumed = command("eval", "--resume", "first", *at, "--budget", "none", "--json")
    assert (resumed.code, resumed.json["counts"]["scored"]) == (0, 24), resumed.err


def test_workers_count_lost_calls_again_when_a_cost_is_known(command: Command, database: str, model: Stub) -> None:
    at = ("--journal", database, "--concurrency", "4")
    write_benchmark(command.folder, 8)
    model.always(until_gone())
    assert command.killed_when(*BOXES, "--budget", f"{30 * PRICE}", *at, ready=in_flight(model, 4))
    model.always(completion("yes"))
    assert command("worker", *at).code == 1
    spent = command("results", "first", *at[:2], "--json").json["circumstances"]
    assert spent["possibly_spent"] == pytest.approx(4 * PRICE)
    assert 30 <= len(model.calls) <= 30 + 4


@pytest.mark.parametrize("seconds", [-86_400, 86_400], ids=["a day back", "a day ahead"])
def test_a_worker_whose_clock_differs_completes_the_run(
    command: Command, database: str, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    assert command.killed(*EVAL, "--journal", database, at=9)
    right, right_ns = time.time, time.time_ns
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: right() + seconds)
        patch.setattr(time, "time_ns", lambda: right_ns() + seconds * 10**9)
        joined = command("worker", "--journal", database, "--json")
    assert (joined.code, joined.json["status"]) == (0, "complete"), joined.err
    assert_figures_of_a_whole_run(command, database)


def test_a_worker_writes_no_reports(command: Command, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process of `eval` writes them: to make them, each worker would read the whole run."""
    at = ("--journal", database)
    assert command.killed(*EVAL, *at, at=9)
    written: list[object] = []
    monkeypatch.setattr("memorybench.suites.running.write_reports", lambda *values: written.append(values))
    assert command("worker", *at).code == 0
    assert written == []
    assert_figures_of_a_whole_run(command, database)


def test_an_error_of_a_full_disk_stops_the_run_and_it_resumes(command: Command, database: str) -> None:
    """The server raises the error of a full disk for the sixth outcome."""
    assert command.killed(*EVAL, "--journal", database, at=9)
    with connect(database) as db:
        db.execute("""
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF (SELECT count(*) FROM memorybench.outcomes) > 5 THEN
                    RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
                END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER full_disk BEFORE INSERT ON memorybench.outcomes FOR EACH ROW EXECUTE FUNCTION refuse()
        """)
    for again in (("worker",), ("eval", "--resume", "first")):
        stopped = command(*again, "--journal", database)
        assert (stopped.code, len(error_lines(stopped))) == (1, 1), stopped.err
    with connect(database) as db:
        (statuses,) = db.execute("SELECT array_agg(DISTINCT status) FROM memorybench.outcomes").fetchone()
        db.execute("DROP TRIGGER full_disk ON memorybench.outcomes")
    assert statuses == ["scored"], "a full disk is not a failure of the provider"
    assert command("worker", "--journal", database).code == 0
    assert_figures_of_a_whole_run(command, database)


@pytest.fixture
def small_disk(own_server: PostgresServer) -> Iterator[Path]:
    """A disk of 12 MB for the server."""
    disk = own_server.folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", disk], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    shutil.chown(disk, pwd.getpwuid((own_server.folder / "data").stat().st_uid).pw_name)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def test_a_full_disk_of_the_server_stops_the_run_and_it_resumes(
    command: Command, own_server: PostgresServer, small_disk: Path
) -> None:
    import psycopg

    with connect(f"{own_server.address}postgres") as db:
        db.execute(f"CREATE TABLESPACE small LOCATION '{small_disk}'")
        db.execute("CREATE DATABASE journal TABLESPACE small")
    database = f"{own_server.address}journal"
    assert command.killed(*EVAL, "--journal", database, at=9)
    with connect(database) as db:
        db.execute("CREATE TABLE filler (text TEXT)")
        with suppress(psycopg.errors.DiskFull):
            while True:
                db.execute("INSERT INTO filler SELECT repeat('x', 100) FROM generate_series(1, 100)")
    for again in (("worker",), ("eval", "--resume", "first")):
        stopped = command(*again, "--journal", database)
        assert (stopped.code, len(error_lines(stopped))) == (1, 1), stopped.err
    with connect(database) as db:
        db.execute("DROP TABLE filler")
        db.execute("CHECKPOINT")  # the space is free after the next checkpoint
    assert command("worker", "--journal", database).code == 0
    assert_figures_of_a_whole_run(command, database)
