"""Probes that structure proves: about what is true, what changed, what is absent and what came first."""

import random
import re
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from memorybench.datasets.audit import AuditConversation, AuditDataset, AuditFact
from memorybench.datasets.audit_file import AbsentFact
from memorybench.suites.audit.answers import content, is_same, leaks, occurs
from memorybench.suites.audit.cloze import gaps
from memorybench.suites.audit.events import asked_order
from memorybench.suites.audit.generation import generate
from memorybench.suites.audit.probes import PROBE_TYPES, Probe
from memorybench.suites.audit.templates import question_for
from tests.suites.audit.probing import (
    conversation,
    day,
    fact,
    of_kind,
    order_probes,
    probes_of,
    questions,
    reasons,
    sample,
)

ROOT = Path(__file__).parents[3]
LOCOMO = ROOT / "../shared/data/locomo/locomo10.json"


@pytest.mark.parametrize(
    ("subject", "attribute", "label", "shown"),
    [
        (None, "first name", "the user", "First name"),
        ("user", "age", "the user", "Age"),
        ("Anna", "city", '"Anna"', "City"),
        ("user's bakery", "opening time", "the user's bakery", "Opening time"),
        ("My sister", "occupation", "the user's sister", "Occupation"),
        ("James", "date_of_birth", '"James"', "Date of birth"),
        ("user", "numberOfCats", "the user", "Number of cats"),
        ("user", "user's name", "the user", "User's name"),
        ('buyer of "Persuasion"', "city", "'buyer of \"Persuasion\"'", "City"),
        ("user", "works at", "the user", "Works at"),
        ("his van", "colour", '"his van"', "Colour"),
        ("user", "GP practice", "the user", "GP practice"),
        ("declan", "keeps", '"declan"', "Keeps"),
        # a person or a thing, with or without an article: the attribute does not tell
        ("conference", "keynote speaker", '"conference"', "Keynote speaker"),
        ("ramipril", "dose", '"ramipril"', "Dose"),
        ("ferry from Piraeus", "departure", '"ferry from Piraeus"', "Departure"),
        ("Halberd migration", "vendor", '"Halberd migration"', "Vendor"),
        ("user", "seat at Larkfield", "the user", "Seat at Larkfield"),
        ("user", "favourite-tea", "the user", "Favourite tea"),
        ("Raul", "e-mail", '"Raul"', "E-mail"),
        ("user", "t-shirt-size", "the user", "T-shirt size"),
        ("user", "Favourite tea", "the user", "Favourite tea"),
        ("user", "Favourite Tea", "the user", "Favourite tea"),
    ],
)
def test_an_attribute_is_asked_in_a_note_about_its_subject(
    subject: str | None, attribute: str, label: str, shown: str
) -> None:
    assert question_for(subject, attribute) == f"Fill the gap in this note about {label}. {shown}: ____."


@pytest.mark.parametrize(
    "attribute", ["event", "Notes", "Wednesdays", "monday", "misc", "one of the boats", "another boat"]
)
def test_an_attribute_that_names_no_kind_of_answer_has_no_question(attribute: str) -> None:
    assert question_for("user", attribute) is None
    known = fact("f", "User's rowing boat is Tamar Pearl", attribute=attribute, value="Tamar Pearl")
    asked = "Fill the gap with a name in a note of 10 January 2024: User's rowing boat is ____."
    assert questions(probes_of(conversation(known))) == {asked: "Tamar Pearl"}


@pytest.mark.parametrize(
    ("statement", "kind", "asked", "value"),
    [
        ("User's dog is Bramble", "name", "User's dog is ____", "Bramble"),
        ("User sold six mugs at a craft fair", "number", "User sold ____ mugs at a craft fair", "six"),
        ("The barn was built in 1911", "year", "The barn was built in ____", "1911"),
        ("User's flight leaves on April 3", "date", "User's flight leaves on ____", "April 3"),
        ("Anna has now joined South Boston", "name", "Anna has now joined ____", "South Boston"),
        ("User pays $450 a month", "number", "User pays ____ a month", "$450"),
    ],
)
def test_free_text_is_asked_with_a_gap_for_a_name_or_number(statement: str, kind: str, asked: str, value: str) -> None:
    question = f"Fill the gap with a {kind} in a note of 10 January 2024: {asked}."
    assert questions(probes_of(conversation(fact("f", statement)))) == {question: value}


@pytest.mark.parametrize(
    "statement",
    ["User prefers written updates over meetings", "Harbor Ventures led the seed round", "User sleeps badly", "-"],
)
def test_free_text_without_a_name_or_number_is_not_asked(statement: str) -> None:
    made = probes_of(conversation(fact("f", statement)))
    assert (made.probes, reasons(made)) == ((), {"f": "no gap"})


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Where in Lisbon does the user live?", "Lisbon"),
        ("What does the user, a nurse, do?", "nursing"),
        ("How many of the three kids are at school?", "3"),
        ("Which of the 12 months?", "twelve"),
        ("Which language is spoken in Italy?", "Italian"),
        ("What costs 1,200 dollars?", "1200"),
        ("Which Canadian city did she see?", "Canada"),
        ("What is in the notebook?", "notes"),
        ("Where does he walk?", "the sidewalk"),
        ("用户住在上海的哪里？", "上海"),
    ],
)
def test_a_leak_is_seen_in_any_inflection_and_spelling(question: str, answer: str) -> None:
    assert leaks(question, [answer])


@pytest.mark.parametrize(
    ("attribute", "answer"), [("Annual income", "Ann"), ("Category", "cat"), ("Carrier", "red car")]
)
def test_three_equal_letters_are_no_leak_in_english(attribute: str, answer: str) -> None:
    assert not leaks(f"Fill the gap in this note about the user. {attribute}: ____.", [answer], is_english=True)


def test_small_words_are_no_leak() -> None:
    assert not leaks("What is the name of the user's dog?", ["the one that is Rex"])
    assert not leaks("Where does the user live?", ["in Rome"])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Twenty-one", "21"),
        ("The cello.", "cello"),
        ("12 May 2024", "May 12th, 2024"),
        ("1,200", "1200"),
        ("“Blue Heron”", "blue heron"),
        ("３", "3"),
    ],
)
def test_equal_answers_are_equal_in_any_notation(one: str, other: str) -> None:
    assert is_same(one, other)


