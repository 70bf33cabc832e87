"""Free text becomes a question that leaves out its answer."""

import json
from collections import Counter
from pathlib import Path

import pytest

from memorybench.datasets.audit import AuditConversation, AuditDataset
from memorybench.suites.audit.generation import generate
from memorybench.suites.audit.grammar import readings
from memorybench.suites.audit.patterns import PATTERNS, Pattern
from memorybench.suites.audit.templates import structured_reading
from memorybench.vocabulary.conversation import Fact, Turn
from tests.suites.audit.probing import conversation, fact, probes_of

FREE_TEXT = Path(__file__).parent / "free_text_facts.json"


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_every_named_shape_reads_its_example(pattern: Pattern) -> None:
    read = [way for way in readings(Fact(id="f", content=pattern.example)) if way.shape == pattern.name]
    assert [(way.question, way.value) for way in read] == [(pattern.asked, pattern.answer)]


SHAPES = [
    ("User plays the violin in a local orchestra", "What does the user play in a local orchestra?", "the violin"),
    ("User doesn't eat pork", "What does the user not eat?", "pork"),
    ("User never drinks coffee after noon", "What does the user never drink after noon?", "coffee"),
    ("My brother's wedding is on 14 June", "When is the user's brother's wedding?", "14 June"),
    ("The team uses PostgreSQL for analytics", "What does the team use for analytics?", "PostgreSQL"),
    ("Acme's contract renews on 1 March", "When does Acme's contract renew?", "1 March"),
    ("The budget was raised to $40,000", "What was the budget raised to?", "$40,000"),
    ("User started pottery classes in March 2022", "When did the user start pottery classes?", "March 2022"),
    ("I plan to visit Kyoto next spring", "What does the user plan to visit next spring?", "Kyoto"),
    ("User is saving money to buy a canoe", "What is the user saving money to do?", "buy a canoe"),
    ("User runs 5 miles every morning", "How many miles does the user run every morning?", "5"),
    ("User has been learning Norwegian since January", "Since when has the user been learning Norwegian?", "January"),
    ("User has a fear of spiders", "What does the user have a fear of?", "spiders"),
    ("User quit smoking because of his asthma", "Why did the user quit smoking?", "his asthma"),
    ("User's manager is Priya Nair", "Who is the user's manager?", "Priya Nair"),
    ("Anna has been married for 5 years", "For how long has Anna been married?", "5 years"),
    ("Anna won't fly with low-cost airlines", "What will Anna not fly with?", "low-cost airlines"),
    ("We're hiring Tomas for the kitchen", "Who is the user hiring for the kitchen?", "Tomas"),
]


@pytest.mark.parametrize(("content", "question", "value"), SHAPES, ids=[shape[0] for shape in SHAPES])
def test_a_statement_with_a_known_verb_is_asked_about(content: str, question: str, value: str) -> None:
    read = {way.question: way.value for way in readings(Fact(id="f", content=content))}
    assert read.get(question) == value, read


@pytest.mark.parametrize(
    ("attribute", "question"),
    [
        ("name", "What is Ana's name?"),
        ("age", "How old is Ana?"),
        ("occupation", "What is Ana's job?"),
        ("lives_in", "Where does Ana live?"),
        ("birthday", "When is Ana's birthday?"),
        ("number of cats", "How many cats does Ana have?"),
        ("dog name", "What is the name of Ana's dog?"),
        ("sister", "Who is Ana's sister?"),
        ("hobbies", "What are Ana's hobbies?"),
        ("plays", "What does Ana play?"),
        ("owns a house in", "What does Ana own a house in?"),
        ("favourite tea", "What is Ana's favourite tea?"),
    ],
)
def test_a_structured_fact_is_asked_about_by_its_attribute(attribute: str, question: str) -> None:
    read = structured_reading(Fact(id="f", content="-", subject="Ana", attribute=attribute, value="x"))
    assert read is not None
    assert read.question == question


def test_a_fact_that_no_shape_fits_gets_a_gap() -> None:
    made = probes_of(conversation(fact("f", "Nothing beats the number 14 tram to Riverside for a grey Sunday")))
    assert [probe.origin for probe in made.probes if probe.type == "recall"] == ["cloze"]
    assert "____" in made.probes[0].question


def test_seven_of_ten_free_text_facts_are_probed_and_the_rest_is_counted() -> None:
    facts = [fact(entry["id"], entry["content"]) for entry in json.loads(FREE_TEXT.read_text(encoding="utf-8"))]
    assert len(facts) == 200
    # each in a conversation of its own: they were written apart, and some would be rivals
    alone = tuple(
        AuditConversation(id=one.id, turns=(Turn(role="user", content=one.content, id="t1"),), facts=(one,))
        for one in facts
    )
    made = generate(AuditDataset(id="yardstick", conversations=alone), ["recall"])
    origins = Counter(probe.origin for probe in made.probes)
    assert len(made.probes) >= 140, origins
    assert origins["grammar"] > origins["cloze"], origins
    assert len(made.probes) + len(made.skipped) == 200
    assert all(skipped.reason for skipped in made.skipped)
