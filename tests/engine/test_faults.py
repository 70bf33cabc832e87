"""Faults that the engine survives. Numbers in brackets refer to the table in docs/engine.md."""

import asyncio
import gc
import os
import signal
import sqlite3
import sys
import time
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from memorybench.core.errors import Denied, JournalError, RunConflict, Transient, Unreadable
from memorybench.core.plans import Job, Limits, Performed, Plan, Steps
from memorybench.core.spending import Spending, charge
from memorybench.core.trials import Trial
from memorybench.engine.budget import Budget
from memorybench.engine.run import perform
from memorybench.engine.stopping import Stop
from memorybench.journal.run_opening import open_run
from memorybench.journal.run_reader import RunReader
from tests.engine.workload import MODEL, PRICE, RUN, Ledger, committed, in_child, plan, report, run_once


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "calls.ledger")


def counts(folder: Path) -> dict[str, int]:
    with RunReader.open(folder) as run_reader:
        return {status: n for status, n in run_reader.counts(RUN.id).items() if n}


def _interrupted_child(folder: Path, ledger: Ledger, signals: list[int], stuck: bool, stderr: str = os.devnull) -> int:
    """Send signals to a child that has made twenty calls; return its exit code.

    The next calls end after the last signal; if `stuck`, never. The child's standard error is the file `stderr`.
    """
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writes)
        sys.stderr = open(stderr, "w")  # noqa: SIM115  until the child ends

        async def hook(call: str) -> None:
            if len(ledger.read()) > 20:
                (ledger.path.parent / "twenty-calls").touch()
                await asyncio.to_thread(os.read, reads, 1)  # returns when the parent closes the pipe
            await asyncio.sleep(0)

        ending = run_once(folder, plan(ledger, hook=hook))
        os._exit(130 if ending.interrupted else 0)
    while not (ledger.path.parent / "twenty-calls").exists():
        time.sleep(0.01)
    for number in signals:
        os.kill(child, number)
        time.sleep(0.1)
    if not stuck:
        os.close(writes)
    _, status = os.waitpid(child, 0)
    if stuck:
        os.close(writes)
    os.close(reads)
    return os.waitstatus_to_exitcode(status)


@pytest.mark.parametrize(
    "signals", [[signal.SIGINT], [signal.SIGTERM], [signal.SIGHUP, signal.SIGHUP], [signal.SIGTERM, signal.SIGHUP]]
)
def test_one_signal_finishes_the_calls_in_flight_and_loses_none(
    tmp_path: Path, ledger: Ledger, signals: list[int]
) -> None:
    """[3] A terminal that is closed may send SIGHUP twice."""
    assert _interrupted_child(tmp_path / "results", ledger, signals, stuck=False) == 130
    with RunReader.open(tmp_path / "results") as run_reader:
        assert run_reader.run(RUN.id).status == "partial"
        assert run_reader.possibly_charged_twice(RUN.id) == 0, "calls in flight were recorded"
    run_once(tmp_path / "results", plan(ledger))
    assert set(Counter(ledger.read()).values()) == {1}, "every call was made exactly once in the two runs"


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGHUP])
def test_a_second_ctrl_c_exits_at_once_and_the_run_can_be_resumed(tmp_path: Path, ledger: Ledger, first: int) -> None:
    """[3] The calls never end, so only an immediate exit ends the child."""
    assert _interrupted_child(tmp_path / "results", ledger, [first, signal.SIGINT], stuck=True) == 130
    run_once(tmp_path / "results", plan(ledger))
    assert counts(tmp_path / "results") == {"scored": 40}


def test_a_second_signal_exits_at_once_although_nothing_can_be_printed(tmp_path: Path, ledger: Ledger) -> None:
    """[3] The terminal is closed, or standard error is full. A run from Python has no streams that drop output."""
    signals = [signal.SIGHUP, signal.SIGTERM]
    assert _interrupted_child(tmp_path / "results", ledger, signals, stuck=False, stderr="/dev/full") == 130
    with RunReader.open(tmp_path / "results") as run_reader:
        assert run_reader.run(RUN.id).status == "running", "the process did not wait to record the end"


