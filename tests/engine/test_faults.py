"""What the engine survives. Numbers in brackets are those of the fault catalogue in docs/engine.md."""

import asyncio
import gc
import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from memorybench.core.errors import Denied, JournalError, RunConflict, Transient, Unreadable
from memorybench.core.plans import Limits, Steps
from memorybench.engine.budget import Budget
from memorybench.journal.run_reader import RunReader
from tests.engine.workload import MODEL, PRICE, RUN, Ledger, in_child, plan, report, run_once


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "calls.ledger")


def counts(folder: Path) -> dict[str, int]:
    with RunReader.open(folder) as run_reader:
        return {status: n for status, n in run_reader.counts(RUN.id).items() if n}


def _interrupted_child(folder: Path, ledger: Ledger, signals: list[int], stuck: bool) -> int:
    """A child told to stop once its twentieth call is under way; its exit code."""
    child = os.fork()
    if child == 0:

        async def hook(call: str) -> None:
            if len(ledger.read()) > 20:
                (ledger.path.parent / "well-under-way").touch()
                await asyncio.sleep(600 if stuck else 0.2)
            await asyncio.sleep(0)

        ending = run_once(folder, plan(ledger, hook=hook))
        os._exit(130 if ending.interrupted else 0)
    while not (ledger.path.parent / "well-under-way").exists():
        time.sleep(0.01)
    for number in signals:
        os.kill(child, number)
        time.sleep(0.1)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_finishes_the_calls_under_way_and_loses_none(tmp_path: Path, ledger: Ledger, number: int) -> None:
    """[3]"""
    assert _interrupted_child(tmp_path / "results", ledger, [number], stuck=False) == 130
    with RunReader.open(tmp_path / "results") as run_reader:
        assert run_reader.run(RUN.id).status == "partial"
        assert run_reader.possibly_charged_twice(RUN.id) == 0, "a drained call is recorded, not left open"
    run_once(tmp_path / "results", plan(ledger))
    assert set(Counter(ledger.read()).values()) == {1}, "every call was made exactly once in the two runs"


def test_a_second_signal_leaves_at_once_and_the_run_resumes(tmp_path: Path, ledger: Ledger) -> None:
    """[3] The calls hang for ten minutes: only an immediate exit ends the child."""
    assert _interrupted_child(tmp_path / "results", ledger, [signal.SIGINT, signal.SIGINT], stuck=True) == 130
    run_once(tmp_path / "results", plan(ledger))
    assert counts(tmp_path / "results") == {"scored": 40}


@pytest.mark.parametrize("hint", [0.0, 0.15])
def test_nobody_calls_before_the_hint_of_a_429_has_passed(tmp_path: Path, ledger: Ledger, hint: float) -> None:
    """[8]"""
    told: list[float] = []
    later: list[float] = []

    async def hook(call: str) -> None:
        if call.startswith("answer"):
            if not told:
                told.append(time.monotonic())
                raise Transient("429", retry_after=hint)
            later.append(time.monotonic())

    run_once(tmp_path / "results", plan(ledger, hook=hook), concurrency=1)
    assert min(later) - told[0] >= hint
    assert counts(tmp_path / "results") == {"scored": 40}


def test_a_hint_beyond_all_patience_fails_the_trial_at_once(tmp_path: Path, ledger: Ledger) -> None:
    """[8] A billion seconds: we neither wait that long nor call before."""

    async def hook(call: str) -> None:
        if call == "answer:h0q0":
            raise Transient("429", retry_after=1e9)

    run_once(tmp_path / "results", plan(ledger, hook=hook))
    assert Counter(ledger.read())["answer:h0q0"] == 1
    assert counts(tmp_path / "results") == {"scored": 39, "failed": 1}
    with RunReader.open(tmp_path / "results") as run_reader:
        failed = next(outcome for outcome in run_reader.outcomes(RUN.id) if outcome.status == "failed")
    assert failed.failure is not None
    assert "asked to wait 1000000000 s" in failed.failure.message


def test_as_many_tries_as_configured_and_no_more(tmp_path: Path, ledger: Ledger) -> None:
    """[8, 10]"""

    async def hook(call: str) -> None:
        if call == "answer:h1q1":
            raise Transient("500 from the model")

    run_once(tmp_path / "results", plan(ledger, hook=hook, limits=Limits(tries=3, first_delay=0.0)))
    assert Counter(ledger.read())["answer:h1q1"] == 3
    assert counts(tmp_path / "results") == {"scored": 39, "failed": 1}


