"""What must hold whatever an extractor writes."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorybench.judging.facts import facts_of
from memorybench.suites.extraction.cases import load_cases
from memorybench.suites.extraction.findings import Findings
from memorybench.suites.extraction.mutants import INVENTED, Killing, killing_of, mutants_of, report_of
from memorybench.suites.extraction.online import _laid_out
from memorybench.suites.extraction.scores import scores_of
from tests.suites.extraction.known import BUNDLED, CHANGING, CHATTING, case, found

CASES = load_cases(BUNDLED)
SPELLINGS = (str.upper, str.title, lambda name: name.replace("_", "-"), lambda name: name.replace("_", " ") + "s")
DECIDED = frozenset(("drop", "negate", "doubt", "renumber", "sign", "invent", "stale", "forbid", "amnesia"))
OPEN = frozenset(("tense", "used to", "third party"))


def spelled(category: str, chance: random.Random) -> str:
    return chance.choice(SPELLINGS)(category) if category else ""


def filed(state: Any) -> list[dict[str, str]]:
    return [{"category": fact.category, "content": fact.text} for fact in facts_of(state)]


def figures(findings: Findings) -> dict[str, float]:
    return {score.name: score.value for score in scores_of(findings)}


@st.composite
def outputs(draw: st.DrawFn) -> tuple[int, list[dict[str, str]]]:
    """A case, and some of its facts, its old ones and sentences of its conversation, in any order."""
    place = draw(st.integers(0, len(CASES) - 1))
    chosen = CASES[place]
    said = [{"category": "", "content": turn.content} for turn in chosen.conversation if turn.role == "user"]
    pool = [*filed(chosen.expected_output), *filed(chosen.existing_memory), *said]
    return place, draw(st.lists(st.sampled_from(pool), max_size=6))


@given(outputs(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_order_and_spelling_of_categories_do_not_matter(made: tuple[int, list[dict[str, str]]], chance: Any) -> None:
    place, output = made
    other = [{**fact, "category": spelled(fact["category"], chance)} for fact in output]
    chance.shuffle(other)
    assert figures(found(CASES[place], output)) == figures(found(CASES[place], other))


@given(outputs())
@settings(max_examples=60, deadline=None)
def test_an_invented_fact_never_raises_precision(made: tuple[int, list[dict[str, str]]]) -> None:
    place, output = made
    before = figures(found(CASES[place], output))
    after = figures(found(CASES[place], [*output, {"category": "", "content": INVENTED}]))
    assert after["precision"] <= before.get("precision", 1.0)
    assert after["coverage_precision"] <= before.get("coverage_precision", 1.0)
    assert after["hallucinated"] == before["hallucinated"] + 1


@given(outputs(), st.data())
@settings(max_examples=60, deadline=None)
def test_leaving_out_a_true_fact_never_raises_recall(
    made: tuple[int, list[dict[str, str]]], data: st.DataObject
) -> None:
    place, output = made
    true = [{"category": fact.category, "content": fact.text} for fact in CASES[place].gold.added]
    if not true:
        return
    gone = data.draw(st.sampled_from(true))
    whole = [*output, *(fact for fact in true if fact not in output)]
    before = figures(found(CASES[place], whole))
    after = figures(found(CASES[place], [fact for fact in whole if fact != gone]))
    assert after.get("recall", 0.0) <= before["recall"]
    assert after.get("coverage_recall", 0.0) <= before["coverage_recall"]


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.id)
def test_the_gold_output_of_every_case_scores_1_on_everything(one: Any) -> None:
    got = found(one, one.expected_output)
    values = figures(got)
    ideal = ("precision", "recall", "f1", "coverage_precision", "coverage_recall", "conflict_resolution", "minimalism",
             "must_not_store")  # fmt: skip
    assert {name: values[name] for name in ideal if name in values and values[name] != 1} == {}
    assert not got.remarks
    assert got.undecided == 0
    assert ("minimalism" in values) == (not one.expected_facts and not one.superseded)
    assert ("conflict_resolution" in values) == bool(one.superseded)


def test_every_case_is_killed_by_a_mutant(capsys: pytest.CaptureFixture[str]) -> None:
    killings = [killing_of(one) for one in CASES]
    with capsys.disabled():
        print(f"\n{report_of(killings)}")
    assert [killing.case for killing in killings if not killing.killed] == []
    assert [killing for killing in killings if killing.survived] == []


def test_mutants_of_every_kind_are_made() -> None:
    kinds = {mutant.kind for one in CASES for mutant in mutants_of(one)}
    assert kinds == DECIDED | OPEN


def test_no_mutant_is_taken_for_the_gold_and_code_decides_most_kinds() -> None:
    """Another time and another person are left to a judge; all else is decided by code."""
    killings = [killing_of(one) for one in CASES]
    assert {kind for killing in killings for kind in killing.undecided} <= OPEN
    assert {kind for killing in killings for kind in killing.killed} >= DECIDED
    assert ", 1 undecided; survived: b drop" in report_of(
        [
            Killing(case="a", killed=("drop",), undecided=("tense",), survived=()),
            Killing(case="b", killed=(), survived=("drop",)),
        ]
    )


def test_a_mutant_that_changes_nothing_would_be_seen_to_survive(tmp_path: Path) -> None:
    for written in (CHANGING, CHATTING):
        one = case(written, tmp_path)
        facts = filed(one.expected_output)
        random.Random(1).shuffle(facts)
        assert found(one, facts).flawless


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=12,
    )
)
@settings(deadline=None)
def test_a_judge_is_shown_a_memory_as_json_lays_it_out(memory: Any) -> None:
    assert _laid_out(memory, "\n") == json.dumps(memory, ensure_ascii=False, indent=1)