def test_another_thread_can_stop_a_run(tmp_path: Path, ledger: Ledger) -> None:
    stopping = Stop()

    async def hook(call: str) -> None:
        if len(ledger.read()) == 20:
            await asyncio.to_thread(stopping.set_from_thread)

    with open_run(tmp_path / "results", RUN) as run_writer:
        ending = asyncio.run(perform(plan(ledger, hook=hook), run_writer, concurrency=4, stopping=stopping))
    assert (ending.status, ending.interrupted) == ("partial", True)
    run_once(tmp_path / "results", plan(ledger))
    assert set(Counter(ledger.read()).values()) == {1}, "every call was made exactly once in the two runs"


def test_a_run_that_is_stopped_while_it_cleans_up_is_resumed(tmp_path: Path, ledger: Ledger) -> None:
    """As complete, it could not be resumed, and what it added to a memory would stay there."""
    stopping = Stop()

    async def clean_up(steps: Steps) -> None:
        for call in ("clear:h0", "clear:h1"):

            async def clear(call: str = call) -> str:
                ledger.write(call)
                stopping.set()
                return "cleared"

            await steps.once("clear", {"call": call}, clear, str)

    with open_run(tmp_path / "results", RUN) as run_writer:
        work = replace(plan(ledger), closing=clean_up)
        ending = asyncio.run(perform(work, run_writer, stopping=stopping))
    assert (ending.status, ending.interrupted, ending.performed) == ("partial", True, 40)
    stopping = Stop()
    assert run_once(tmp_path / "results", replace(plan(ledger), closing=clean_up)).status == "complete"
    assert set(Counter(ledger.read()).values()) == {1}
    assert {"clear:h0", "clear:h1"} <= committed(tmp_path / "results")


@pytest.mark.parametrize("retry_after", [0.0, 0.15])
def test_no_call_starts_before_retry_after_has_passed(tmp_path: Path, ledger: Ledger, retry_after: float) -> None:
    """[8]"""
    rejected: list[float] = []
    accepted: list[float] = []

    async def hook(call: str) -> None:
        if call.startswith("answer"):
            if not rejected:
                rejected.append(time.monotonic())
                raise Transient("429", retry_after=retry_after)
            accepted.append(time.monotonic())

    run_once(tmp_path / "results", plan(ledger, hook=hook), concurrency=1)
    assert min(accepted) - rejected[0] >= retry_after
    assert counts(tmp_path / "results") == {"scored": 40}


def test_after_a_retry_after_above_the_limit_no_trial_calls_the_subject(tmp_path: Path, ledger: Ledger) -> None:
    """[8]"""

    async def hook(call: str) -> None:
        if call == "answer:h0q3":
            raise Transient("429", retry_after=600)

    run_once(tmp_path / "results", plan(ledger, hook=hook), concurrency=1)
    answers = [call for call in ledger.read() if call.startswith("answer")]
    assert answers == [f"answer:h0q{n}" for n in range(4)]
    assert counts(tmp_path / "results") == {"scored": 3, "failed": 37}
    with RunReader.open(tmp_path / "results") as run_reader:
        failures = {outcome.failure.kind for outcome in run_reader.outcomes(RUN.id) if outcome.failure is not None}
    assert failures == {"ServiceError"}


def test_a_retry_after_of_the_last_try_applies_to_the_next_trial(tmp_path: Path, ledger: Ledger) -> None:
    """[8]"""
    times: dict[str, float] = {}

    async def hook(call: str) -> None:
        times[call] = time.monotonic()
        if call == "answer:h0q0":
            raise Transient("429", retry_after=0.15)

    run_once(tmp_path / "results", plan(ledger, hook=hook, limits=Limits(tries=1)), concurrency=1)
    assert counts(tmp_path / "results") == {"scored": 39, "failed": 1}
    assert times["answer:h0q1"] - times["answer:h0q0"] >= 0.15