WORDS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=3, max_size=9)
VALUES = st.one_of(WORDS, WORDS.map(str.title), st.integers(2, 99).map(str))


@pytest.mark.slow
@given(
    attribute=st.one_of(WORDS, st.sampled_from(["job", "city", "dog's name", "works at"])),
    values=st.lists(VALUES, min_size=2, max_size=3),
)
@settings(max_examples=100, deadline=None)
def test_no_probe_of_a_structured_chain_leaks(attribute: str, values: list[str]) -> None:
    facts = [
        fact(f"f{n}", f"User's {attribute} is {value}", attribute=attribute, value=value,
             supersedes=f"f{n - 1}" if n else None)
        for n, value in enumerate(values)
    ]  # fmt: skip
    for probe in probes_of(conversation(*facts)).probes:
        asked = probe.question.casefold().split()
        assert not [value for value in (probe.expected_answer, *probe.stale) if value.casefold() in asked]


@pytest.mark.parametrize(
    ("question", "answer", "is_leak"),
    [
        ("他女儿几岁？", "五岁", False),
        ("他女儿几岁？", "5岁", False),
        ("会议在星期几？", "星期三", False),
        ("谁教她大提琴，是哪个老师？", "张老师", False),
        ("沙发是什么颜色？", "红色", False),
        ("他住在苏州哪里？", "苏州园区", True),
        ("五岁的女儿多大？", "五岁", True),
        ("他喝茶吗？", "茶", True),
        ("他在上海医院做什么？", "上海", True),
        ("Peter hat 3 Katzen: wie viele?", "3", True),
        ("2024年他去了哪里？", "2024年", True),
    ],
)
def test_one_character_in_common_is_no_leak(question: str, answer: str, is_leak: bool) -> None:
    assert leaks(question, [answer]) is is_leak


def test_a_question_of_the_dataset_is_asked_unless_it_leaks() -> None:
    rome = fact("f", "The user lives in Rome", question="Which city is home?", value="Rome")
    assert questions(probes_of(conversation(rome))) == {"Which city is home?": "Rome"}
    leaking = fact("f", "The user lives in Rome", question="Does the user live in Rome or Paris?", value="Rome")
    assert reasons(probes_of(conversation(leaking))) == {"f": "leak"}


def city(id: str, value: str, **more: object) -> object:
    return fact(id, f"User lives in {value}", attribute="home town", value=value, **more)


def test_a_value_that_no_turn_states_is_not_asked() -> None:
    rome = fact("f", "User lives in Rome", attribute="home town", value="Rome")
    assert reasons(probes_of(conversation(rome, said=["I moved house."]))) == {"f": "unanswerable"}
    said = ["I live in Rome.", "I like opera.", "Yes.", "No."]
    named = fact("f", "User lives in Rome", attribute="home town", value="Rome", turn="t4")
    assert reasons(probes_of(conversation(named, said=said))) == {"f": "unanswerable"}


def test_a_turn_that_answers_the_one_before_is_evidence_with_it() -> None:
    rex = fact("f", "User's dog is called Rex", subject="user's dog", attribute="name", value="Rex")
    made = probes_of(conversation(rex, said=["What is the dog called?", "Rex."]))
    assert [len(probe.gold_context) for probe in made.probes] == [2]


def test_a_question_with_two_answers_is_not_asked() -> None:
    facts = [
        fact(id, f"User plays {value}", attribute="hobby", value=value) for id, value in (("f", "chess"), ("g", "golf"))
    ]
    assert reasons(probes_of(conversation(*facts))) == {"f": "not unique", "g": "not unique"}


def test_one_attribute_in_singular_and_plural_is_one_question() -> None:
    facts = [
        fact(id, f"User speaks {value}", attribute=attribute, value=value)
        for id, attribute, value in (("f", "languages", "Irish"), ("g", "language", "Welsh"))
    ]
    assert reasons(probes_of(conversation(*facts))) == {"f": "not unique", "g": "not unique"}


@pytest.mark.parametrize("value", ["yes", "No", "true"])
def test_what_is_easy_to_guess_is_not_asked(value: str) -> None:
    owner = fact("f", f"User owns a car: {value}", attribute="car owner", value=value)
    assert reasons(probes_of(conversation(owner))) == {"f": "guessable"}


def chain(*values: str, **more: object) -> AuditConversation:
    """Facts of which each supersedes the previous one, and is told on the day on which it becomes true."""
    told = conversation(
        *(
            fact(f"f{n}", f"User's favourite tea is {value}", attribute="favourite tea", value=value,
                 valid_from=day(60 * n), supersedes=f"f{n - 1}" if n else None, **more)
            for n, value in enumerate(values)
        )
    )  # fmt: skip
    turns = tuple(replace(turn, at=day(60 * n)) for n, turn in enumerate(told.turns))
    return told.model_copy(update={"turns": turns})


def test_recall_asks_only_about_current_facts() -> None:
    assert not questions(probes_of(chain("Assam", "rooibos"))), "asked as a change"
    expired = fact("f", "User lives in Rome", valid_to=day(0))
    made = probes_of(conversation(expired, fact("g", "User plays chess at Rook 64")))
    assert reasons(made)["f"] == "no longer valid"


def employer(id: str, value: str, **more: object) -> AuditFact:
    return fact(id, f"User works at {value}", attribute="employer", value=value, **more)


def test_a_fact_that_is_not_yet_valid_is_not_current() -> None:
    """`I'm starting at Tamar on 2 April`, told in January: the user still works at Ashgrove."""
    planned = employer("g", "Tamar", supersedes="f", valid_from=day(100))
    made = probes_of(conversation(employer("f", "Ashgrove"), planned))
    asked = "Fill the gap in this note about the user, as things stood on 10 January 2024. Employer: ____."
    assert questions(made) == {asked: "Ashgrove"}
    assert not [probe for probe in made.probes if probe.type == "conflict"]
    assert (reasons(made), made.gates["a plan"]) == ({"g": "a plan"}, 1)
    started = employer("g", "Tamar", supersedes="f", valid_from=day(20))
    (now,) = of_kind(probes_of(conversation(employer("f", "Ashgrove"), started)), "latest")
    assert (now.expected_answer, now.stale) == ("Tamar", ("Ashgrove",))


