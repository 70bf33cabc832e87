"""Nothing is asked that gives its answer away, can not be answered, or need not be remembered."""

import re
import string
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorybench.datasets.audit import AuditDataset, load_audit
from memorybench.suites.audit.absent import sort_of
from memorybench.suites.audit.gates import empty_context, leaks, vague
from memorybench.suites.audit.generation import admit, generate
from memorybench.suites.audit.probes import PROBE_TYPES, Probe
from memorybench.suites.audit.words import content
from memorybench.text.stop_words import AUDIT_STOP_WORDS as STOP_WORDS
from tests.suites.audit.probing import conversation, fact, of_kind, probes_of, reasons

ROOT = Path(__file__).parents[3]
LOCOMO = ROOT / "../shared/data/locomo/locomo10.json"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Where in Lisbon does the user live?", "Lisbon"),
        ("What does the user teach?", "teacher"),
        ("What does the user, a nurse, do?", "nursing"),
        ("How many of the three kids are at school?", "3"),
        ("Which of the 12 months?", "twelve"),
        ("Where did the user go on 2024-05-12?", "12 May 2024"),
        ("Which language is spoken in Italy?", "Italian"),
        ("Whose studies were these?", "a study"),
        ("When did he buy it?", "bought"),
        ("What is Zoë’s name?", "Zoë"),
        ("Who is Renee's sister?", "Renée Dubois"),
        ("Where in Málaga is it?", "Malaga"),
        ("What costs 1,200 dollars?", "1200"),
        ("Which Canadian city did she see?", "Canada"),
        ("What flowers does she grow?", "sunflowers"),
        ("What is in the notebook?", "notes"),
        ("Where were the kids playing?", "the playground"),
        ("What does the team need?", "teamwork"),
        ("Where does he walk?", "the sidewalk"),
        ("What was her second prize?", "two weeks"),
    ],
)
def test_a_leak_is_seen_in_any_inflection_and_spelling(question: str, answer: str) -> None:
    assert leaks(question, [answer])


def test_small_words_are_no_leak() -> None:
    assert not leaks("What is the name of the user's dog?", ["the one that is Rex"])
    assert not leaks("Where does the user live?", ["in Rome"])


WORDS = st.text(string.ascii_lowercase, min_size=3, max_size=9)
NAMES = WORDS.map(str.title)
VALUES = st.one_of(WORDS, NAMES, st.integers(2, 99).map(str), st.tuples(WORDS, NAMES).map(" ".join))
SUBJECTS = st.sampled_from(["User", "The user", "I", "Anna", "User's sister", "My boss", "The team"])
SAID = st.sampled_from([
    "lives in {v}", "works as a {v} at {w}", "works for {v}", "moved to {v} in March", "prefers {v} over {w}",
    "loves {v}", "hates {v} and {w}", "is allergic to {v}", "has a dog named {v}", "drives a {v}", "speaks {v}",
    "started {v} in {w}", "was born in {v}", "plans to visit {v} next year", "owns {v} {w}", "studies {v} at {w}",
    "is {v} years old", "does not eat {v}", "never drinks {v}", "bought {v} from {w}", "was promoted to {v}",
    "is a {v}", "has {v} {w}", "meets {v} every {w}", "costs {v} dollars", "likes {v} because of {w}",
])  # fmt: skip
ATTRIBUTES = st.one_of(
    WORDS, st.sampled_from(["job", "city", "name", "birthday", "favourite tea", "sister's job", "works at"])
)


@given(subject=SUBJECTS, said=SAID, one=VALUES, other=VALUES)
@settings(max_examples=200, deadline=None)
def test_no_probe_of_a_free_text_fact_leaks(subject: str, said: str, one: str, other: str) -> None:
    text = f"{subject} {said.format(v=one, w=other)}"
    made = probes_of(conversation(fact("f", text), fact("g", f"{subject} {said.format(v=other, w=one)}")))
    assert_nothing_leaks(made.probes)


@given(attribute=ATTRIBUTES, values=st.lists(VALUES, min_size=2, max_size=3))
@settings(max_examples=120, deadline=None)
def test_no_probe_of_a_structured_chain_leaks(attribute: str, values: list[str]) -> None:
    facts = [
        fact(
            f"f{n}",
            f"User's {attribute} is {value}",
            attribute=attribute,
            value=value,
            supersedes=f"f{n - 1}" if n else None,
        )
        for n, value in enumerate(values)
    ]
    made = probes_of(conversation(*facts))
    assert_nothing_leaks(made.probes)
    for probe in of_kind(made, "latest"):
        assert probe.current == values[-1]
        assert not any(content(value) & content(probe.question) for value in values)