def test_a_call_is_tried_as_often_as_configured(tmp_path: Path, ledger: Ledger) -> None:
    """[8, 10]"""

    async def hook(call: str) -> None:
        if call == "answer:h1q1":
            raise Transient("500 from the model")

    run_once(tmp_path / "results", plan(ledger, hook=hook, limits=Limits(tries=3, first_delay=0.0)))
    assert Counter(ledger.read())["answer:h1q1"] == 3
    assert counts(tmp_path / "results") == {"scored": 39, "failed": 1}


def test_a_subject_that_denies_access_is_not_called_again(tmp_path: Path, ledger: Ledger) -> None:
    """[9]"""

    async def hook(call: str) -> None:
        await asyncio.sleep(0)
        if call.startswith("answer"):
            raise Denied("401 from the model: no such key")

    run_once(tmp_path / "results", plan(ledger, hook=hook), concurrency=4)
    assert 1 <= sum(call.startswith("answer") for call in ledger.read()) <= 4
    assert counts(tmp_path / "results") == {"failed": 40}


def test_a_lost_reply_counts_as_possibly_charged_twice(tmp_path: Path, ledger: Ledger) -> None:
    """[11]"""
    lost: set[str] = set()

    async def hook(call: str) -> None:
        if call in ("answer:h0q0", "judge:h3q2") and call not in lost:
            lost.add(call)
            raise Transient("connection closed", uncertain=True)

    run_once(tmp_path / "results", plan(ledger, hook=hook))
    with RunReader.open(tmp_path / "results") as run_reader:
        assert run_reader.possibly_charged_twice(RUN.id) == 2
    assert counts(tmp_path / "results") == {"scored": 40}


def _lose(call: str) -> None:
    charge(Spending(calls=1, cost=None))
    raise Transient(f"{call}: connection closed", uncertain=True)


def test_a_lost_reply_does_not_hide_the_cost_of_the_next_try(tmp_path: Path, ledger: Ledger) -> None:
    """[11]"""
    lost: set[str] = set()

    async def hook(call: str) -> None:
        if call.startswith("answer") and call not in lost:
            lost.add(call)
            _lose(call)

    run_once(tmp_path / "results", plan(ledger, hook=hook))
    with RunReader.open(tmp_path / "results") as run_reader:
        known, _, unknown = run_reader.costs(RUN.id)
        assert (known, unknown) == (pytest.approx(80 * PRICE), 40)
        assert run_reader.possibly_charged_twice(RUN.id) == 40
        for outcome in run_reader.outcomes(RUN.id):
            steps = run_reader.steps_of(RUN.id, outcome)
            tries = [(step.tries, bool(step.error)) for step in steps if step.name == "answer"]
            assert tries == [(1, True), (1, False)], "each try counts once"


