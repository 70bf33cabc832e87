"""Leases of a process that shares a run with others."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from memorybench.core.plans import Job, Performed, Plan, Steps
from memorybench.core.trials import Subject, Trial
from memorybench.engine import leases
from memorybench.engine import run as engine
from memorybench.engine.budget import Budget
from memorybench.engine.leases import LeasedJobs
from memorybench.engine.stopping import Stop
from memorybench.journal.run_writer import RunWriter


@dataclass
class Leases:
    """The leases of a run that no other process works on."""

    names: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    """Trials that other processes have ended."""

    def try_lease(self, name: str) -> bool:
        self.names.add(name)
        return True

    def end_lease(self, name: str) -> None:
        self.names.remove(name)

    def has_ended(self, trial: str) -> bool:
        return trial in self.ended

    def newly_ended_trials(self) -> set[str]:
        return self.ended

    def ended_trials(self) -> set[str]:
        return self.ended


class BlockedRun(Leases):
    """A run of which other processes have used up the budget."""

    is_shared = True

    def scored(self) -> set[str]:
        return set()

    def has_outcome(self, status: str) -> bool:
        return status == "blocked"

    def spending(self) -> tuple[float, float, int]:
        return 2.0, 0.1, 0

    def recount_spending(self) -> tuple[float, tuple[float, int]]:
        return 2.0, (0.0, 0)


def test_a_process_without_paid_calls_knows_that_others_used_up_the_budget() -> None:
    run = cast(RunWriter, BlockedRun())
    ending = asyncio.run(engine.perform(Plan(jobs=(), size=0), run, budget=Budget(1.0)))
    assert ending.status == "partial"
    assert ending.is_blocked


class ResumedRun(BlockedRun):
    """A run whose failed trials another process tries again."""

    def has_outcome(self, status: str) -> bool:
        return False

    def newly_ended_trials(self) -> set[str]:
        """Return the trials that had failed before the run was resumed."""
        return {trial.key for trial in TRIALS}


SUBJECT = Subject(role="provider", name="m")
TRIALS = [Trial(suite="bench", case_id=f"q{n}", subject=SUBJECT, cluster=f"h{n}") for n in range(3)]


def test_a_process_does_not_end_a_run_that_another_one_has_resumed() -> None:
    run = ResumedRun(ended={TRIALS[0].key})
    plan = Plan(jobs=[Job(trial, perform, n) for n, trial in enumerate(TRIALS)], size=3)
    ending = asyncio.run(engine.perform(plan, cast(RunWriter, run)))
    assert (ending.status, ending.performed, ending.is_blocked) == ("partial", 0, False)


async def perform(steps: Steps) -> Performed:
    raise NotImplementedError


@pytest.mark.parametrize(("end", "kept"), [(True, 64), (False, 100)])
def test_a_process_keeps_64_leases_and_those_of_jobs_in_flight(end: bool, kept: int) -> None:
    subject = Subject(role="provider", name="m")
    trials = [Trial(suite="bench", case_id=f"q{n}", subject=subject, cluster=f"h{n}") for n in range(100)]
    jobs = [Job(trial, perform, ordinal) for ordinal, trial in enumerate(trials)]
    leases = Leases()

    async def take() -> list[Any]:
        leased = LeasedJobs(iter(jobs), cast(RunWriter, leases), Stop())
        taken = []
        while (job := await leased.next()) is not None:
            taken.append(job)
            if end:
                leased.end(job)
        return taken

    assert asyncio.run(take()) == jobs
    assert len(leases.names) == kept


def test_trials_that_ended_elsewhere_need_no_lease() -> None:
    """With many processes, most trials end elsewhere: a query for each would cost more than the work."""
    subject = Subject(role="provider", name="m")
    trials = [Trial(suite="bench", case_id=f"q{n}", subject=subject, cluster=f"h{n}") for n in range(100)]
    jobs = [Job(trial, perform, ordinal) for ordinal, trial in enumerate(trials)]
    leases = Leases(ended={trial.key for trial in trials[:90]})
    leased = LeasedJobs(iter(jobs), cast(RunWriter, leases), Stop())
    assert asyncio.run(leased.next()) is jobs[90]
    assert (len(leases.names), leased.ended()) == (1, 90)


class BusyRun(Leases):
    """A run whose only unit another process has, until it ends the last trial."""

    def __init__(self, trials: set[str]) -> None:
        super().__init__()
        self.tries = self.reads = self.whole_reads = 0
        self._trials = trials

    def try_lease(self, name: str) -> bool:
        self.tries += 1
        return False

    def newly_ended_trials(self) -> set[str]:
        self.reads += 1
        return self._trials if self.reads == 10 else set()

    def ended_trials(self) -> set[str]:
        self.whole_reads += 1
        return set()


def test_a_process_that_waits_asks_once_for_all_jobs_of_a_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_SECONDS_BETWEEN_TRIES", 0.0)
    trials = [Trial(suite="bench", case_id=f"q{n}", subject=SUBJECT, cluster="h") for n in range(100)]
    run = BusyRun({trial.key for trial in trials})
    jobs = iter([Job(trial, perform, ordinal) for ordinal, trial in enumerate(trials)])
    assert asyncio.run(LeasedJobs(jobs, cast(RunWriter, run), Stop()).next()) is None
    assert run.tries < 100 + run.reads, "once per job when it comes first, then once per unit"
    assert run.whole_reads < 9, "not whenever it looks for a free unit"