SPELLED = {
    word: n for n, word in enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight", "nine"), 1)
}


def meant(text: str) -> set[str]:
    """Words as a reader sees them, numbers in digits."""
    found = re.findall(r"[^\W_]+", text.casefold().replace("'s", " ").replace("’s", " "))
    return {str(SPELLED.get(word, word)) for word in found if word not in STOP_WORDS}


def looks_like(word: str, other: str) -> bool:
    """Four letters in common at the beginning, or one within the other, an s more or less."""
    if word == other:
        return True
    if not (word.isalpha() and other.isalpha()) or min(len(word), len(other)) < 4:
        return False
    short, long = sorted((word.removesuffix("s"), other.removesuffix("s")), key=len)
    return word[:4] == other[:4] or (len(short) >= 4 and short in long)


def leaking(probe: Probe) -> list[tuple[str, str]]:
    """Looked at without the gate's own code: words of an answer that one in the question looks like."""
    if probe.abstain or probe.options:
        return []
    told = {word for value in (probe.expected_answer, *probe.stale) for word in meant(value)}
    return [(word, asked) for word in told for asked in meant(probe.question) if looks_like(word, asked)]


def assert_nothing_leaks(probes: tuple[Probe, ...]) -> None:
    for probe in probes:
        assert not leaking(probe), f"{probe.question} tells {probe.expected_answer}: {leaking(probe)}"


def test_the_oracle_of_these_tests_sees_a_leak() -> None:
    (probe, *_) = probes_of(conversation(fact("f", "User lives in Canada"))).probes
    assert not leaking(probe)
    assert leaking(probe.model_copy(update={"question": "In which Canadian town does the user live?"}))


def test_a_value_without_a_content_word_is_dropped() -> None:
    made = probes_of(conversation(fact("f", "-", attribute="plan", value="to be with them")))
    assert reasons(made) == {"f": "no value"}


def test_a_question_of_the_dataset_that_leaks_is_dropped() -> None:
    given_ = fact("f", "The user lives in Rome", question="Does the user live in Rome or Paris?", value="Rome")
    made = probes_of(conversation(given_))
    assert (reasons(made), made.gates["leak"]) == ({"f": "leak"}, 1)


def test_a_question_of_the_dataset_that_passes_is_asked() -> None:
    made = probes_of(conversation(fact("f", "The user lives in Rome", question="Which city is home?", value="Rome")))
    assert [(probe.question, probe.origin) for probe in made.probes if not probe.abstain] == [
        ("Which city is home?", "given")
    ]


def test_a_fact_that_no_turn_states_is_not_asked() -> None:
    made = probes_of(conversation(fact("f", "User lives in Rome"), said=["I moved house.", "Rome? Never been."]))
    assert reasons(made) == {"f": "unanswerable"}, "Rome is named, but nothing says that somebody lives there"
    made = probes_of(conversation(fact("f", "User lives in Rome"), said=["I moved house."]))
    assert (reasons(made)["f"], made.gates["unanswerable"] > 0) == ("unanswerable", True)


def test_the_turn_named_by_the_dataset_must_state_the_fact() -> None:
    said = ["I live in Rome.", "I like opera.", "Yes.", "No."]
    assert not reasons(probes_of(conversation(fact("f", "User lives in Rome", turn="t1"), said=said)))
    made = probes_of(conversation(fact("f", "User lives in Rome", turn="t4"), said=said))
    assert reasons(made) == {"f": "unanswerable"}


def test_an_answer_to_a_question_of_the_turn_before_is_evidence() -> None:
    made = probes_of(conversation(fact("f", "User's dog is called Rex"), said=["What is the dog called?", "Rex."]))
    assert [len(probe.gold_context) for probe in made.probes if probe.type == "recall"] == [2]


def test_a_question_with_two_right_answers_is_not_asked() -> None:
    made = probes_of(conversation(fact("f", "User loves chess"), fact("g", "User loves opera")))
    assert reasons(made) == {"f": "not unique", "g": "not unique"}
    assert made.gates["not unique"] >= 2


def test_a_question_is_not_unique_where_another_says_more() -> None:
    made = probes_of(
        conversation(fact("f", "User bought a lamp"), fact("g", "User bought a canoe from a neighbour in May"))
    )
    assert "What did the user buy?" not in {probe.question for probe in made.probes}


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the capital of France?", "Paris"),
        ("Does the user like tea?", "tea"),
        ("Which statement holds?", "yes"),
        ("How many legs has a spider?", "eight"),
    ],
)
def test_what_can_be_known_or_guessed_without_context_is_dropped(question: str, answer: str) -> None:
    assert empty_context(question, answer)