def test_the_time_of_a_repeated_call_is_that_of_its_last_try(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[11] Time passes only while the journal commits, and 2 seconds in each try of a call."""
    passed, lost = 0.0, set[str]()

    def wait(seconds: float) -> None:
        nonlocal passed
        passed += seconds

    async def hook(call: str) -> None:
        wait(2.0)
        if call.startswith("answer") and call not in lost:
            lost.add(call)
            _lose(call)

    monkeypatch.setattr("memorybench.core.timing.time", SimpleNamespace(monotonic=lambda: passed))
    run_once(tmp_path / "results", plan(ledger, hook=hook), fault=lambda: wait(0.5), concurrency=1)
    with RunReader.open(tmp_path / "results") as run_reader:
        assert {seconds for stage in run_reader.stages(RUN.id) for seconds in stage.seconds} == {2.0}


def test_lost_replies_count_in_the_budget_before_the_next_try(tmp_path: Path, ledger: Ledger) -> None:
    """[24]"""

    async def hook(call: str) -> None:
        if call.startswith("answer"):
            _lose(call)

    run_once(tmp_path / "results", plan(ledger, hook=hook), budget=Budget(2 * PRICE), concurrency=1)
    assert sum(call.startswith(("answer", "judge")) for call in ledger.read()) == 2
    stopped = counts(tmp_path / "results")
    assert (stopped["blocked"], stopped.get("scored", 0)) == (40, 0)
    run_once(tmp_path / "results", plan(ledger), budget=_resumed_budget(tmp_path / "results", 2 * PRICE))
    assert counts(tmp_path / "results") == {"blocked": 40}, "a resumed run knows what was lost"


def _resumed_budget(folder: Path, dollars: float) -> Budget:
    with RunReader.open(folder) as run_reader:
        budget = Budget(dollars)
        budget.add_recorded(run_reader, RUN.id)
    return budget


def test_each_lost_reply_is_known_after_a_kill_during_a_later_try(tmp_path: Path, ledger: Ledger) -> None:
    """[1, 11]"""

    async def hook(call: str) -> None:
        if call == "answer:h0q0":
            if ledger.read().count(call) == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            _lose(call)

    assert in_child(lambda: run_once(tmp_path / "results", plan(ledger, hook=hook), concurrency=1)) is None
    run_once(tmp_path / "results", plan(ledger))
    with RunReader.open(tmp_path / "results") as run_reader:
        assert run_reader.possibly_charged_twice(RUN.id) == 3
        known, _, _ = run_reader.costs(RUN.id)
        assert known == pytest.approx(80 * PRICE)
        assert run_reader.unknown_costs(RUN.id) == (pytest.approx(3 * PRICE), 0)


def test_a_run_with_a_changed_prompt_is_not_resumed_and_the_difference_is_shown(tmp_path: Path, ledger: Ledger) -> None:
    """[17]"""
    from memorybench.journal.rows import Fingerprint

    run_once(tmp_path / "results", plan(ledger))
    before = report(tmp_path / "results")
    changed = {**RUN.fingerprints, "prompt": Fingerprint.of("Reply to ${question}")}
    with pytest.raises(RunConflict, match=r"-Answer \$\{question\} \+Reply to \$\{question\}"):
        run_once(tmp_path / "results", plan(ledger), run=RUN.model_copy(update={"fingerprints": changed}))
    assert report(tmp_path / "results") == before


def test_time_zones_and_a_clock_set_back_do_not_change_results(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[20]"""
    reports = set()
    for zone in ("Pacific/Auckland", "America/St_Johns", "UTC"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        hour = iter(range(100_000))
        backwards = lambda hour=hour: f"2026-03-29T02:30:00.{999_999 - next(hour):06d}+00:00"  # noqa: E731
        monkeypatch.setattr("memorybench.engine.steps.now", backwards)
        monkeypatch.setattr("memorybench.journal.run_writer.now", backwards)
        folder = tmp_path / zone.replace("/", "-")
        run_once(folder, plan(ledger))
        reports.add(report(folder))
        with RunReader.open(folder) as run_reader:
            assert all(seconds >= 0 for stage in run_reader.stages(RUN.id) for seconds in stage.seconds)
    monkeypatch.undo()
    time.tzset()
    assert len(reports) == 1


def test_an_unexpected_error_fails_one_job_and_is_recorded_with_its_traceback(tmp_path: Path, ledger: Ledger) -> None:
    """[23]"""

    async def hook(call: str) -> None:
        if call == "search:h2q2":
            raise ZeroDivisionError("unexpected")

    run_once(tmp_path / "results", plan(ledger, hook=hook))
    assert counts(tmp_path / "results") == {"scored": 39, "failed": 1}
    with RunReader.open(tmp_path / "results") as run_reader:
        (failed,) = [outcome for outcome in run_reader.outcomes(RUN.id) if outcome.status == "failed"]
    assert failed.failure is not None
    assert failed.failure.traceback is not None
    assert "unexpected" in failed.failure.traceback


def test_a_failed_ingest_fails_its_questions_and_is_not_repeated(tmp_path: Path, ledger: Ledger) -> None:
    async def hook(call: str) -> None:
        if call == "add:h4:1":
            raise Transient("503")

    run_once(tmp_path / "results", plan(ledger, hook=hook, limits=Limits(tries=2, first_delay=0.0)))
    assert counts(tmp_path / "results") == {"scored": 35, "failed": 5}
    assert Counter(ledger.read())["add:h4:1"] == 2, "five questions share one failure"
    assert not [call for call in ledger.read() if call.startswith("search:h4")]


def test_a_failure_that_a_job_handles_keeps_no_data_of_the_job_in_memory(tmp_path: Path) -> None:
    replies: list[weakref.ref[_Reply]] = []

    async def read_reply() -> str:
        reply = _Reply()
        replies.append(weakref.ref(reply))
        raise Unreadable("not a verdict") from Transient("503")

    async def job(steps: Steps) -> Performed:
        for attempt in range(3):
            with suppress(Unreadable):
                await steps.once("judge", {"attempt": attempt}, read_reply, str, on=MODEL)
        gc.collect()
        assert not any(reply() for reply in replies)
        with pytest.raises(Unreadable) as again:
            await steps.once("judge", {"attempt": 0}, read_reply, str, on=MODEL)
        assert isinstance(again.value.__cause__, Transient)
        return Performed()

    trial = Trial(suite="bench", case_id="q1", subject=MODEL, benchmark="mini")
    run_once(tmp_path / "results", Plan(jobs=iter([Job(trial=trial, perform=job, ordinal=0)]), size=1))
    assert len(replies) == 3
    assert counts(tmp_path / "results") == {"scored": 1}


class _Reply:
    pass


def test_the_budget_stops_within_concurrency_calls_and_a_larger_one_continues(tmp_path: Path, ledger: Ledger) -> None:
    """[24]"""
    ending = run_once(tmp_path / "results", plan(ledger), budget=Budget(10 * PRICE), concurrency=4)
    paid = sum(call.startswith(("answer", "judge")) for call in ledger.read())
    assert 10 <= paid <= 10 + 4
    assert ending.status == "partial"
    stopped = counts(tmp_path / "results")
    assert stopped["blocked"] == 40 - stopped.get("scored", 0)
    run_once(tmp_path / "results", plan(ledger), budget=_resumed_budget(tmp_path / "results", 100.0))
    assert counts(tmp_path / "results") == {"scored": 40}
    assert set(Counter(ledger.read()).values()) == {1}


def test_spending_includes_failed_attempts(tmp_path: Path, ledger: Ledger) -> None:
    """A verdict that can not be read is paid for like any other."""

    async def hook(call: str) -> None:
        if call == "judge:h0q0":
            charge(Spending(calls=1, input_tokens=10, output_tokens=2, cost=PRICE))
            raise Unreadable("the judge said 'perhaps', wanted yes or no")

    run_once(tmp_path / "results", plan(ledger, hook=hook))
    assert counts(tmp_path / "results") == {"scored": 39, "unscored": 1}
    with RunReader.open(tmp_path / "results") as run_reader:
        spent = run_reader.spent(RUN.id)
    assert spent.calls == 80
    assert spent.cost == pytest.approx(80 * PRICE)


def test_one_ingest_serves_every_question_on_a_haystack(tmp_path: Path, ledger: Ledger) -> None:
    run_once(tmp_path / "results", plan(ledger), concurrency=40)
    assert set(Counter(ledger.read()).values()) == {1}
    assert sum(call.startswith("add:") for call in ledger.read()) == 8 * 3


def test_a_run_whose_searches_are_recorded_ingests_nothing(tmp_path: Path, ledger: Ledger) -> None:
    """`--reuse`: a new run reuses the steps of an earlier one that have the same name and inputs."""
    from memorybench.engine.run import perform
    from memorybench.journal.run_opening import open_run

    run_once(tmp_path / "results", plan(ledger))
    again = Ledger(tmp_path / "again.ledger")
    second = RUN.model_copy(update={"id": "second"})
    with open_run(tmp_path / "results", second, reuse=RUN.id) as run_writer:
        asyncio.run(perform(plan(again), run_writer))
    assert again.read() == []
    with RunReader.open(tmp_path / "results") as run_reader:
        assert run_reader.spent("second").cost == 0, "reused steps cost nothing"
        assert sum(stage.reused for stage in run_reader.stages("second")) == 120


def test_rate_and_concurrency_limits_of_a_subject_hold(tmp_path: Path, ledger: Ledger) -> None:
    running, most, starts, begun = 0, 0, [], time.monotonic()

    async def hook(call: str) -> None:
        nonlocal running, most
        if call.startswith(("answer", "judge")):
            starts.append(time.monotonic())
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.002)
        running -= 1

    limits = Limits(concurrency=2, per_second=200)
    run_once(tmp_path / "results", plan(ledger, haystacks=2, hook=hook, limits=limits), concurrency=10)
    assert most <= 4, "two subjects, two calls each"
    assert starts[-1] - begun >= (len(starts) - 1) / 200


def test_calls_in_flight_reach_the_concurrency_and_never_exceed_it(tmp_path: Path, ledger: Ledger) -> None:
    """Calls of `opening`, which are more than the jobs, count too."""
    running, most = 0, 0

    async def hook(call: str) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.002)
        running -= 1

    async def opening(steps: Steps) -> None:
        async def call(n: int) -> str:
            await hook(f"canary {n}")
            return ""

        await asyncio.gather(
            *(steps.once("canary", {"n": n}, partial(call, n), str, on=MODEL, paid=True) for n in range(30))
        )

    work = replace(plan(ledger, haystacks=20, questions=2, hook=hook), opening=opening)
    run_once(tmp_path / "results", work, concurrency=6)
    assert most == 6
    with RunReader.open(tmp_path / "results") as run_reader:
        assert run_reader.possibly_charged_twice(RUN.id) == 0


