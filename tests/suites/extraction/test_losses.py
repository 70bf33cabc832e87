"""What becomes of old facts, checked with the bundled cases, whose removed facts are known."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from memorybench.core.conversation import Turn
from memorybench.judging.facts import MemoryFact, facts_of
from memorybench.judging.judge import Judge
from memorybench.judging.matching_judge import EntailmentJudge
from memorybench.suites.extraction.cases import ExtractionCase, load_cases
from memorybench.suites.extraction.losses import OldFacts, find_replacements, follow_old_facts
from memorybench.suites.unrecorded_steps import UnrecordedSteps
from tests.doubles.scripted_model import Line, ScriptedModel
from tests.judging.test_matching_judge import notes
from tests.suites.extraction.known import BUNDLED

CASES = load_cases(BUNDLED)
each_case = pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])


def oracle(turns: Sequence[Turn]) -> Line:
    """Judges as if only the same words say the same."""
    first, second = notes(turns)
    return "yes" if second in first.splitlines() else "no"


def follow(case: ExtractionCase, output: Any) -> OldFacts:
    """Follows the old facts with a judge that knows which of them the user withdrew."""
    judge = EntailmentJudge(Judge(ScriptedModel(oracle)))
    before, after = facts_of(case.existing_memory), facts_of(output)
    return asyncio.run(follow_old_facts(UnrecordedSteps(), before, after, case.gold.removed, judge))


@each_case
def test_the_expected_memory_keeps_and_removes_as_it_should(case: ExtractionCase) -> None:
    result = follow(case, case.expected_output)
    assert (result.kept, result.lost, result.stale) == (len(case.gold.kept), (), ())
    assert set(result.gone) == set(case.gold.removed)


@each_case
def test_an_emptied_memory_loses_all_facts_but_the_withdrawn_ones(case: ExtractionCase) -> None:
    result = follow(case, {})
    assert (result.kept, result.stale) == (0, ())
    assert {fact.text for fact in result.lost} == {fact.text for fact in case.gold.kept}


@each_case
def test_an_unchanged_memory_is_stale_where_facts_were_withdrawn(case: ExtractionCase) -> None:
    result = follow(case, case.existing_memory)
    assert set(result.stale) == set(case.gold.removed)
    assert (result.kept, result.lost, result.gone) == (len(case.gold.kept), (), ())


@pytest.mark.parametrize(("verdict", "kept", "lost"), [("yes", 2, 0), ("no", 0, 2)])
def test_the_judge_decides_both_old_facts_that_may_share_a_new_one(verdict: str, kept: int, lost: int) -> None:
    before, after = facts_of(["Has a brown dog", "Likes the dog of a neighbour"]), facts_of(["Walks a dog"])
    judge = EntailmentJudge(Judge(ScriptedModel(lambda _: verdict)))
    result = asyncio.run(follow_old_facts(UnrecordedSteps(), before, after, (), judge))
    assert (result.kept, len(result.lost)) == (kept, lost)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"Ines": {"job": "Baker"}}, {"Paul": {"job": "Baker"}}),
        ({"avoids": ["Black coffee"]}, {"wants": ["Black coffee"]}),
    ],
)
def test_an_old_fact_that_moved_to_another_place_is_not_kept_by_code(old: Any, new: Any) -> None:
    before, after = facts_of(old), facts_of(new)
    judge = EntailmentJudge(Judge(ScriptedModel(oracle)))
    assert asyncio.run(follow_old_facts(UnrecordedSteps(), before, after, (), judge)) == OldFacts(lost=before)


@pytest.mark.parametrize("owner", [{"user_id": "ines"}, {"agent_id": "a", "user_id": "ines"}])
def test_old_facts_of_the_only_user_are_compared_without_a_judge(owner: dict[str, str]) -> None:
    kept, gone = "Has a brown dog", "Likes the dog of a neighbour"
    before = facts_of([{"memory": kept, **owner}, {"memory": gone, **owner}])
    judge = EntailmentJudge(Judge(ScriptedModel(lambda _: "no")))
    withdrawn = facts_of([gone])
    for after in (facts_of([kept]), facts_of([{"memory": kept, **owner}])):
        result = asyncio.run(follow_old_facts(UnrecordedSteps(), before, after, withdrawn, judge))
        assert (result.kept, len(result.gone), result.lost) == (1, 1, ())


def test_an_old_fact_that_was_stored_twice_is_kept_once_it_is_stored() -> None:
    before, after = facts_of(["Has a brown dog", "has a brown dog."]), facts_of(["Has a brown dog"])
    judge = EntailmentJudge(Judge(ScriptedModel([])))
    assert asyncio.run(follow_old_facts(UnrecordedSteps(), before, after, (), judge)) == OldFacts(kept=2)


@pytest.mark.parametrize(
    ("memory", "withdrawn"),
    [
        ({"user": {"home": ["Lives in Bristol"]}}, MemoryFact("Lives in Bristol", ("user",))),
        ({"home": ["Lives in Bristol"]}, MemoryFact("lives in bristol", ("home",))),
        ({"home": ["Has a Dog"], "work": {"city": ["Works in Bath"]}}, MemoryFact("Works in Bath", ("work",))),
    ],
)
def test_a_withdrawn_fact_is_stale_in_any_case_and_under_any_key_of_its_path(
    memory: Any, withdrawn: MemoryFact
) -> None:
    before = facts_of(memory)
    judge = EntailmentJudge(Judge(ScriptedModel([])))
    result = asyncio.run(follow_old_facts(UnrecordedSteps(), before, before, (withdrawn,), judge))
    assert (result.kept, result.stale) == (len(before) - 1, before[-1:])


def test_a_stated_fact_replaces_an_old_one_in_a_block_of_blocks() -> None:
    old, new = facts_of({"pets": {"dog": ["Called Rex"]}}), (MemoryFact("Called Bella", ("pet",)),)
    assert find_replacements(old, new) == {0: 0}


def test_a_withdrawn_fact_of_another_category_is_not_stale() -> None:
    before = facts_of({"wants": ["Black coffee"]})
    judge = EntailmentJudge(Judge(ScriptedModel([])))
    withdrawn = (MemoryFact("Black coffee", ("avoids",)),)
    assert asyncio.run(follow_old_facts(UnrecordedSteps(), before, before, withdrawn, judge)) == OldFacts(kept=1)