def test_a_plan_that_another_fact_superseded_leaves_that_fact_current() -> None:
    facts = (
        employer("f", "Ashgrove", valid_from=day(-400)),
        employer("g", "Tamar", supersedes="f", valid_from=day(300)),
        employer("h", "Brill", supersedes="g", valid_from=day(40)),
    )
    made = probes_of(conversation(*facts))
    assert [probe.expected_answer for probe in of_kind(made, "latest")] == ["Brill"]
    asked = "Fill the gap in this note about the user, as things stood on 10 January 2024. Employer: ____."
    assert [(probe.question, probe.expected_answer) for probe in of_kind(made, "as of")] == [(asked, "Ashgrove")]


def test_a_start_is_not_compared_without_a_date_of_asking() -> None:
    told = conversation(employer("f", "Ashgrove", valid_from=day(3)))
    undated = told.model_copy(update={"turns": tuple(replace(turn, at=None) for turn in told.turns)})
    made = probes_of(undated)
    assert (made.probes, reasons(made), made.gates["undated"]) == ((), {"f": "undated"}, 1)


def test_a_chain_of_three_gives_one_probe_about_now_and_two_about_then() -> None:
    made = probes_of(chain("Assam", "rooibos", "sencha"))
    (now,) = of_kind(made, "latest")
    asked = "Fill the gap in this note about the user, as things stood on 9 May 2024. Favourite tea: ____."
    assert now.question == asked
    assert (now.expected_answer, now.stale, now.flags) == ("sencha", ("Assam", "rooibos"), False)
    assert [turn.id for turn in now.gold_context] == ["t3"]
    assert [turn.id for turn in now.stale_context] == ["t1", "t2"]
    then = {probe.question: (probe.expected_answer, set(probe.stale)) for probe in of_kind(made, "as of")}
    assert then == {
        "Fill the gap in this note about the user, as things stood on 10 January 2024. Favourite tea: ____.": (
            "Assam",
            {"rooibos", "sencha"},
        ),
        "Fill the gap in this note about the user, as things stood on 10 March 2024. Favourite tea: ____.": (
            "rooibos",
            {"Assam", "sencha"},
        ),
    }


def test_a_flag_probe_expects_both_values() -> None:
    (probe,) = of_kind(probes_of(chain("Assam", "rooibos"), policy="flag"), "flag")
    assert probe.flags
    assert {"rooibos", "Assam"} <= set(probe.expected_answer.replace(";", "").split())
    assert not content(probe.question) & content("Assam rooibos")


def test_free_text_facts_that_do_not_answer_one_question_are_no_conflict() -> None:
    """A1: the world index fund still holds after the savings plan was increased."""
    old = fact("f", "User invests in a world index fund with 300 euros a month")
    new = fact("g", "User increased the savings plan to 450 euros a month", supersedes="f")
    made = probes_of(conversation(old, new))
    assert not [probe for probe in made.probes if probe.type == "conflict"]
    assert made.gates["no shared attribute"] == 1


def test_values_that_contain_each_other_are_not_a_conflict() -> None:
    made = probes_of(chain("Boston blend", "South Boston blend"))
    assert not of_kind(made, "latest")
    assert made.gates["values overlap"] == 1


def test_changes_in_turns_without_dates_are_asked_as_of_the_end_only() -> None:
    told = chain("Assam", "rooibos")
    undated = told.model_copy(
        update={
            "turns": tuple(replace(turn, at=None) for turn in told.turns),
            "facts": tuple(replace(one, valid_from=None) for one in told.facts),
        }
    )
    made = probes_of(undated)
    (now,) = made.probes
    assert (now.kind, "as things stood at the end of the conversation" in now.question) == ("latest", True)
    assert made.gates["undated"] == 1


def test_a_past_value_needs_no_start() -> None:
    told = chain("Assam", "rooibos")
    no_dates = tuple(replace(one, valid_from=None, at=day(3)) for one in told.facts)
    assert of_kind(probes_of(told.model_copy(update={"facts": no_dates})), "as of") == of_kind(probes_of(told), "as of")


EVENTS = (
    ("f0", "User adopted a greyhound"),
    ("f1", "User repaired the harbour crane"),
    ("f2", "User visited the salt mines"),
    ("f3", "User bought a cargo bike"),
    ("f4", "User painted the kitchen ceiling"),
)


def events(*days: int, **more: object) -> AuditConversation:
    when = days or (0, 20, 40, 60, 80)
    made = [
        fact(id, text, category="event", turn=f"t{n}", **({"valid_from": day(at)} | more))
        for n, ((id, text), at) in enumerate(zip(EVENTS, when, strict=False), 1)
    ]
    return conversation(*made)


def test_every_order_is_asked_both_ways_and_the_right_option_is_first_in_half() -> None:
    orders = order_probes(events(), *(sample().conversations))
    by_id = {probe.id: probe for probe in orders}
    first = Counter(probe.options.index(probe.expected_answer) for probe in orders)
    assert first[0] == first[1] == len(orders) // 2 > 10
    for probe in orders:
        twin = by_id[probe.twin or ""]
        assert (twin.twin, twin.options) == (probe.id, probe.options[::-1])
        assert (twin.expected_answer, twin.reversed) == (probe.expected_answer, not probe.reversed)
        assert all(option in probe.question for option in probe.options)


def test_the_first_event_and_the_last_are_asked_for_in_turn() -> None:
    """A subject that always names the earlier event, or the one that was told first, is right in half of them."""
    asked = [probe for n in range(20) for probe in order_probes(events().model_copy(update={"id": f"c{n}"}))]
    texts = [text for _, text in EVENTS]  # in the order in which they happened
    for probe in asked:
        earlier, later = sorted(probe.options, key=lambda option: texts.index(option.replace("The user", "User")))
        assert (probe.expected_answer, asked_order(probe)) in {(earlier, -1), (later, 1)}
    first = [probe for probe in asked if asked_order(probe) == -1]
    assert abs(len(first) / len(asked) - 0.5) < 0.1
    assert all(asked_order(probe) == asked_order(twin) for probe in asked for twin in asked if probe.twin == twin.id)


def test_pairs_are_no_neighbours_in_time_and_ties_are_left_out() -> None:
    pairs = {probe.related_facts for probe in order_probes(events())}
    assert pairs == {("f0", "f2"), ("f1", "f3"), ("f2", "f4")}
    tied = probes_of(events(0, 0))
    assert (tied.probes, tied.gates["needs a probe model"]) == ((), 2)


