"""SIGKILL at commits, also while resuming. A thinned sweep; `make test-real` runs all of it."""

import random
from pathlib import Path

import pytest

from tests.engine.sweep import crash_and_resume
from tests.engine.workload import Ledger, plan, report, run_once


@pytest.fixture
def expected(tmp_path: Path) -> str:
    """The report of an uninterrupted run."""
    run_once(tmp_path / "whole", plan(Ledger(tmp_path / "whole.ledger")))
    return report(tmp_path / "whole")


def test_a_run_killed_at_any_commit_resumes_to_the_same_report(tmp_path: Path, expected: str) -> None:
    place = 1
    while crash_and_resume(tmp_path / f"at-{place}", [place], expected):
        place += 19
    assert place > 60, "the run has more commits than that"


@pytest.mark.slow
def test_a_run_killed_three_times_while_resuming_still_finishes(tmp_path: Path, expected: str) -> None:
    for first in (2, 40):
        crash_and_resume(tmp_path / f"from-{first}", [first, 2, 5, 16], expected)


@pytest.mark.slow
def test_random_kills_keep_the_invariants(tmp_path: Path, expected: str) -> None:
    chance = random.Random(20)
    for n in range(4):
        kills = [chance.randint(1, 120) for _ in range(chance.randint(1, 4))]
        crash_and_resume(tmp_path / f"random-{n}", kills, expected)
