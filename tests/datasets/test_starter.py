"""The starter benchmark: its data is unchanged, and it registers like a plug-in."""

from collections import Counter

import pytest

from memorybench.datasets.data_checks import GROUP
from memorybench.datasets.starter import Starter
from memorybench.files.entry_points import built_in_points
from scripts.check_starter import check

FINGERPRINT = "571f58c97e66b11f50d0465ea5ad51ec18ef68ace90c03570483503dd0b9b865"


@pytest.mark.slow
def test_the_checker_finds_no_problem() -> None:
    assert check() == []


def test_the_starter_is_registered_by_an_entry_point() -> None:
    assert built_in_points(GROUP)["starter"].load() is Starter


def test_the_data_is_pinned() -> None:
    """Published figures refer to this text: a change is a new version of the benchmark."""
    assert Starter().fingerprint == FINGERPRINT


def test_counts_and_samples() -> None:
    starter = Starter()
    assert len(starter.questions) == 360
    assert Counter(question.kind for question in starter.questions) == {
        "single-hop": 71,
        "multi-hop": 60,
        "temporal": 60,
        "knowledge-update": 69,
        "preference": 51,
        "abstention": 49,
    }
    haystacks = [starter.haystack(name) for name in dict.fromkeys(q.haystack for q in starter.questions)]
    assert len(haystacks) == 12
    assert sum(len(haystack.sessions) for haystack in haystacks) == 269
    assert sum(len(session.turns) for haystack in haystacks for session in haystack.sessions) == 2615
    first, tenth, last = starter.questions[0], starter.questions[9], starter.questions[-1]
    assert first.question == "How many seeds did Amara have to throw away when the fridge failed over Christmas?"
    assert first.answers == ("4,000 seeds.",)
    assert tenth.id == "amara-q10"
    assert last.id == "wanjiru-q30"


def test_every_question_has_gold_unless_it_has_no_answer() -> None:
    starter = Starter()
    for question in starter.questions:
        assert bool(question.gold_turns) is not question.abstain
        turns = {turn.id for session in starter.haystack(question.haystack).sessions for turn in session.turns}
        assert set(question.gold_turns) <= turns
