"""Free text becomes a question that leaves out its answer."""

import json
from collections import Counter
from pathlib import Path

import pytest

from memorybench.core.conversation import Fact, Turn
from memorybench.datasets.audit import AuditConversation, AuditDataset
from memorybench.suites.audit.generation import generate
from memorybench.suites.audit.grammar import readings
from memorybench.suites.audit.patterns import PATTERNS, Pattern
from memorybench.suites.audit.reading import structured_reading
from memorybench.suites.audit.wellformed import malformed
from tests.suites.audit.probing import conversation, fact, probes_of, reasons

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
    made = probes_of(conversation(fact("f", "User zigzags past 14 lock gates before dawn")))
    assert [probe.origin for probe in made.probes if probe.type == "recall"] == ["cloze"]
    assert "____" in made.probes[0].question


LABELLED = json.loads((Path(__file__).parent / "labelled_questions.json").read_text(encoding="utf-8"))
"""Read and labelled by hand, from what this and earlier versions asked about three datasets."""


def test_the_gate_tells_questions_from_nonsense() -> None:
    good, bad = ([entry for entry in LABELLED if entry["good"] is label] for label in (True, False))
    assert min(len(good), len(bad)) > 100
    assert [entry for entry in good if malformed(entry["question"], entry["value"])] == []
    assert [entry for entry in bad if not malformed(entry["question"], entry["value"])] == []


NOTES = [
    ("Keeps bees on the roof", "What does the user keep on the roof?", "bees"),
    ("Got promoted to senior analyst last month", "What is the user's job?", "senior analyst"),
    ("Got engaged on New Year's Eve", "When did the user get engaged?", "New Year's Eve"),
    ("Deadline for the grant application is Friday 14 November", "When is the deadline for the grant application?",
     "Friday 14 November"),
    ("Salary is 62k before tax", "What is the user's salary?", "62k before tax"),
    ("Daughter lost her first tooth yesterday", "What did the user's daughter lose yesterday?", "her first tooth"),
    ("Never drinks alcohol", "What does the user never drink?", "alcohol"),
    ("prefers tea over coffee", "What does the user prefer over coffee?", "tea"),
    ("Her parents live in Salta and visit once a year", "Where do the user's parents live?", "Salta"),
    ("Head office is moving to Eindhoven next year", "Where is the head office moving to?", "Eindhoven"),
    ("Two cats, Salt and Pepper", "How many cats does the user have?", "two"),
    ("Vikram is passionate about birdsong and teaching others with patience", "What is Vikram passionate about?",
     "birdsong and teaching others with patience"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "question", "value"), NOTES, ids=[note[0] for note in NOTES])
def test_a_note_without_a_subject_is_about_the_user_or_a_thing(content: str, question: str, value: str) -> None:
    made = probes_of(conversation(fact("f", content)))
    assert [(probe.question, probe.expected_answer) for probe in made.probes if probe.type == "recall"] == [
        (question, value)
    ]


def test_what_does_not_read_well_is_counted() -> None:
    made = probes_of(conversation(fact("f", "User had a nice chat")))
    assert (reasons(made), made.gates["malformed"] >= 1, made.probes) == ({"f": "malformed"}, True, ())


@pytest.mark.parametrize(
    ("attribute", "value", "question"),
    [
        ("tailor", "Benedek", "Who is Ana's tailor?"),
        ("running coach", "Femke", "Who is Ana's running coach?"),
        ("team lead", "the night shift", "What is Ana's team lead?"),
        ("flour supplier", "Taplow", "What is Ana's flour supplier?"),
    ],
)
def test_a_person_is_asked_for_by_who(attribute: str, value: str, question: str) -> None:
    read = structured_reading(Fact(id="f", content="-", subject="Ana", attribute=attribute, value=value))
    assert read is not None
    assert read.question == question


def test_what_is_not_only_so_is_not_asked_about_as_if_it_were_not() -> None:
    asked = [way.question for way in readings(Fact(id="f", content="Tim has not only met LeBron but also played golf"))]
    assert not [question for question in asked if " not " in question]


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
