"""What can go wrong while several processes share a run in Postgres: each fault is one line, and nothing is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from memorybench.core.errors import DatabaseLost, Transient
from memorybench.core.plans import Limits
from memorybench.engine.limiter import RateLimiter
from memorybench.engine.retries import RetryState, with_retries
from memorybench.engine.stopping import Stop
from memorybench.journal.places import results_folder
from memorybench.journal.run_writer import open_run, reopen_run
from tests.cli.command import Command
from tests.engine.workload import FINGERPRINTS, RUN, Ledger, committed, plan, report, run_once

pytest_plugins = ("tests.real.local_postgres",)
pytestmark = pytest.mark.real


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


def test_a_process_that_was_stopped_loses_its_lease(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process continues its unit; what the first one still does is not recorded."""
    monkeypatch.setattr("memorybench.journal.postgres._LEASE_SECONDS", 1)
    monkeypatch.setattr("memorybench.journal.writer.HEARTBEAT_SECONDS", 0.2)
    ledger, calls = Ledger(tmp_path / "ledger"), 0

    async def stop(call: str) -> None:
        nonlocal calls
        calls += 1
        if calls == 30:
            os.kill(os.getpid(), signal.SIGSTOP)

    def work() -> None:
        with pytest.raises(DatabaseLost, match="lease expired"):
            run_once(results_folder(tmp_path / "stopped", database), plan(ledger, hook=stop))

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
