"""Properties that hold for every output of an extractor."""

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorybench.judging.facts import facts_of
from memorybench.suites.extraction.cases import load_cases
from memorybench.suites.extraction.findings import Findings
from memorybench.suites.extraction.mutants import INVENTED, mutants_of, mutation_summary, run_mutants
from memorybench.suites.extraction.scores import scores_of
from tests.suites.extraction.known import (
    BUNDLED,
    CHANGING,
    CHATTING,
    DENYING,
    case,
    compare_output,
    filed,
    judge_output,
)

CASES = load_cases(BUNDLED)
SPELLINGS = (str.upper, str.title, lambda name: name.replace("_", "-"), lambda name: name.replace("_", " "))
DECIDED = frozenset(("drop", "invent", "stale", "forbid", "amnesia"))
OPEN = frozenset(("negate", "swap", "word order", "doubt", "renumber", "sign", "tense", "used to", "third party"))


def is_a_line_of(first: str, second: str) -> bool:
    """Judges as if only the same words say the same."""
    return second in first.splitlines()


def scores(findings: Findings) -> dict[str, float]:
    return {score.name: score.value for score in scores_of(findings)}


@st.composite
def outputs(draw: st.DrawFn) -> tuple[int, list[dict[str, str]]]:
    """Draws a case and an output: some of its new and old facts and sentences of its conversation, in any order."""
    index = draw(st.integers(0, len(CASES) - 1))
    chosen = CASES[index]
    sentences = [{"category": "", "content": turn.content} for turn in chosen.conversation if turn.role == "user"]
    pool = [*filed(chosen.expected_output), *filed(chosen.existing_memory), *sentences]
    return index, draw(st.lists(st.sampled_from(pool), max_size=6))


@given(outputs(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_order_of_facts_and_spelling_of_categories_do_not_matter(
    drawn: tuple[int, list[dict[str, str]]], chance: Any
) -> None:
    index, output = drawn
    spellings = {fact["category"]: chance.choice(SPELLINGS)(fact["category"]) for fact in output}
    other = [{**fact, "category": spellings[fact["category"]]} for fact in output]
    chance.shuffle(other)
    assert scores(compare_output(CASES[index], output)) == scores(compare_output(CASES[index], other))


@pytest.mark.slow
@given(outputs())
@settings(max_examples=60, deadline=None)
def test_an_invented_fact_never_raises_precision(drawn: tuple[int, list[dict[str, str]]]) -> None:
    index, output = drawn
    before = scores(judge_output(CASES[index], output, is_a_line_of))
    invented = {"category": "", "content": INVENTED}
    after = scores(judge_output(CASES[index], [*output, invented], is_a_line_of))
    assert after["precision"] <= before.get("precision", 1.0)
    assert after["coverage_precision"] <= before.get("coverage_precision", 1.0)
    assert after["hallucinated"] == before["hallucinated"] + 1


@pytest.mark.slow
@given(outputs(), st.data())
@settings(max_examples=60, deadline=None)
def test_dropping_a_correct_fact_never_raises_recall(
    drawn: tuple[int, list[dict[str, str]]], data: st.DataObject
) -> None:
    index, output = drawn
    correct = [{"category": fact.category, "content": fact.text} for fact in CASES[index].gold.added]
    if not correct:
        return
    dropped = data.draw(st.sampled_from(correct))
    whole = [*output, *(fact for fact in correct if fact not in output)]
    before = scores(judge_output(CASES[index], whole, is_a_line_of))
    after = scores(judge_output(CASES[index], [fact for fact in whole if fact != dropped], is_a_line_of))
    assert after.get("recall", 0.0) <= before["recall"]
    assert after.get("coverage_recall", 0.0) <= before["coverage_recall"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_expected_output_of_every_case_scores_1_on_everything(case: Any) -> None:
    findings = compare_output(case, case.expected_output)
    values = scores(findings)
    ideal = ("precision", "recall", "f1", "coverage_precision", "coverage_recall", "conflict_resolution", "minimalism",
             "must_not_store")  # fmt: skip
    assert {name: values[name] for name in ideal if name in values and values[name] != 1} == {}
    assert not findings.remarks
    assert findings.undecided == 0
    assert ("minimalism" in values) == (not case.expected_facts and not case.superseded)
    assert ("conflict_resolution" in values) == bool(case.superseded)


def test_every_case_kills_a_mutant_and_altered_facts_need_a_judge() -> None:
    results = {one.id: run_mutants(one) for one in CASES}
    assert mutation_summary(results).startswith("mutation score 80 of 80 cases (100%); 332 of 1064 mutants killed")
    assert [id for id, result in results.items() if not result["killed"] or result["survived"]] == []
    assert {kind for result in results.values() for kind in result["killed"]} >= DECIDED
    assert OPEN <= {kind for result in results.values() for kind in result["undecided"]} <= OPEN | {"invent"}
    assert {kind for one in CASES for kind, _ in mutants_of(one)} == DECIDED | OPEN


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_judge_kills_every_mutant(case: Any) -> None:
    survivors = [kind for kind, output in mutants_of(case) if judge_output(case, output, is_a_line_of).flawless]
    assert survivors == []


@pytest.mark.parametrize(
    ("fact", "swapped"),
    [
        ("Mira manages Olek", ["Olek manages Mira"]),
        ("Manages Olek in Ghent", ["Olek manages the user in Ghent"]),
        ("Adopted a dog named Olek", ["Olek adopted a dog named the user"]),
        ("Married to Olek", []),
        ("Manages two bakeries on Fridays", []),
        ("Trade fairs", []),
    ],
)
def test_the_mutant_swap_exchanges_subject_and_object(fact: str, swapped: list[str], tmp_path: Path) -> None:
    conversation = [{"role": "user", "content": f"I met Mira and Olek. {fact}."}]
    values = {
        **DENYING,
        "conversation": conversation,
        "expected_output": {"constraints": [fact]},
        "expected_facts": [f"constraints: {fact}"],
    }
    mutants = mutants_of(case(values, tmp_path))
    assert [facts_of(output)[-1].text for kind, output in mutants if kind == "swap"] == swapped


def test_the_summary_lists_survivors() -> None:
    results: dict[str, dict[str, list[str]]] = {
        "a": {"killed": ["drop"], "undecided": ["tense"], "survived": []},
        "b": {"killed": [], "undecided": [], "survived": ["drop"]},
    }
    assert ", 1 undecided; survived: b drop" in mutation_summary(results)


def test_the_expected_facts_in_another_order_are_flawless(tmp_path: Path) -> None:
    for values in (CHANGING, CHATTING):
        changed = case(values, tmp_path)
        facts = filed(changed.expected_output)
        random.Random(1).shuffle(facts)
        assert compare_output(changed, facts).flawless