def test_a_denied_subject_is_left_alone(tmp_path: Path, ledger: Ledger) -> None:
    """[9] 401: at most `concurrency` calls, and nothing scored."""

    async def hook(call: str) -> None:
        await asyncio.sleep(0)
        if call.startswith("answer"):
            raise Denied("401 from the model: no such key")

    run_once(tmp_path / "results", plan(ledger, hook=hook), concurrency=4)
    assert 1 <= sum(call.startswith("answer") for call in ledger.read()) <= 4
    assert counts(tmp_path / "results") == {"failed": 40}


def test_a_reply_lost_on_the_way_is_told(tmp_path: Path, ledger: Ledger) -> None:
    """[11] The server may have charged for it."""
    lost: set[str] = set()

    async def hook(call: str) -> None:
        if call in ("answer:h0q0", "judge:h3q2") and call not in lost:
            lost.add(call)
            raise Transient("connection closed", uncertain=True)

    run_once(tmp_path / "results", plan(ledger, hook=hook))
    with RunReader.open(tmp_path / "results") as run_reader:
        assert run_reader.possibly_charged_twice(RUN.id) == 2
    assert counts(tmp_path / "results") == {"scored": 40}


def test_a_changed_dataset_or_prompt_refuses_to_resume_and_shows_the_difference(tmp_path: Path, ledger: Ledger) -> None:
    """[17]"""
    from memorybench.journal.rows import Fingerprint

    run_once(tmp_path / "results", plan(ledger))
    before = report(tmp_path / "results")
    changed = {**RUN.fingerprints, "prompt": Fingerprint.of("Reply to ${question}")}
    with pytest.raises(RunConflict, match=r"prompt changed: -Answer \$\{question\} \+Reply to \$\{question\}"):
        run_once(tmp_path / "results", plan(ledger), run=RUN.model_copy(update={"fingerprints": changed}))
    assert report(tmp_path / "results") == before


