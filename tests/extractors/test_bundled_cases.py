"""The bundled extraction cases are consistent and cover all scenarios."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from tests.extractors import known

SCENARIOS = [
    "simple_extraction",
    "no_extraction",
    "constraint_extraction",
    "conflict_resolution",
    "multiple_blocks",
    "non_agreement",
    "preference_extraction",
    "append_behavior",
    "cost_and_revenue",
    "explicit_agreement",
]
KEYS = ["id", "description", "scenario", "domain", "existing_memory", "conversation", "expected_output"]
CASES = known.cases()

each_case = pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])


def texts_of(memory: Any) -> list[str]:
    return [f"{category}: {fact}" for category, fact in known.leaves(memory)]


def folded(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".")


def messages(case: dict[str, Any]) -> list[dict[str, str]]:
    roles = ("user", "assistant")
    turns = known.contents(case["conversation"])
    return [{"role": roles[place % 2], "content": content} for place, content in enumerate(turns)]


def test_there_are_eighty_cases_numbered_in_order() -> None:
    assert [case["id"] for case in CASES] == [f"test_{number:03}" for number in range(1, 81)]


def test_the_first_ten_are_the_ten_scenarios_in_order() -> None:
    assert [case["scenario"] for case in CASES[:10]] == SCENARIOS


def test_every_scenario_has_equal_cases_per_domain() -> None:
    counts = Counter((case["scenario"], case["domain"]) for case in CASES)
    assert counts == {(scenario, domain): 4 for scenario in SCENARIOS for domain in ("business", "personal")}


def test_conversations_have_both_styles_in_both_domains() -> None:
    counts = Counter((case["domain"], type(case["conversation"])) for case in CASES)
    assert counts == {(domain, kind): 20 for domain in ("business", "personal") for kind in (str, list)}


def test_conversations_are_unique() -> None:
    assert len({known.contents(case["conversation"]) for case in CASES}) == len(CASES)


@each_case
def test_a_case_has_its_keys_and_no_others(case: dict[str, Any]) -> None:
    assert [key for key in case if key not in ("must_not_store", "superseded")] == [*KEYS, "expected_facts"]
    assert case.get("must_not_store") != []
    assert case.get("superseded") != []


@each_case
def test_a_conversation_takes_turns_and_begins_with_the_user(case: dict[str, Any]) -> None:
    conversation = case["conversation"]
    if isinstance(conversation, str):
        roles = [line.partition(":")[0].lower() for line in conversation.splitlines()]
    else:
        roles = [message["role"] for message in conversation]
    assert 3 <= len(roles) <= 10
    assert roles == [("user", "assistant")[place % 2] for place in range(len(roles))]
    assert all(known.contents(conversation))


@each_case
def test_expected_facts_are_exactly_the_new_facts(case: dict[str, Any]) -> None:
    before = texts_of(case["existing_memory"])
    after = texts_of(case["expected_output"])
    assert case["expected_facts"] == [fact for fact in after if fact not in before]
    assert len(set(after)) == len(after)


@each_case
def test_superseded_facts_are_exactly_the_removed_ones(case: dict[str, Any]) -> None:
    after = texts_of(case["expected_output"])
    gone = [fact for fact in texts_of(case["existing_memory"]) if fact not in after]
    assert sorted(case.get("superseded", [])) == sorted(gone)


@each_case
def test_forbidden_facts_are_neither_in_existing_nor_expected_memory(case: dict[str, Any]) -> None:
    held = {
        folded(fact)
        for memory in (case["existing_memory"], case["expected_output"])
        for _, fact in known.leaves(memory)
    }
    assert not held & {folded(text) for text in case.get("must_not_store", [])}


@each_case
def test_facts_are_short_and_atomic(case: dict[str, Any]) -> None:
    for _, fact in known.leaves(case["expected_output"]):
        assert len(fact.split()) <= 12, fact
        assert not fact.endswith("."), fact
        assert ";" not in fact, fact


@each_case
def test_an_amount_keeps_the_period_that_the_user_named(case: dict[str, Any]) -> None:
    contents = " ".join(message["content"] for message in messages(case) if message["role"] == "user")
    for amount, period in re.findall(r"(\d[\d,.]* (?:EUR|USD|GBP|CHF)) (an? \w+)", contents):
        for fact in case["expected_facts"]:
            assert amount not in fact or f"{amount} {period}" in fact


@each_case
def test_facts_about_known_people_are_not_forbidden(case: dict[str, Any]) -> None:
    """Facts about people in the user's memory are to be stored; facts about strangers are gossip."""
    held = " ".join(fact[1:] for _, fact in known.leaves(case["existing_memory"]))
    names = re.findall(r"\b[A-Z][a-z]+\b", held)
    assert not [text for text in case.get("must_not_store", []) if text.startswith(tuple(names))]