def open_with_canaries(call: Callable[[int], Awaitable[str]]) -> Callable[[Steps], Awaitable[None]]:
    """Make an `opening` of six concurrent paid calls."""

    async def opening(steps: Steps) -> None:
        calls = (steps.once("canary", {"n": n}, partial(call, n), str, on=MODEL, paid=True) for n in range(6))
        for result in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    return opening


@pytest.mark.parametrize("concurrency", [1, 2, 3])
def test_a_full_disk_ends_the_run_while_calls_wait(tmp_path: Path, ledger: Ledger, concurrency: int) -> None:
    """[13]"""
    full = False

    async def call(n: int) -> str:
        nonlocal full
        full = True
        return ""

    def fault() -> None:
        if full:
            raise sqlite3.OperationalError("database or disk is full")

    work = replace(plan(ledger), opening=open_with_canaries(call))
    with pytest.raises(JournalError):
        run_once(tmp_path / "results", work, concurrency=concurrency, fault=fault)


@pytest.mark.slow
@pytest.mark.parametrize("outcomes", [1, 20, 39])
def test_a_disk_error_while_an_outcome_is_committed_ends_the_run(
    tmp_path: Path, ledger: Ledger, caplog: pytest.LogCaptureFixture, outcomes: int
) -> None:
    """[13]"""
    file, errors = tmp_path / "results" / "results.db", [sqlite3.OperationalError("disk I/O error")]
    gc.collect()  # tasks that earlier tests left behind
    caplog.clear()

    def fault() -> None:
        with closing(sqlite3.connect(file)) as db:
            (recorded,) = db.execute("SELECT count(*) FROM outcomes").fetchone()
        if recorded >= outcomes and errors:
            raise errors.pop()

    with pytest.raises(JournalError):
        run_once(tmp_path / "results", plan(ledger), fault=fault, concurrency=1)
    gc.collect()
    assert not caplog.records, "the event loop reports no exception that was never retrieved"


