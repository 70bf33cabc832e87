"""Code decides only whether an answer is equal to a known one; anything else is for the judge, or unscored."""

from collections.abc import Sequence
from typing import Any

import pytest

from memorybench.core.errors import Unreadable
from memorybench.datasets.audit import load_audit
from memorybench.judging.judge import Judge
from memorybench.suites.audit.generation import generate
from memorybench.suites.audit.judgement import judge_answer, judge_prompts, names_stale, question_of
from memorybench.suites.audit.probes import PROBE_TYPES, Policy, Probe
from tests.doubles.scripted_model import ScriptedModel
from tests.suites.audit.probing import UnrecordedSteps, run
from tests.suites.audit.test_probes import ROOT

SAMPLE = ROOT / "data/sample-dataset.json"


def probe(**fields: Any) -> Probe:
    usual = {
        "id": "c/p", "type": "recall", "kind": "recall", "conversation": "c", "question": "Which?",
        "expected_answer": "", "origin": "structured",
    }  # fmt: skip
    return Probe(**{**usual, **fields})


DIET = probe(question="Dietary restriction: ____.", expected_answer="none")
BAND = probe(question="Favourite band: ____.", expected_answer="Unknown")
NOT_EATEN = probe(question="What does the user not eat?", expected_answer="fish")
UPDATES = probe(question="What does the user prefer?", expected_answer="written updates")
TOWN = probe(
    type="conflict", kind="latest", question="What is the user's home town now?", expected_answer="Whitby",
    current="Whitby", stale=("Halifax", "York"),
)  # fmt: skip
ORDER = probe(
    type="temporal", kind="order", question="What happened first: (A) the user sold the van, or (B) the roof leaked?",
    expected_answer="the roof leaked", options=("the user sold the van", "the roof leaked"),
)  # fmt: skip
ABSENT = probe(type="hallucination", kind="declared", question="Which gym?", expected_answer="-", abstain=True)
DAYS = probe(type="temporal", kind="duration", question="How many days?", expected_answer="18")


def by_code(asked: Probe, response: str) -> bool | None:
    try:
        return run(judge_answer(UnrecordedSteps(), None, asked, response)).correct
    except Unreadable:
        return None


@pytest.mark.parametrize(
    "response",
    [
        "I can't share personal information.",
        "I'm sorry, but I cannot answer that.",
        "I'm sorry, but I can't help with that request.",
        "Sorry, I don't know.",
        "I don't remember.",
        "Das weiß ich nicht.",
        "我不知道。",
    ],
)
def test_a_refusal_is_not_an_invented_answer(response: str) -> None:
    assert by_code(ABSENT, response) is True
    assert by_code(NOT_EATEN, response) is False
    assert by_code(ABSENT, f"{response} It is PureGym.") is None


@pytest.mark.parametrize(
    ("asked", "response", "right"),
    [
        (DIET, "None.", True),
        (BAND, "Unknown", True),
        (NOT_EATEN, "Fish.", True),
        (NOT_EATEN, "The user does not eat fish.", None),
        (NOT_EATEN, "I don't know.", False),
        (NOT_EATEN, "", False),
        (UPDATES, "Prefers meetings over written updates", None),
        (UPDATES, "**Written updates**", True),
        (TOWN, "Whitby", True),
        (TOWN, "York.", False),
        (TOWN, "It could be Halifax, York or Whitby", None),
        (ORDER, "B", True),
        (ORDER, "(A)", False),
        (ORDER, "The roof leaked.", True),
        (ORDER, "(A) the user sold the van", False),
        (ORDER, "(A) the user sold the van, or (B) the roof leaked", None),
        (ORDER, "I don't know", False),
        (ABSENT, "I don't know.", True),
        (ABSENT, "The context provided doesn't contain details on this.", None),
        (ABSENT, "PureGym", None),
        (ABSENT, "", True),
        (DAYS, "18 days", True),
        (DAYS, "Eighteen", True),
        (DAYS, "21", None),
    ],
)  # fmt: skip
def test_code_decides_equal_answers_only(asked: Probe, response: str, right: bool | None) -> None:
    assert by_code(asked, response) is right


@pytest.mark.parametrize(
    ("expected", "response"),
    [
        ("C++", "C"), ("A+", "A-"), ("-5 °C", "5 °C"), ("−5", "5"), ("20 %", "20"), ("$20", "€20"), ("2-1", "2 1"),
        (">5", "<5"), ("~30", "30"), ("1½", "11/2"), ("1,5", "1 5"), ("10 MW", "10 mW"), ("👍", "👎"), ("...", "?"),
        ("x²", "x₂"), ("m²", "m2"), ("Vitamin A", "Vitamin"), ("A minor", "Minor"), ("in Maßen", "in Massen"),
    ],
)  # fmt: skip
def test_a_sign_or_a_letter_that_changes_an_answer_counts(expected: str, response: str) -> None:
    for right, said in ((expected, response), (response, expected)):
        assert by_code(probe(expected_answer=right), said) is None
        assert by_code(probe(expected_answer=right), right) is True
        assert by_code(probe(expected_answer="x", stale=(right,)), said) is None


