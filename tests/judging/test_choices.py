"""Which choice an answer to a multiple-choice question names."""

import pytest

from memorybench.core.errors import Unreadable
from memorybench.core.questions import Choice
from memorybench.judging.choices import read_choice

CHOICES = (Choice("a", "by plane"), Choice("b", "by train"), Choice("c", "a bus"), Choice("D", "The A train"))


@pytest.mark.parametrize(
    "response",
    [
        "B",
        "b",
        "B.",
        "(b)",
        "[b]",
        "b)",
        "**B**",
        "The answer is B.",
        "Answer: B",
        "Answer: **(b)**",
        "answer is: b",
        "The correct answer is (b) by train.",
        "by train",
        "By train.",
        "(b) by train",
        "B. By train",
        "B: by train",
        "The answer is by train.",
        "I think option B.",
        "They took the night train, so (b).",
        "B\n\nThe memories mention a strike of the pilots.",
    ],
)
def test_common_forms_of_a_label_are_read(response: str) -> None:
    assert read_choice(response, CHOICES) == "b"


@pytest.mark.parametrize(
    "response",
    [
        "A night train.",
        "It was a long journey.",
        "The answer is a long one.",
        "(a) or (b)",
        "Either B or C.",
        "Answer: B. Answer: C",
        "B. by plane",
        "Not by plane.",
        "green",
        "A train",
        "Not (a)",
        "The correct answer isn't (b).",
        "I'd rule out option A.",
    ],
)
def test_what_names_no_choice_or_several_is_not_read(response: str) -> None:
    with pytest.raises(Unreadable):
        read_choice(response, CHOICES)


@pytest.mark.parametrize(
    ("response", "label"), [("A", "a"), ("(a)", "a"), ("a bus", "c"), ("The A train", "D"), ("d", "D")]
)
def test_the_article_is_not_a_label(response: str, label: str) -> None:
    assert read_choice(response, CHOICES) == label


@pytest.mark.parametrize("response", ["", "  ", "I don't know.", "I do not know", "The memories cannot tell."])
def test_no_answer_is_read_as_no_choice(response: str) -> None:
    assert read_choice(response, CHOICES) is None