def test_chit_chat_scenario_expects_no_facts() -> None:
    for case in CASES:
        if case["scenario"] == "no_extraction":
            assert case["expected_output"] == case["existing_memory"], case["id"]
            assert case["expected_facts"] == [], case["id"]


def test_missing_permission_is_shown_in_the_error() -> None:
    for case in CASES:
        if case["scenario"] == "non_agreement":
            assert case["must_not_store"], case["id"]
            assert "superseded" not in case, case["id"]


def test_every_other_scenario_changes_memory() -> None:
    for case in CASES:
        if case["scenario"] not in ("no_extraction", "non_agreement"):
            assert case["expected_output"] != case["existing_memory"], case["id"]


def test_every_conflict_has_a_superseded_fact() -> None:
    assert all("superseded" in case for case in CASES if case["scenario"] == "conflict_resolution")


def test_memories_may_have_many_shapes() -> None:
    def depth(memory: Any) -> int:
        return 1 + max((depth(block) for block in memory.values()), default=0) if isinstance(memory, dict) else 0

    existing = [case["existing_memory"] for case in CASES]
    assert {depth(memory) for memory in existing} == {1, 2, 3}
    assert {} in existing
    texts = [block for memory in existing for block in memory.values() if isinstance(block, dict)]
    assert any(isinstance(leaf, str) for block in texts for leaf in block.values())


@each_case
def test_perfect_extractor_returns_the_gold_and_amnesiac_nothing_new(case: dict[str, Any]) -> None:
    assert known.perfect(case["existing_memory"], messages(case)) == case["expected_output"]
    assert known.amnesiac(case["existing_memory"], messages(case)) == case["existing_memory"]


@each_case
def test_stale_extractor_keeps_superseded_facts(case: dict[str, Any]) -> None:
    facts = set(texts_of(known.stale(case["existing_memory"], messages(case))))
    assert facts == set(texts_of(case["expected_output"])) | set(case.get("superseded", []))


@each_case
def test_the_hoarder_stores_every_sentence(case: dict[str, Any]) -> None:
    stored = known.hoarder(case["existing_memory"], messages(case))
    assert " ".join(stored["notes"]).split() == " ".join(known.contents(case["conversation"])).split()


@each_case
def test_splitting_loses_no_word(case: dict[str, Any]) -> None:
    split = known.splitter(case["existing_memory"], messages(case))
    words = [word for fact in texts_of(case["expected_output"]) for word in fact.partition(": ")[2].split()]
    assert [word.rstrip(";") for _, piece in known.leaves(split) for word in piece.split()] == words


@each_case
def test_paraphraser_rewords_each_new_fact(case: dict[str, Any]) -> None:
    facts = texts_of(known.paraphraser(case["existing_memory"], messages(case)))
    assert len(facts) == len(texts_of(case["expected_output"]))
    assert not set(facts) & set(case["expected_facts"])


def test_negation_dropper_inverts_every_denial() -> None:
    denials = ("no ", "not ", "never ", "won't ", "can't ", "nothing ")
    turned = 0
    for case in CASES:
        for fact in case["expected_facts"]:
            content = fact.partition(": ")[2]
            denies = any(f" {denial}" in f" {content.casefold()}" for denial in denials)
            assert (known.without_negation(content) != content) == denies, content
            turned += denies
    assert turned >= 12


def test_bundled_file_is_readable_text() -> None:
    text = known.CASES.read_text(encoding="utf-8")
    assert text == json.dumps({"cases": CASES}, indent=2, ensure_ascii=False) + "\n"
