"""The whole crash sweep: every commit of a run of 40 jobs, kills during resume, and 200 random kills."""

import random
from pathlib import Path

import pytest

from tests.engine.sweep import crash_and_resume
from tests.engine.workload import Ledger, plan, report, run_once

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]


@pytest.fixture
def expected(tmp_path: Path) -> str:
    run_once(tmp_path / "whole", plan(Ledger(tmp_path / "whole.ledger")))
    return report(tmp_path / "whole")


def test_a_kill_at_every_commit(tmp_path: Path, expected: str) -> None:
    place = 1
    while crash_and_resume(tmp_path / f"at-{place}", [place], expected):
        place += 1
    print(f"{place - 1} commits, each killed once")
    assert place > 60


def test_a_kill_at_every_commit_and_three_during_resume(tmp_path: Path, expected: str) -> None:
    chance = random.Random(3)
    place = 1
    while crash_and_resume(tmp_path / f"at-{place}", [place, *(chance.randint(1, 40) for _ in range(3))], expected):
        place += 1


def test_two_hundred_random_kills(tmp_path: Path, expected: str) -> None:
    chance = random.Random(200)
    for n in range(200):
        crash_and_resume(tmp_path / f"random-{n}", [chance.randint(1, 120)], expected)