def test_code_asks_for_no_order() -> None:
    """It follows from common sense too often: nobody buys the wedding dress before the proposal."""
    assert not of_kind(probes_of(events(), *sample().conversations), "order")


def test_an_event_that_is_told_before_it_happens_is_a_plan() -> None:
    """A2: `Flies to Japan on April 3`, told on 9 January, did not come before a change in February."""
    made = probes_of(events(0, 200, 40, 60))
    assert {id for probe in of_kind(made, "duration") for id in probe.related_facts} == {"f0", "f2", "f3"}
    assert made.gates["a plan"] == 1


def test_the_timestamp_of_an_event_is_not_its_date() -> None:
    """A2: it is when the event was told."""
    made = probes_of(events(valid_from=None, at=day(0)))
    assert not [probe for probe in made.probes if probe.type == "temporal"]
    assert made.gates["undated"] == len(EVENTS)


def test_options_do_not_tell_when() -> None:
    texts = ("User adopted a greyhound in March 2021", "User was born in a lighthouse", "User visited the salt mines")
    dated = conversation(
        *(
            fact(f"f{n}", text, category="event", valid_from=day(20 * n), turn=f"t{n + 1}")
            for n, text in enumerate(texts)
        )
    )
    made = probes_of(dated)
    assert (made.probes, reasons(made)["f1"]) == ((), "option tells the time")


def test_events_are_asked_as_whole_sentences() -> None:
    """An event may begin with a name or with any other word: only at the start of a sentence both are right."""
    orders = order_probes(events())
    one, other = orders[0].options
    assert orders[0].question.partition("? ")[2] == f"(A) {one}. (B) {other}."
    for probe in (*orders, *of_kind(probes_of(events()), "duration")):
        assert all(text[0].isupper() for text in re.split(r"\([AB]\) |\? ", probe.question) if text)


def test_durations_are_counted_by_code_where_the_turns_tell_both_days() -> None:
    durations = {probe.related_facts: probe.expected_answer for probe in of_kind(probes_of(events()), "duration")}
    assert durations == {("f0", "f2"): "40", ("f1", "f3"): "40", ("f2", "f4"): "40"}
    assert not of_kind(probes_of(events(-3, 17, 37, 57, 77)), "duration"), "no turn tells these days"


ABSENT = (
    AbsentFact(id="brother", subject="user's brother", attribute="name"),
    AbsentFact(id="boat", question="What colour is the user's boat?"),
)


@pytest.mark.parametrize(
    ("statement", "part"),
    [
        ("User is reading Pride and Prejudice again", "Prejudice"),
        ("User has seen Death of a Salesman twice", "Salesman"),
        ("User stays at a farm near Ghent", "Ghent"),
        ("User comes from Turin, Italy", "Italy"),
        ("User's favourite film is Hello, Otto", "Hello"),
        ("User's line does 60 Mbit/s at best", "Mbit"),
        ("User bought a disk with 4 TB of space", "TB"),
        ("User has had the lease since 1 April", "1"),
    ],
)
def test_a_gap_cuts_no_title_unit_or_place(statement: str, part: str) -> None:
    assert part not in [value for _, value in gaps(statement)]


@pytest.mark.parametrize(
    ("statement", "number", "is_asked"),
    [
        ("User owns three boats: a dinghy, a canoe and a raft", "three", False),
        ("User has 2 parrots, Kiki and Lolo", "2", False),
        ("User raised two sons Erik and Olaf", "two", False),
        ("Mia, Noor and Pia are the user's three nieces", "three", False),
        ("User cleaned the stove and bought two pans", "two", True),
        ("User baked two pies", "two", True),
    ],
)
def test_a_number_is_not_asked_if_its_statement_lists_what_it_counts(
    statement: str, number: str, is_asked: bool
) -> None:
    assert (number in [value for _, value in gaps(statement)]) is is_asked


@pytest.mark.parametrize(
    "entry",
    [
        {"subject": "user", "attribute": "dog's name"},
        {"subject": "dog of the user", "attribute": "name"},
        {"question": "What's the name of the user's dog?"},
        {"question": "What is the name of the user's dog?"},
    ],
)
def test_what_a_structured_fact_states_is_not_asked_as_absent(entry: dict[str, str]) -> None:
    dog = fact("f", "User's dog is called Rex", subject="user's dog", attribute="name", value="Rex")
    made = probes_of(conversation(dog, absent=(AbsentFact.model_validate({"id": "x", **entry}),)))
    assert not [probe for probe in made.probes if probe.abstain]
    assert made.gates["told"] == 1


@pytest.mark.parametrize(
    ("known", "entry"),
    [
        (fact("f", "Ike's chess partner is Lotte", subject="Ike", attribute="chess partner", value="Lotte"),
         {"subject": "Lotte", "attribute": "chess partner"}),
        (fact("f", "The accordion of Ike was tuned with fork A4"), {"subject": "Ike's accordion", "attribute": "fork"}),
        (fact("f", "Ike's dog is called Rex"), {"subject": "Ike's dog", "attribute": "name"}),
        (fact("f", "The user's religion is Quaker"), {"subject": "user", "attribute": "religion"}),
        (fact("f", "Ike has winter tyres", subject="Ike", attribute="type of winter tyres", value="B2"),
         {"question": "Which tyres does Ike have?"}),
    ],
)  # fmt: skip
def test_what_a_fact_states_in_another_form_is_not_asked_as_absent(known: AuditFact, entry: dict[str, str]) -> None:
    tea = fact("tea", "Ike drinks Assam tea", subject="Ike", attribute="tea", value="Assam")
    made = probes_of(conversation(known, tea, absent=(AbsentFact.model_validate({"id": "x", **entry}),)))
    assert not [probe for probe in made.probes if probe.abstain]
    assert made.gates["may be told"] == 1


@pytest.mark.parametrize(("subject", "attribute"), [("Ike's dog", "name"), ("Ike's dog", "age")])
def test_an_absent_fact_about_a_thing_that_a_fact_mentions_is_asked(subject: str, attribute: str) -> None:
    walk = fact("f", "Ike's dog sleeps on the red sofa", subject="Ike's dog", attribute="bed", value="red sofa")
    entry = AbsentFact.model_validate({"id": "x", "subject": subject, "attribute": attribute})
    assert [probe.abstain for probe in probes_of(conversation(walk, absent=(entry,))).probes] == [False, True]