def test_a_failed_call_holds_its_slot_until_the_failure_is_committed(tmp_path: Path, ledger: Ledger) -> None:
    """[2] Otherwise a kill at that moment would leave more calls to repeat than `concurrency`."""
    has_failed = False

    async def call(n: int) -> str:
        nonlocal has_failed
        ledger.write(f"canary {n}")
        if n:
            await asyncio.sleep(600)
        while len(ledger.read()) < 2:  # noqa: ASYNC110  other tasks append to the file
            await asyncio.sleep(0)
        has_failed = True
        raise Unreadable("not a verdict")

    def fault() -> None:
        if has_failed:
            os.kill(os.getpid(), signal.SIGKILL)

    work = replace(plan(ledger), opening=open_with_canaries(call))
    assert in_child(lambda: run_once(tmp_path / "results", work, concurrency=2, fault=fault)) is None
    assert len(ledger.read()) == 2


def test_an_error_text_that_cannot_be_encoded_fails_one_trial_only(tmp_path: Path, ledger: Ledger) -> None:
    async def hook(call: str) -> None:
        if call == "judge:h0q0":
            raise Unreadable("lone surrogate \ud83d")

    run_once(tmp_path / "results", plan(ledger, haystacks=1, hook=hook))
    assert counts(tmp_path / "results") == {"scored": 4, "unscored": 1}