def test_general_knowledge_is_dropped_and_counted() -> None:
    made = probes_of(conversation(fact("f", "The capital of France is Paris")))
    assert made.gates["empty context"] > 0
    assert not [probe for probe in made.probes if probe.question == "What is the capital of France?"]


def test_a_question_that_says_nothing_is_vague() -> None:
    assert vague("What does the user have?")
    assert not vague("What is the user's name?")
    made = probes_of(conversation(fact("f", "User started yoga")))
    assert (reasons(made), made.probes) == ({"f": "vague"}, ())


def test_questions_of_a_model_pass_the_same_gates() -> None:
    told = conversation(fact("f", "User lives in Rome"), fact("g", "User works for Acme"))
    made = probes_of(told)
    probe = next(probe for probe in made.probes if probe.related_facts == ("f",) and not probe.abstain)

    def verdict(question: str, **more: object) -> str | None:
        return admit(probe.model_copy(update={"question": question, **more}), told, others=made.probes)

    assert verdict("In which town is the user at home?") is None
    assert verdict("What time is the train leaving tomorrow?") == "asks for something else"
    assert verdict("When does the user live?") == "asks for something else"
    assert verdict("Where does Anna live?") == "asks for something else"
    assert verdict("Is it in Rome that the user lives?") == "leak"
    assert verdict("What is it?") == "vague"
    assert verdict("Does the user live far away?") == "empty context"
    assert verdict("In which town is the user at home?", expected_answer="Oslo") == "unanswerable"
    assert verdict("Who does the user work for?") == "not unique"
    absent = next(probe for probe in made.probes if probe.abstain)
    assert admit(absent, told) is None
    assert admit(absent.model_copy(update={"question": "Who does the user work for?"}), told) == "not absent"


def sample() -> AuditDataset:
    path = ROOT / "src/memorybench/catalog/data/sample-dataset.json"
    if not path.exists():
        pytest.skip("the sample dataset is not there")
    return load_audit(path)


def test_nothing_leaks_on_the_sample() -> None:
    made = generate(sample(), PROBE_TYPES)
    assert {probe.type for probe in made.probes} == set(PROBE_TYPES)
    assert_nothing_leaks(made.probes)
    assert_twins_fit(made.probes)


TRAIN = "What time is the train leaving tomorrow?"


def test_our_own_questions_are_admitted_and_a_question_about_anything_else_is_not() -> None:
    told = {one.id: one for one in sample().conversations}
    made = [probe for probe in generate(sample(), PROBE_TYPES).probes if not probe.options]
    assert len(made) > 200
    for probe in made:
        beside = [other for other in made if other.conversation == probe.conversation]
        assert admit(probe, told[probe.conversation], others=beside) is None
        other = probe.model_copy(update={"question": TRAIN})
        assert admit(other, told[probe.conversation], others=beside), probe.id
        assert admit(other, told[probe.conversation]), probe.id


def test_a_rewording_keeps_what_was_verified_to_be_absent() -> None:
    told = conversation(fact("f", "User lives in Rome"), fact("g", "User's favourite colour is mauve"))
    made = probes_of(told)
    (absent,) = (probe for probe in made.probes if probe.kind == "complement")

    def verdict(question: str) -> str | None:
        return admit(absent.model_copy(update={"question": question}), told, others=made.probes)

    assert verdict(absent.question.replace("What is", "Please tell me, what is")) is None
    assert verdict("What is the user's favourite colour at the moment?") == "not absent"


@pytest.mark.slow
def test_nothing_leaks_on_a_conversion_of_locomo() -> None:
    if not LOCOMO.exists():
        pytest.skip("the LoCoMo data is not there")
    from memorybench.datasets.audit_conversion import convert_locomo

    made = generate(convert_locomo(LOCOMO), PROBE_TYPES)
    assert len(made.probes) > 2000
    assert_nothing_leaks(made.probes)
    recalled = Counter(probe.conversation for probe in made.probes if probe.type == "recall")
    absent = Counter(probe.conversation for probe in made.probes if probe.abstain)
    assert all(absent[name] <= recalled[name] for name in recalled)
    assert_twins_fit(made.probes)
    assert not [probe.id for probe in made.probes if probe.id.startswith("conv-43/order/o33+o187/")], "told twice"


def assert_twins_fit(probes: tuple[Probe, ...]) -> None:
    by_id = {probe.id: probe for probe in probes}
    for probe in probes:
        if probe.abstain:
            ours, theirs = sort_of(probe.question), sort_of(by_id[probe.twin or ""].question)
            own = by_id[probe.twin or ""].related_facts == probe.related_facts
            assert ours == theirs or (own and ours[0] == theirs[0]), probe.question
    assert max(Counter(probe.twin for probe in probes if probe.abstain).values()) <= 2