@pytest.mark.parametrize(
    ("expected", "response"),
    [
        ("The walnut loaf", "walnut loaf."), ("a dog", "A dog"), ("-5", "−5"), ("5 kg", "five kg"), ("5 pm", "5 PM"),
        ("5 March 2024", "2024-03-05"), ("90,000 pounds", "90000 pounds"), ("C++", "**c++**"), ("Lisbon", '"Lisbon"'),
    ],
)  # fmt: skip
def test_spelling_does_not_change_an_answer(expected: str, response: str) -> None:
    assert by_code(probe(expected_answer=expected), response) is True


def test_an_option_is_chosen_only_if_its_signs_are_the_same() -> None:
    options = ("The user learned C++", "The user learned C")
    asked = probe(type="temporal", kind="order", expected_answer=options[0], options=options)
    assert [by_code(asked, said) for said in (*options, "A", "Option B")] == [True, False, True, False]


def test_a_negative_number_of_days_is_not_the_duration() -> None:
    assert by_code(DAYS, "-18 days") is None


@pytest.mark.parametrize("policy", ["latest", "flag"])
def test_expected_answers_are_right_and_outdated_ones_wrong(policy: Policy) -> None:
    for asked in generate(load_audit(SAMPLE), PROBE_TYPES, policy=policy).probes:
        right = "I don't know." if asked.abstain else asked.expected_answer
        assert by_code(asked, right) is True, asked.question
        wrong = False if policy == "latest" or asked.type == "temporal" else None
        assert all(by_code(asked, value) in (wrong, False) for value in asked.stale), asked.question


def judged(asked: Probe, response: str, verdict: str) -> tuple[Any, str]:
    """The judgement by a judge with this reply, and the prompt that it saw."""
    prompts: list[str] = []

    def reply(turns: Any) -> str:
        prompts.append(turns[-1].content)
        return verdict

    judge = Judge(ScriptedModel(reply), judge_prompts())
    return run(judge_answer(UnrecordedSteps(), judge, asked, response)), prompts[0]


@pytest.mark.parametrize(
    ("verdict", "correct", "choice"), [("B", True, 1), ("A.", False, 0), ("neither", False, None), ("(b)", True, 1)]
)
def test_the_judge_of_an_order_answers_a_b_or_neither(verdict: str, correct: bool, choice: int | None) -> None:
    judgement, prompt = judged(ORDER, "It started with water in the attic.", verdict)
    assert (judgement.correct, judgement.choice, judgement.by_judge) == (correct, choice, True)
    assert "A, B or neither" in prompt
    assert "correct-answer" not in prompt, "the judge says what was chosen, not whether it is right"


@pytest.mark.parametrize("verdict", ["yes", "A or B", "both"])
def test_a_verdict_on_an_order_that_names_no_option_is_unreadable(verdict: str) -> None:
    with pytest.raises(Unreadable):
        judged(ORDER, "It started with water in the attic.", verdict)


def test_the_judge_of_a_conflict_sees_the_outdated_values() -> None:
    _, prompt = judged(TOWN, "They moved to the coast.", "no")
    assert "Halifax; York" in prompt
    assert "it was X, now it is Y" in prompt


@pytest.mark.parametrize("asked", [NOT_EATEN, TOWN, ORDER, DAYS, ABSENT])
def test_every_kind_of_probe_has_canaries(asked: Probe) -> None:
    from memorybench.judging.canaries import choose_canaries

    chosen = {canary.kind for canary in choose_canaries(judge_prompts().used([question_of(asked)]))}
    needed = {
        "recall": {"echo", "hedge"},
        "latest": {"echo", "hedge", "both", "stale"},
        "order": {"echo", "hedge", "both"},
    }
    assert needed.get(asked.kind, {"vague"}) <= chosen


def test_a_wrong_answer_with_an_outdated_value_is_stale() -> None:
    assert names_stale(TOWN, "The user lives in York.")
    assert not names_stale(TOWN, "It was York, now it is Whitby.")
    assert not names_stale(TOWN, "Somewhere by the sea.")


def mutants(asked: Probe, others: Sequence[Probe]) -> list[str]:
    """Wrong answers that are near to the right one."""
    gold = asked.expected_answer
    if asked.abstain:
        return ["Yes.", "Rotterdam", asked.question]
    values = [
        other.expected_answer for other in others if other.conversation == asked.conversation and not other.abstain
    ]
    swapped = [f"{gold}'s user is that", f"The {gold} has the user"]  # subject and object
    wrong = [value for value in (*asked.stale, *asked.options, *values) if value != gold]
    return [*wrong, *swapped, f"not {gold}", f"{gold} or something else", asked.question, "", "I don't know."]


@pytest.mark.slow
def test_no_mutant_of_an_answer_is_right_by_code() -> None:
    probes = generate(load_audit(SAMPLE), PROBE_TYPES).probes
    total = 0
    for asked in probes:
        for response in mutants(asked, probes):
            total += 1
            assert by_code(asked, response) is not True, (asked.question, response)
    assert total > 2000