def test_absent_probes_are_asked_only_where_the_dataset_declares_them() -> None:
    """A4: `My Skoda is bright green` was asked as absent."""
    skoda = fact("f", "User's car is a Skoda", attribute="car", value="Skoda")
    said = ["User's car is a Skoda", "My Skoda is bright green, I'm O negative and I train at PureGym."]
    assert not [probe for probe in probes_of(conversation(skoda, said=said)).probes if probe.abstain]
    made = probes_of(conversation(skoda, said=said, absent=ABSENT))
    absent = [probe for probe in made.probes if probe.abstain]
    assert [probe.question for probe in absent] == [
        "Fill the gap in this note about the user's brother, as things stood on 30 January 2024. Name: ____.",
        "What colour is the user's boat?",
    ]
    assert {probe.twin for probe in absent} == {"c1/recall/f"}


@pytest.mark.parametrize(("subject", "attribute"), [("user", "no. of cats"), ("user's St. Bernard", "U.S. visa")])
def test_a_full_stop_in_a_name_does_not_end_the_sentence_with_the_day(subject: str, attribute: str) -> None:
    known = fact("f", "It is nine", subject=subject, attribute=attribute, value="nine")
    (asked,) = probes_of(conversation(known, said=[f"The {attribute} is nine"])).probes
    about, _, gap = asked.question.partition(", as things stood on 10 January 2024. ")
    assert about.endswith(subject.removeprefix("user's ").replace(". ", ".\N{NO-BREAK SPACE}"))
    assert gap.lower().startswith(attribute.lower().replace(". ", ".\N{NO-BREAK SPACE}"))


def test_an_absent_fact_is_asked_about_the_last_day() -> None:
    """On an earlier day, the conversation might only tell it later."""
    entries = tuple(AbsentFact(id=f"x{n}", subject="user's brother", attribute=name) for n, name in enumerate(NAMES))
    facts = [
        fact(f"f{n}", f"User's {animal} is called Rex", attribute=animal, value="Rex")
        for n, animal in enumerate(ANIMALS)
    ]
    absent = [probe for probe in probes_of(conversation(*facts, absent=entries)).probes if probe.abstain]
    assert len(absent) == len(NAMES)
    assert all("as things stood on 10 March 2024" in probe.question for probe in absent)


NAMES, ANIMALS = ("age", "height", "wife", "car"), ("dog", "cat", "parrot", "horse")
GERMAN = ["Ich wohne seit März in Köln und arbeite als Gärtnerin.", "Das klingt gut, erzähl mir mehr davon."]
CHINESE = ["我三月份搬到了上海，现在是一名园丁。", "听起来不错，再多讲一点。"]


@pytest.mark.parametrize(("said", "value"), [(GERMAN, "Köln"), (CHINESE, "上海")])
def test_other_languages_are_not_asked_about_in_english(said: list[str], value: str) -> None:
    """A6: German structured facts gave questions in two languages."""
    structured = fact("f", said[0], attribute="Wohnort", value=value)
    made = probes_of(conversation(structured, fact("g", said[0]), said=said))
    assert (made.probes, reasons(made)) == ((), {"f": "not English", "g": "not English"})
    own = fact("f", said[0], question="Wo wohnt die Nutzerin?", value=value)
    assert questions(probes_of(conversation(own, said=said))) == {"Wo wohnt die Nutzerin?": value}


@pytest.mark.parametrize(
    ("text", "attribute", "value"),
    [
        ("Am Freitag war ich in Kiel, in der Nähe vom Hafen.", "Ort", "Kiel"),
        ("Ik was in mei in Delft en we zijn daar met de boot.", "stad", "Delft"),
        ("Ho un cane di nome Argo e abito a Pisa.", "cane", "Argo"),
        ("He ido a Murcia a ver a me hermana Nuria, no me gusta el tren.", "hermana", "Nuria"),
        ("Vi var i Lund i juni, men hon har en hund i Malmö.", "resa", "Lund"),
        ("Je suis à Lyon en mars, on a un chat.", "ville", "Lyon"),
        ("Moro em Faro com a minha irmã e trabalho no porto.", "cidade", "Faro"),
    ],
)
def test_short_texts_that_share_words_with_english_are_not_asked_about(text: str, attribute: str, value: str) -> None:
    structured = fact("f", text, attribute=attribute, value=value)
    made = probes_of(conversation(structured, fact("g", text), said=[text]))
    assert (made.probes, made.gates["not English"]) == ((), 2)


def test_facts_in_another_language_than_the_turns_are_not_asked_about() -> None:
    turn = "I have lived in Hamburg since the spring, and I work at the harbour with my brother."
    german = fact(
        "f", "Die Nutzerin wohnt seit dem Frühling in Hamburg", attribute="Wohnort", value="Hamburg", turn="t1"
    )
    assert reasons(probes_of(conversation(german, said=[turn]))) == {"f": "not English"}


@pytest.mark.parametrize("text", ["My cat is Oslo", "Anna has now joined South Boston", "My boss is Bo."])
def test_short_english_is_asked_about(text: str) -> None:
    assert probes_of(conversation(fact("f", text))).probes


def test_every_probe_of_the_sample_is_answerable_and_has_passed_checks() -> None:
    made = generate(sample(), PROBE_TYPES)
    assert {probe.type for probe in made.probes} == set(PROBE_TYPES)
    assert len({probe.id for probe in made.probes}) == len(made.probes)
    assert max(Counter((probe.conversation, probe.question) for probe in made.probes).values()) == 1
    for probe in made.probes:
        assert probe.checks, probe.id
        if probe.type in ("recall", "conflict"):
            assert any(occurs(probe.expected_answer, turn.content) for turn in probe.gold_context), probe.id


def test_every_fact_is_probed_or_skipped_with_a_reason() -> None:
    dataset = sample()
    made = generate(dataset, PROBE_TYPES)
    probed = {(probe.conversation, id) for probe in made.probes for id in probe.related_facts}
    left = {(skipped.conversation, skipped.fact) for skipped in made.skipped}
    assert probed | left == {(one.id, fact.id) for one in dataset.conversations for fact in one.facts}