def test_time_zones_and_a_clock_that_runs_backwards_change_nothing(
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


def test_something_unforeseen_in_one_job_leaves_its_siblings_alone(tmp_path: Path, ledger: Ledger) -> None:
    """[23]"""

    async def hook(call: str) -> None:
        if call == "search:h2q2":
            raise ZeroDivisionError("nobody thought of this")

    run_once(tmp_path / "results", plan(ledger, hook=hook))
    assert counts(tmp_path / "results") == {"scored": 39, "failed": 1}
    with RunReader.open(tmp_path / "results") as run_reader:
        (failed,) = [outcome for outcome in run_reader.outcomes(RUN.id) if outcome.status == "failed"]
    assert failed.failure is not None
    assert failed.failure.traceback is not None
    assert "nobody thought of this" in failed.failure.traceback


def test_a_failed_ingest_fails_its_questions_without_being_asked_again(tmp_path: Path, ledger: Ledger) -> None:
    async def hook(call: str) -> None:
        if call == "add:h4:1":
            raise Transient("503")

    run_once(tmp_path / "results", plan(ledger, hook=hook, limits=Limits(tries=2, first_delay=0.0)))
    assert counts(tmp_path / "results") == {"scored": 35, "failed": 5}
    assert Counter(ledger.read())["add:h4:1"] == 2, "five questions share one failure"
    assert not [call for call in ledger.read() if call.startswith("search:h4")]


def test_the_budget_stops_within_concurrency_calls_and_a_larger_one_goes_on(tmp_path: Path, ledger: Ledger) -> None:
    """[24]"""
    ending = run_once(tmp_path / "results", plan(ledger), budget=Budget(10 * PRICE), concurrency=4)
    paid = sum(call.startswith(("answer", "judge")) for call in ledger.read())
    assert 10 <= paid <= 10 + 4
    assert ending.status == "partial"
    stopped = counts(tmp_path / "results")
    assert stopped["blocked"] == 40 - stopped.get("scored", 0)
    run_once(tmp_path / "results", plan(ledger), budget=Budget(100.0, spent=paid * PRICE))
    assert counts(tmp_path / "results") == {"scored": 40}
    assert set(Counter(ledger.read()).values()) == {1}


def test_what_was_paid_adds_up_failed_attempts_included(tmp_path: Path, ledger: Ledger) -> None:
    """A verdict that can not be read is paid for like any other."""
    from memorybench.core.errors import Unreadable
    from memorybench.core.spending import Spending, charge

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
    """`--reuse`: a new run takes over the steps of an old one wherever name and inputs agree."""
    from memorybench.engine.run import perform
    from memorybench.journal.run_writer import open_run

    run_once(tmp_path / "results", plan(ledger))
    again = Ledger(tmp_path / "again.ledger")
    second = RUN.model_copy(update={"id": "second"})
    with open_run(tmp_path / "results", second, reuse=RUN.id) as run_writer:
        asyncio.run(perform(plan(again), run_writer))
    assert again.read() == []
    with RunReader.open(tmp_path / "results") as run_reader:
        assert run_reader.spent("second").cost == 0, "what was reused was not paid again"
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


def test_calls_at_once_are_as_many_as_asked_for_and_no_more(tmp_path: Path, ledger: Ledger) -> None:
    """Also those that are made side by side before the first job, whose number is not that of the jobs."""
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


def canaries(call: Callable[[int], Awaitable[str]]) -> Callable[[Steps], Awaitable[None]]:
    """What stands before the first job: paid calls side by side, all of which are seen to their end."""

    async def opening(steps: Steps) -> None:
        asked = (steps.once("canary", {"n": n}, partial(call, n), str, on=MODEL, paid=True) for n in range(6))
        for end in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(end, BaseException):
                raise end

    return opening


@pytest.mark.parametrize("concurrency", [1, 2, 3])
def test_a_disk_that_fills_up_while_calls_wait_ends_the_run(tmp_path: Path, ledger: Ledger, concurrency: int) -> None:
    """[13]"""
    full = False

    async def call(n: int) -> str:
        nonlocal full
        full = True
        return ""

    def fault() -> None:
        if full:
            raise sqlite3.OperationalError("database or disk is full")

    work = replace(plan(ledger), opening=canaries(call))
    with pytest.raises(JournalError, match="free some space, then resume"):
        run_once(tmp_path / "results", work, concurrency=concurrency, fault=fault)


@pytest.mark.parametrize("outcomes", [1, 20, 40])
def test_a_disk_that_fails_under_an_outcome_ends_the_run(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, outcomes: int
) -> None:
    """[13] Nobody waits for an outcome before the next job begins; that it failed must be heard all the same."""
    file, fails = tmp_path / "results" / "results.db", [True]

    def failing(log: int) -> None:
        with closing(sqlite3.connect(file)) as db:
            (settled,) = db.execute("SELECT count(*) FROM outcomes").fetchone()
        if settled >= outcomes and fails:
            fails.clear()  # a disk says it once, and then that all is well
            raise OSError(5, "Input/output error")

    monkeypatch.setattr("memorybench.journal.writer._sync", failing)
    with pytest.raises(JournalError, match=r"Input/output error.*resume the run"):
        run_once(tmp_path / "results", plan(ledger))
    gc.collect()
    assert not caplog.records, "what nobody retrieved is told by the loop, too"


def test_a_call_that_failed_counts_until_that_is_written(tmp_path: Path, ledger: Ledger) -> None:
    """[2] Else a kill at that moment would leave more calls to repeat than were asked for at once."""
    failed = False

    async def call(n: int) -> str:
        nonlocal failed
        ledger.write(f"canary {n}")
        if n:
            await asyncio.sleep(600)
        failed = True
        raise Unreadable("a mumble")

    def fault() -> None:
        if failed:
            os.kill(os.getpid(), signal.SIGKILL)

    work = replace(plan(ledger), opening=canaries(call))
    assert in_child(lambda: run_once(tmp_path / "results", work, concurrency=2, fault=fault)) is None
    assert len(ledger.read()) == 2


def test_a_failure_whose_words_can_not_be_written_fails_its_trial_alone(tmp_path: Path, ledger: Ledger) -> None:
    async def hook(call: str) -> None:
        if call == "judge:h0q0":
            raise Unreadable("it said \ud83d and no more")

    run_once(tmp_path / "results", plan(ledger, haystacks=1, hook=hook))
    assert counts(tmp_path / "results") == {"scored": 4, "unscored": 1}


def test_a_step_given_up_by_who_asked_is_not_paid_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its task was cancelled when the result was written and had not yet reached the disk."""
    landing, calls = Event(), 0

    def slow(file: int) -> None:
        if calls:
            landing.wait()
        os.fsync(file)

    async def call() -> str:
        nonlocal calls
        calls += 1
        return "yes"

    async def opening(steps: Steps) -> None:
        asked = asyncio.ensure_future(steps.once("canary", {}, call, str, paid=True))
        while not steps.recorded("canary", {}):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        asked.cancel()
        await asyncio.wait([asked])
        landing.set()
        assert asked.cancelled()
        assert await steps.once("canary", {}, call, str, paid=True) == "yes"

    monkeypatch.setattr("memorybench.journal.writer._sync", slow)
    ledger = Ledger(tmp_path / "calls.ledger")
    run_once(tmp_path / "results", replace(plan(ledger, haystacks=1), opening=opening), concurrency=1)
    assert calls == 1
    assert counts(tmp_path / "results") == {"scored": 5}
