"""Lost facts, checked with the bundled cases, whose removed facts are known."""

import asyncio
from typing import Any

import pytest

from memorybench.judging.facts import fact_from, facts_of
from memorybench.judging.judge import Judge
from memorybench.judging.matching_judge import EntailmentJudge
from memorybench.models.scripted import ScriptedModel
from memorybench.suites.extraction.cases import ExtractionCase, load_cases
from memorybench.suites.extraction.evaluator import _UnrecordedSteps
from memorybench.suites.extraction.losses import Losses, find_losses
from tests.suites.extraction.known import BUNDLED

CASES = load_cases(BUNDLED)
each_case = pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])


def losses(case: ExtractionCase, output: Any) -> Losses:
    stated = [fact for fact in map(fact_from, case.expected_facts) if fact is not None]
    before, after = facts_of(case.existing_memory), facts_of(output)
    return asyncio.run(find_losses(_UnrecordedSteps(), before, after, stated, case.conversation))


@each_case
def test_the_expected_memory_has_no_losses(case: ExtractionCase) -> None:
    result = losses(case, case.expected_output)
    assert result.lost == ()
    assert set(map(str, result.open)) <= set(map(str, case.gold.removed))
    assert result.kept == len(case.gold.kept)


@each_case
def test_an_emptied_memory_loses_all_facts_but_the_removed_ones(case: ExtractionCase) -> None:
    result = losses(case, {})
    assert result.kept == 0
    assert {str(fact) for fact in case.gold.kept} <= {str(fact) for fact in (*result.lost, *result.open)}
    assert not {str(fact) for fact in case.gold.removed} & {str(fact) for fact in result.lost}


def test_facts_that_the_user_did_not_mention_are_lost_and_not_undecided() -> None:
    chatting = [case for case in CASES if case.labels["scenario"] == "no_extraction"]
    results = [losses(case, {}) for case in chatting]
    assert sum(len(result.lost) for result in results) == sum(len(facts_of(case.existing_memory)) for case in chatting)


@pytest.mark.parametrize(("verdict", "kept", "lost"), [("yes", 2, 0), ("no", 0, 2)])
def test_the_judge_decides_both_old_facts_that_may_share_a_new_one(verdict: str, kept: int, lost: int) -> None:
    before, after = facts_of(["Has a brown dog", "Likes the dog of a neighbour"]), facts_of(["Walks a dog"])
    judge = EntailmentJudge(Judge(ScriptedModel(lambda _: verdict)))
    result = asyncio.run(find_losses(_UnrecordedSteps(), before, after, (), (), judge))
    assert (result.kept, len(result.lost), result.open) == (kept, lost, ())