@pytest.mark.parametrize("limit", [1, 2, 7, 20, 61])
def test_a_limit_splits_no_pair(limit: int) -> None:
    made = generate(sample(), PROBE_TYPES, limit=limit)
    ids = {probe.id for probe in made.probes}
    assert limit - 1 <= len(ids) <= limit
    assert all(probe.twin in ids for probe in made.probes if probe.twin)
    if limit == 20:
        assert {probe.type for probe in made.probes} == set(PROBE_TYPES)


def test_only_the_requested_kinds_and_twins_are_generated() -> None:
    made = generate(sample(), ["hallucination"])
    twins = {probe.twin for probe in made.probes if probe.abstain}
    assert {probe.id for probe in made.probes if not probe.abstain} == twins


def test_the_same_dataset_gives_the_same_probes_whatever_the_order_of_its_facts() -> None:
    dataset = sample()
    assert generate(dataset, PROBE_TYPES) == generate(dataset, reversed(PROBE_TYPES))
    shuffled = structs.replace(
        dataset,
        conversations=tuple(
            one.model_copy(update={"facts": tuple(random.Random(1).sample(one.facts, len(one.facts)))})
            for one in dataset.conversations
        ),
    )
    ours, theirs = generate(dataset, ["recall", "conflict"]), generate(shuffled, ["recall", "conflict"])
    assert {(one.id, one.question) for one in ours.probes} == {(one.id, one.question) for one in theirs.probes}
    assert ours.gates == theirs.gates


def test_a_probe_has_the_age_of_its_evidence() -> None:
    texts = ("User's dog is Rex", "User lives in Ghent", "User plays chess at Rook 64")
    (probe, *_) = probes_of(conversation(*(fact(f"f{n}", text) for n, text in enumerate(texts)))).probes
    assert (probe.age_turns, probe.age_days) == (2, 40)
    assert (probe.labels["turns_back"], probe.labels["days_back"]) == ("0-9", "31-180")


def test_generation_looks_at_each_conversation_alone() -> None:
    """A5: its cost grew with the square of the number of conversations."""
    one = sample().conversations[0]
    alone = probes_of(one).probes
    among = probes_of(*sample().conversations).probes
    assert alone == tuple(probe for probe in among if probe.conversation == one.id)


@pytest.mark.slow
def test_a_conversion_of_locomo_leaks_nothing() -> None:
    if not LOCOMO.exists():
        pytest.skip("the LoCoMo data is not there")
    from memorybench.datasets.audit_conversion import convert_locomo

    made = generate(convert_locomo(LOCOMO), PROBE_TYPES)
    assert len(made.probes) > 400
    assert not [probe.id for probe in made.probes if _shows_answer(probe)]


def _shows_answer(probe: Probe) -> bool:
    return (
        not probe.abstain
        and not probe.options
        and probe.expected_answer.casefold() in probe.question.casefold().split()
    )


@pytest.mark.parametrize(
    ("statement", "part"),
    [
        # a dot in the name
        ("User's tutor is Mr. Okonjo", "Mr"),
        ("User's tutor is Dr. Ines Calder", "Calder"),
        ("User's aunt works for St. Brigid's", "St"),
        ("User's aunt banks with A. B. Calloway", "Calloway"),
        ("User's aunt banks with A. B. Calloway", "A"),
        ("User flew with U.S. mail in 2010", "U"),
        ("User flew with U.S. mail in 2010", "S"),
        ("User shipped boxes with Ottawa. The van was full", "Ottawa"),
        # another sign in the name
        ("User writes small tools in C++", "C"),
        ("User trains every evening for CS:GO", "CS"),
        ("User keeps the photos with Yahoo! Disk", "Yahoo"),
        ('User reads a book called "The Blue Heron"', "Blue Heron"),
        ("User reads 'Blue Heron' in bed", "Heron'"),
        # one end of a range, or one of a pair of numbers
        ("User swims four or five times a week", "five"),
        ("User swims four or five times a week", "four"),
        ("User carries 8 to 9 buckets of sand", "9"),
        ("User carries 8 to 9 buckets of sand", "8"),
        ("User carries between 8 and 9 buckets of sand", "9"),
        ("User's reading at the clinic was 131 over 84", "84"),
        ("User's reading at the clinic was 131 over 84", "131"),
        ("User paints from 5:30 to 7 every morning", "7"),
        ("User's door is 6'2\" high in the hall", "2"),
        ("User's door is 6'2\" high in the hall", "6"),
    ],
)
def test_a_gap_is_no_part_of_a_name_with_a_dot_or_of_a_range(statement: str, part: str) -> None:
    assert part not in [value for _, value in gaps(statement)]


@pytest.mark.parametrize(
    "statement",
    [
        "User does not sing for Ghent",
        "User doesn't sing for Ghent",
        "User has never sung for Ghent",
        "User no longer sings for Ghent",
        "User has no songs by Ghent",
        "User used to sing for Ghent",
        "User's former choir is called Ghent",
        "User previously sang for Ghent",
        "User's ex-wife sings for Ghent",
    ],
)
def test_a_statement_that_many_answers_complete_has_no_gap(statement: str) -> None:
    """Countless things are not so, and several may have been so."""
    assert not list(gaps(statement))


@pytest.mark.parametrize("content", ["User does not sing for Ghent", "User used to sing for Ghent"])
def test_a_free_text_fact_with_a_value_is_checked_like_one_without(content: str) -> None:
    assert reasons(probes_of(conversation(fact("f", content, value="Ghent")))) == {"f": "no gap"}


@pytest.mark.parametrize(
    "name", ["Blue Heron", "Blue Heron, at last", "Blue Heron's hut", "a hut (by Ulm, for Blue Heron)"]
)
def test_a_name_with_marks_around_it_is_whole(name: str) -> None:
    assert "Blue Heron" in [value for _, value in gaps(f"User sold the boat with {name}")]


@pytest.mark.parametrize("later", [(), ("The kettle is blue",)])
def test_an_age_is_asked_for_the_day_on_which_it_was_told(later: tuple[str, ...]) -> None:
    """Somebody who was 47 in March may be 48 in June."""
    ages = [
        fact(f"f{n}", f"Victor is {age} years old", subject="Victor", attribute="age", value=age, turn=f"t{n}", **more)
        for n, (age, more) in enumerate((("46", {}), ("47", {"supersedes": "f1"})), 1)
    ]
    asked = 'Fill the gap in this note about "Victor", as things stood on {} January 2024. Age: ____.'
    told = [age.content for age in ages]
    assert questions(probes_of(conversation(ages[0], said=[told[0], *later]))) == {asked.format(10): "46"}
    (changed,) = of_kind(probes_of(conversation(*ages, said=[*told, *later])), "latest")
    assert (changed.question, changed.expected_answer) == (asked.format(30), "47")