def test_a_new_step_needs_no_query(tmp_path: Path, ledger: Ledger) -> None:
    queries: list[str] = []
    with open_run(tmp_path / "results", RUN) as run_writer:
        run_writer._reads.set_trace_callback(queries.append)
        asyncio.run(perform(plan(ledger), run_writer))
    # the first of five questions on a haystack ingests it with 4 steps; the others may read these
    assert len([query for query in queries if "FROM steps" in query]) <= 8 * 4 * 4


@pytest.mark.slow
def test_garbage_is_collected_rarely_during_a_run_only(tmp_path: Path, ledger: Ledger) -> None:
    before, during = gc.get_threshold(), set()

    async def hook(call: str) -> None:
        during.add((gc.get_freeze_count() > 0, gc.get_threshold()[0] > before[0]))

    run_once(tmp_path / "results", plan(ledger, haystacks=1, hook=hook))
    assert during == {(True, True)}
    assert (gc.get_freeze_count(), gc.get_threshold()) == (0, before)


def test_a_cancelled_step_is_not_paid_again(tmp_path: Path, ledger: Ledger) -> None:
    """The task is cancelled while its result is being committed."""
    committing, release, calls = Event(), Event(), 0

    def fault() -> None:
        if calls:
            committing.set()
            release.wait()

    async def call() -> str:
        nonlocal calls
        calls += 1
        return "yes"

    async def opening(steps: Steps) -> None:
        task = asyncio.ensure_future(steps.once("canary", {}, call, str, paid=True))
        await asyncio.to_thread(committing.wait)
        task.cancel()
        again = asyncio.ensure_future(steps.once("canary", {}, call, str, paid=True))
        await asyncio.sleep(0)
        release.set()
        await asyncio.wait([task, again])
        assert task.cancelled()
        assert await steps.once("canary", {}, call, str, paid=True) == "yes"

    work = replace(plan(ledger, haystacks=1), opening=opening)
    run_once(tmp_path / "results", work, concurrency=1, fault=fault)
    assert calls == 1
    assert counts(tmp_path / "results") == {"scored": 5}


def test_attempts_open_at_a_kill_are_at_most_the_concurrency(tmp_path: Path, ledger: Ledger) -> None:
    """[1] Jobs that wait for a slot have not recorded an attempt yet."""

    async def hook(call: str) -> None:
        if len([call for call in ledger.read() if call.startswith("answer")]) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(600 if call.startswith("answer") else 0)

    assert in_child(lambda: run_once(tmp_path / "results", plan(ledger, hook=hook), concurrency=3)) is None
    with RunReader.open(tmp_path / "results") as run_reader:
        assert run_reader.possibly_charged_twice(RUN.id) == 3
