"""What is claimed of the dataset that ships with the package, held against its text."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from memorybench.catalog import catalog as catalogue
from memorybench.datasets.audit import AuditConversation, AuditDataset, AuditFact, load_audit, problems_of

FILE = Path(catalogue.__file__).parent / "data/sample-dataset.json"
SMALL_WORDS = frozenset(
    ("a", "an", "and", "at", "by", "for", "from", "has", "in", "is", "of", "on", "than", "the", "to", "was", "with")
)
USER = frozenset(("user", "user's"))


@cache
def sample() -> AuditDataset:
    return load_audit(FILE)


def facts() -> list[tuple[AuditConversation, AuditFact]]:
    return [(conversation, fact) for conversation in sample().conversations for fact in conversation.facts]


def saying(conversation: AuditConversation, fact: AuditFact) -> str:
    return next(turn.content for turn in conversation.turns if turn.id == fact.turn)


def transcript(conversation: AuditConversation) -> str:
    return "\n".join(turn.content for turn in conversation.turns)


def words(text: str) -> list[str]:
    return [word for word in re.findall(r"[\w'’:,]+\w|\w", text.casefold()) if word not in SMALL_WORDS | USER]


def says(text: str, phrase: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(phrase.casefold())}(?!\w)", text.casefold()) is not None


def events(conversation: AuditConversation) -> list[AuditFact]:
    return [fact for fact in conversation.facts if fact.category == "event"]


def chains(conversation: AuditConversation) -> list[list[AuditFact]]:
    by_id = {fact.id: fact for fact in conversation.facts}
    replaced = {fact.supersedes for fact in conversation.facts}
    found = []
    for last in conversation.facts:
        chain = [last]
        while (old := chain[-1].supersedes) is not None:
            chain.append(by_id[old])
        if len(chain) > 1 and last.id not in replaced:
            found.append(chain[::-1])
    return found


def test_the_sample_dataset_is_valid() -> None:
    assert [str(bad) for bad in problems_of(FILE)] == []


def test_the_sample_dataset_has_the_documented_size() -> None:
    assert len(sample().conversations) == 8
    assert all(14 <= len(conversation.turns) <= 30 for conversation in sample().conversations)
    assert all(len({turn.at and turn.at.date() for turn in one.turns}) >= 4 for one in sample().conversations)
    assert len(facts()) == 155
    assert sum(fact.value is not None for _, fact in facts()) == 89
    assert {fact.category for _, fact in facts()} == {"personal", "preference", "event", "relationship"}


def test_every_conversation_has_a_chain_of_three_and_one_of_two() -> None:
    for conversation in sample().conversations:
        assert sorted(len(chain) for chain in chains(conversation)) == [2, 3], conversation.id


def test_the_facts_of_a_chain_have_one_attribute_different_values_and_rising_dates() -> None:
    for conversation in sample().conversations:
        for chain in chains(conversation):
            assert len({(fact.subject, fact.attribute) for fact in chain}) == 1
            for old, new in pairwise(chain):
                assert old.valid_from is not None
                assert new.valid_from is not None
                assert old.valid_from < new.valid_from
                assert old.valid_to == new.valid_from
            assert chain[-1].valid_to is None


def test_only_superseded_attributes_have_two_values() -> None:
    for conversation in sample().conversations:
        replaced = {fact.supersedes for fact in conversation.facts}
        current = [
            (fact.subject, fact.attribute) for fact in conversation.facts if fact.id not in replaced and fact.value
        ]
        assert len(current) == len(set(current)), conversation.id


def test_every_value_is_quoted_verbatim_in_its_turn() -> None:
    for conversation, fact in facts():
        if fact.value is not None:
            assert says(saying(conversation, fact), fact.value), (conversation.id, fact.id)
            assert says(fact.content, fact.value), (conversation.id, fact.id)


def test_no_value_contains_another_value() -> None:
    for conversation in sample().conversations:
        values = [fact.value.casefold() for fact in conversation.facts if fact.value]
        assert not [(one, other) for one in values for other in values if one is not other and one in other]


def test_a_value_shares_no_word_with_its_subject_and_attribute() -> None:
    for _, fact in facts():
        if fact.value is not None:
            asked = words(f"{fact.subject} {fact.attribute}")
            assert not [word for word in words(fact.value) if any(word[:5] == known[:5] for known in asked)], fact.id


def test_a_fact_without_value_shares_its_words_with_its_turn() -> None:
    for conversation, fact in facts():
        if fact.value is None:
            said = transcript(conversation) if fact.category == "event" else saying(conversation, fact)
            here = words(said)
            lacking = [word for word in words(fact.content) if not any(word[:4] == spoken[:4] for spoken in here)]
            assert len(lacking) <= len(words(fact.content)) / 2, (conversation.id, fact.id, lacking)
            named = [word for word in re.findall(r"(?<=.)\b[A-Z]\w+|\d+", fact.content) if word != "User"]
            assert all(says(said, word) for word in named), (conversation.id, fact.id)


def test_events_have_different_dates_not_after_their_turns() -> None:
    for conversation in sample().conversations:
        dates = [fact.at for fact in events(conversation)]
        assert len(dates) >= 5
        assert len(set(dates)) == len(dates), conversation.id
        told = {turn.id: turn.at for turn in conversation.turns}
        for fact in events(conversation):
            at, then = fact.at, told[fact.turn or ""]
            assert at is not None
            assert then is not None
            assert timedelta(0) <= then - at < timedelta(days=32), (conversation.id, fact.id)


def test_the_date_of_an_event_is_stated_or_is_that_of_its_turn() -> None:
    for conversation in sample().conversations:
        told = {turn.id: turn.at for turn in conversation.turns}
        for fact in events(conversation):
            at, then = fact.at, told[fact.turn or ""]
            assert at is not None
            assert then is not None
            said = saying(conversation, fact)
            spoken = (
                re.search(rf"\b{at.day}(st|nd|rd|th)\b", said) or "New Year's Day" in said or "Easter Monday" in said
            )
            assert spoken or (at.date() == then.date() and re.search("[Tt]oday|this morning", said)), (
                conversation.id,
                fact.id,
            )


def test_a_conversation_does_not_answer_questions_about_another() -> None:
    asked: dict[tuple[str | None, str | None], set[str]] = {}
    for conversation, fact in facts():
        if fact.attribute:
            asked.setdefault((fact.subject, fact.attribute), set()).add(conversation.id)
    assert all(len(where) == 1 for where in asked.values())
    for home, fact in facts():
        others = (other for other in sample().conversations if other.id != home.id)
        # "52" and "seven" are said of other things, too: only names tell
        if fact.value is not None and fact.value[0].isupper():
            assert not [other.id for other in others if says(transcript(other), fact.value)], fact.id


@pytest.mark.parametrize(
    ("conversation", "told", "untold"),
    [
        ("moving-house", "sister", "brother"),
        ("moving-house", "whippet", "cat"),
        ("lake-wedding", "brother", "sister"),
        ("lake-wedding", "caterer", "photographer"),
        ("marine-thesis", "cat", "dog"),
        ("first-marathon", "coach", "doctor"),
        ("crumb-lane-bakery", "landlady", "accountant"),
        ("camper-van", "grandson", "granddaughter"),
        ("viola-trio", "daughter", "son"),
        ("heron-release", "database", "mascot"),
    ],
)
def test_near_misses_are_not_in_the_conversation(conversation: str, told: str, untold: str) -> None:
    said = next(transcript(one) for one in sample().conversations if one.id == conversation)
    assert says(said, told)
    assert not says(said, untold)