@pytest.mark.parametrize("other", ["dog name", "favourite name"])
def test_an_attribute_is_not_asked_beside_one_with_more_words(other: str) -> None:
    own = fact("f1", "The name of the user is Ines", subject="user", attribute="name", value="Ines")
    more = fact("f2", f"The {other} is Rex", subject="user", attribute=other, value="Rex")
    assert list(questions(probes_of(conversation(own, more))).values()) == ["Rex"]


@pytest.mark.parametrize("asked", ["What is your dog's name? I would love to know.", "And the name of your dog?"])
def test_the_turn_before_an_answer_is_evidence_if_it_asks(asked: str) -> None:
    dog = fact("f1", "The user's dog is named Rex", turn="t2", subject="user's dog", attribute="name", value="Rex")
    (made,) = of_kind(probes_of(conversation(dog, said=[asked, "Rex."])), "recall")
    assert [turn.id for turn in made.gold_context] == ["t1", "t2"]


def test_events_that_are_not_put_in_order_are_counted_without_recall_questions() -> None:
    events = [
        fact(f"f{n}", text, category="event", subject="user", value=value, turn=f"t{n}", valid_from=day(0))
        for n, (text, value) in enumerate(
            (("The user ran a race with Oslo", "Oslo"), ("The user sang a song for Bergen", "Bergen")), 1
        )
    ]
    dataset = AuditDataset(id="d", conversations=(conversation(*events),))
    assert len(questions(generate(dataset, ["recall"]))) == 2
    made = generate(dataset, ["temporal"])
    assert not made.probes
    assert made.gates["needs a probe model"] == 2


def test_a_gap_tells_the_day_of_its_fact_because_the_fact_may_have_changed_since() -> None:
    book = fact("f1", "The book club is reading Piranesi", turn="t1")
    said = [book.content, "We have voted for another book now"]
    asked = "Fill the gap with a name in a note of 10 January 2024: The book club is reading ____."
    for told in (conversation(book, said=said), conversation(book)):  # also on the last day
        assert list(questions(probes_of(told))) == [asked]
    undated = conversation(book).model_copy(update={"turns": (replace(conversation(book).turns[0], at=None),)})
    assert list(questions(probes_of(undated))) == ["Fill the gap with a name: The book club is reading ____."]


@pytest.mark.parametrize("value", [f"{day(0).day}", f"{day(0):%B}", f"{day(0):%Y}"])
def test_a_gap_whose_day_tells_the_answer_is_not_asked(value: str) -> None:
    ticket = fact("f1", f"A ticket has the stamp {value} on it", turn="t1", value=value)
    dataset = conversation(ticket, said=[ticket.content, "The kettle is blue"])
    assert (questions(probes_of(dataset)), reasons(probes_of(dataset))) == ({}, {"f1": "leak"})


@pytest.mark.parametrize(
    ("statement", "answers"),
    [("Guests are expected at the club on Thursday", []), ("The choir sings every Thursday", ["Thursday"])],
)
def test_a_weekday_is_asked_only_if_it_is_one_of_every_week(statement: str, answers: list[str]) -> None:
    assert list(questions(probes_of(conversation(fact("f1", statement)))).values()) == answers


def test_a_structured_value_that_is_a_weekday_of_one_week_is_not_asked() -> None:
    made = probes_of(
        conversation(fact("f1", "Heron came out on Monday", subject="Heron", attribute="released", value="on Monday"))
    )
    assert (questions(made), reasons(made)) == ({}, {"f1": "relative time"})


@pytest.mark.parametrize(
    ("content", "more"),
    [
        ("Petra wäscht diese Woche ab", {"question": "Wer wäscht diese Woche ab?"}),
        ("Am Mittwoch kochte Petra für alle", {"question": "Wer kochte letzten Mittwoch?"}),
        ("Petra cuisine ce soir pour tous", {"question": "Qui cuisine ce soir ?"}),
    ],
)
@pytest.mark.parametrize("later", [(), ("-",)])
def test_a_question_with_a_relative_time_is_asked_only_if_it_was_answered_on_the_last_day(
    content: str, more: dict[str, str], later: tuple[str, ...]
) -> None:
    """Another week gives the question another answer."""
    duty = fact("f1", content, value="Petra", turn="t1", **more)
    made = probes_of(conversation(duty, said=[content, *later]))
    assert (list(questions(made).values()), reasons(made)) == (
        ([], {"f1": "relative time"}) if later else (["Petra"], {})
    )


@pytest.mark.parametrize("subject", ["user", "rota"])
@pytest.mark.parametrize("more", [{}, {"valid_from": day(0)}, {"valid_to": day(90)}])
def test_a_structured_fact_that_may_have_ended_is_asked_for_a_day_on_which_it_was_true(
    subject: str, more: dict[str, datetime]
) -> None:
    """The author of a dataset does not mark each fact that a later turn ends. Here, the last turn ends it."""
    said = ["Petra is the nurse", "-", "Petra has left us"]
    nurse = fact("f1", said[0], subject=subject, attribute="nurse", value="Petra", turn="t1", **more)
    [(question, answer)] = questions(probes_of(conversation(nurse, said=said))).items()
    assert answer == "Petra"
    assert "as things stood on 10 January 2024" in question


def test_a_fact_whose_day_would_show_its_value_is_not_asked() -> None:
    month = fact("f1", "The fair opened in March", subject="fair", attribute="month", value=f"{day(0):%B}", turn="t1")
    made = probes_of(conversation(month, said=[f"The fair opened in {day(0):%B}", "-"]))
    assert (questions(made), reasons(made)) == ({}, {"f1": "leak"})


def test_a_fact_stated_on_two_days_is_asked_once() -> None:
    facts = [fact(f"f{n}", "Petra is the nurse", attribute="nurse", value="Petra", turn=f"t{n}") for n in (1, 2)]
    made = probes_of(conversation(*facts, said=["Petra is the nurse", "Petra is the nurse", "-"]))
    assert (len(questions(made)), reasons(made)) == (1, {"f2": "asked already"})


