"""What a memory no longer says: put to the bundled cases, of which it is known what had to go."""

import asyncio
from typing import Any

import pytest

from memorybench.judging.facts import fact_from, facts_of
from memorybench.judging.judge import Judge
from memorybench.judging.matching_judge import EntailmentJudge
from memorybench.models.scripted import ScriptedModel
from memorybench.suites.extraction.cases import ExtractionCase, load_cases
from memorybench.suites.extraction.evaluator import _Unrecorded
from memorybench.suites.extraction.losses import Losses, losses_of
from tests.suites.extraction.known import BUNDLED

CASES = load_cases(BUNDLED)
each_case = pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])


def losses(case: ExtractionCase, output: Any) -> Losses:
    stated = [fact for fact in map(fact_from, case.expected_facts) if fact is not None]
    before, after = facts_of(case.existing_memory), facts_of(output)
    return asyncio.run(losses_of(_Unrecorded(), before, after, stated, case.conversation))


@each_case
def test_the_right_memory_has_lost_nothing(case: ExtractionCase) -> None:
    found = losses(case, case.expected_output)
    assert found.lost == ()
    assert set(map(str, found.open)) <= set(map(str, case.gold.removed))
    assert found.kept == len(case.gold.kept)


@each_case
def test_an_emptied_memory_has_kept_nothing_and_what_had_to_go_is_not_lost(case: ExtractionCase) -> None:
    found = losses(case, {})
    assert found.kept == 0
    assert {str(fact) for fact in case.gold.kept} <= {str(fact) for fact in (*found.lost, *found.open)}
    assert not {str(fact) for fact in case.gold.removed} & {str(fact) for fact in found.lost}


def test_what_nobody_spoke_of_is_lost_without_a_doubt() -> None:
    quiet = [case for case in CASES if case.labels["scenario"] == "no_extraction"]
    gone = [losses(case, {}) for case in quiet]
    assert sum(len(found.lost) for found in gone) == sum(len(facts_of(case.existing_memory)) for case in quiet)


@pytest.mark.parametrize(("verdict", "kept", "lost"), [("yes", 2, 0), ("no", 0, 2)])
def test_a_judge_is_asked_of_both_where_two_old_facts_may_be_one_new(verdict: str, kept: int, lost: int) -> None:
    before, after = facts_of(["Has a brown dog", "Likes the dog of a neighbour"]), facts_of(["Walks a dog"])
    judge = EntailmentJudge(Judge(ScriptedModel(lambda _: verdict)))
    found = asyncio.run(losses_of(_Unrecorded(), before, after, (), (), judge))
    assert (found.kept, len(found.lost), found.open) == (kept, lost, ())