def test_a_change_whose_question_has_a_relative_time_is_asked_only_if_it_was_told_on_the_last_day() -> None:
    duties = [
        fact("f1", "Petra is on call this week", subject="rota", attribute="this week", value="Petra", turn="t1"),
        fact("f2", "Ravi is on call this week", subject="rota", attribute="this week", value="Ravi", turn="t2",
             supersedes="f1"),
    ]  # fmt: skip
    told = [duty.content for duty in duties]
    assert of_kind(probes_of(conversation(*duties, said=told)), "latest")
    assert not of_kind(probes_of(conversation(*duties, said=[*told, "The kettle is blue"])), "latest")


@pytest.mark.parametrize(
    ("content", "question", "value"),
    [
        ("Anna runs twice in a week", "How often in a week does Anna run?", "twice"),
        ("Anna wurde im Jahr 1991 geboren", "In welchem Jahr wurde Anna geboren?", "1991"),
        ("Anna hat diesen Vertrag mit Ole geschlossen", "Mit wem hat Anna diesen Vertrag geschlossen?", "Ole"),
        ("Anna è falegname e lavora a Torino", "Che lavoro fa Anna?", "falegname"),
        ("Ana pinta cuadros todos los sábados en Sevilla", "¿Qué hace Ana los sábados en Sevilla?", "cuadros"),
        ("Anna est née en 1991 à Lyon, en France", "Dans quelle ville de France il y a Anna ?", "Lyon"),
        ("Anna staat elke morgen om zes uur op met Ole", "Met wie staat Anna elke morgen op?", "Ole"),
    ],
)
def test_a_question_whose_words_only_look_like_a_relative_time_is_asked(
    content: str, question: str, value: str
) -> None:
    known = fact("f1", content, question=question, value=value, turn="t1")
    made = probes_of(conversation(known, said=[content, content.replace(value, "…")]))
    assert questions(made) == {question: value}


@pytest.mark.parametrize("more", [{"attribute": "language"}, {"question": "Which language does Ada speak?"}])
def test_a_value_that_no_turn_contains_makes_a_question_ambiguous(more: dict[str, str]) -> None:
    """Ada speaks two languages, although the words for one of them are not those of its fact."""
    told = ["Ada speaks Welsh", "Ada picked up the tongue of Brittany"]
    facts = [
        fact(f"f{n}", text, subject="Ada", value=value, turn=f"t{n}", **more)
        for n, (text, value) in enumerate(zip(told, ("Welsh", "Breton"), strict=True), 1)
    ]
    made = probes_of(conversation(*facts, said=told))
    assert (questions(made), set(reasons(made).values())) == ({}, {"not unique"})


def test_a_change_is_not_asked_if_another_current_fact_answers_its_question() -> None:
    """The third fee may have replaced the second one: its fact does not say so."""
    told = ["The nanny costs 14 euros", "The nanny costs 16 euros", "The nanny costs 18 euros"]
    fees = [
        fact(f"f{n}", text, subject="nanny", attribute="fee", value=text.split("costs ")[1], turn=f"t{n}",
             supersedes="f1" if n == 2 else None)
        for n, text in enumerate(told, 1)
    ]  # fmt: skip
    made = probes_of(conversation(*fees, said=told))
    assert (list(made.probes), set(reasons(made).values())) == ([], {"not unique"})


@pytest.mark.parametrize(
    "statement",
    [
        "Mr. van der Berg owns the mill",
        "Anna de la Cruz owns the mill",
        "The mill is run by Ludwig von der Au",
        "The mill is called Ponta da Piedade",
    ],
)
def test_a_name_with_a_word_in_lower_case_gets_no_gap_for_its_last_part(statement: str) -> None:
    assert not {value for _, value in gaps(statement)} & {"Berg", "Cruz", "Au", "Piedade"}


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        ("Jo plays Animal Crossing: New Horizons with Kyle", []),
        ("Jo liked 'The Lord of the Rings' Trilogy", []),
        ("Jo's aunt knows a thing or two about Kyle", ["Kyle"]),
        *((f"Tim sold the book {marks[0]}A Dance with Dragons{marks[1]} to Anna", [])
          for marks in ("''", '""', "“”", "„“", "«»", "’’")),
    ],
)  # fmt: skip
def test_a_part_of_a_title_or_a_phrase_gets_no_gap(statement: str, values: list[str]) -> None:
    assert [value for _, value in gaps(statement)] == values


def test_a_name_after_a_title_and_a_name_gets_a_gap() -> None:
    assert [value for _, value in gaps("Anna met Dr. Okafor at the mill of Leeds")] == ["Leeds"]


def test_a_letter_that_tells_two_things_apart_is_not_an_article() -> None:
    tenants = [
        fact(f"f{flat}", f"The family {name} rents {flat} of the house", subject=flat, attribute="tenant", value=name)
        for flat, name in (("flat A", "Abara"), ("flat B", "Lund"))
    ]
    assert set(questions(probes_of(conversation(*tenants))).values()) == {"Abara", "Lund"}


@pytest.mark.parametrize(
    ("content", "question", "value"),
    [
        ("马骁多大？20岁。", "马骁多大？", "20岁"),
        ("Ludmilla soll die Solistin sein.", "Wer soll die Solistin sein?", "Ludmilla"),
        ("Ludmilla is to be the soloist.", "Who is to be the soloist?", "Ludmilla"),
    ],
)
def test_an_age_or_a_plan_is_not_asked_after_the_day_it_was_told(content: str, question: str, value: str) -> None:
    told = fact("f1", content, question=question, value=value, turn="t1")
    assert questions(probes_of(conversation(told)))
    assert not questions(probes_of(conversation(told, said=[content, "The kettle is blue"])))


def test_an_event_whose_words_fit_an_event_of_another_day_is_not_asked_about() -> None:
    texts = ("Tobias had a seizure", "The school vaccinated many pupils", "Tobias had a second seizure")
    happened = [
        fact(f"f{n}", text, category="event", turn=f"t{n}", valid_from=day(20 * n - 20))
        for n, text in enumerate(texts, 1)
    ]
    assert of_kind(probes_of(conversation(*happened[:2])), "duration")
    made = probes_of(conversation(*happened))
    assert (made.probes, reasons(made)["f1"]) == ((), "options overlap")
    again = replace(happened[2], valid_from=day(0) + timedelta(hours=3))
    assert of_kind(probes_of(conversation(*happened[:2], again)), "duration")
