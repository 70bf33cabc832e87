"""How the choices of a question and their gold answer are read, as published data writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memorybench.core.questions import Question
from memorybench.judging.choices import read_choice
from tests.datasets.described import item, opened
from tests.doubles.refusals import refused


def read(folder: Path, choices: Any, answer: Any, **schema: Any) -> Question:
    dataset = opened(folder, [item(options=choices, answer=answer)], {"choices": "options"} | schema)
    (question,) = dataset.questions
    return question


def shown(question: Question) -> list[str]:
    """The lines below the question."""
    return question.question.splitlines()[1:]


def gold(question: Question) -> list[int]:
    """The positions of the right choices."""
    return [place for place, choice in enumerate(question.choices) if str(choice) in question.answers]


LABELLED = [
    ["A. beef", "B. lentils", "C. rice"],
    ["A: beef", "B: lentils", "C: rice"],
    ["a) beef", "b) lentils", "c) rice"],
    ["(a) beef", "(b) lentils", "(c) rice"],
    ["(A) beef", "(B) lentils", "(C) rice"],
    ["1. beef", "2. lentils", "3. rice"],
    ["(1) beef", "(2) lentils", "(3) rice"],
]


@pytest.mark.parametrize("choices", LABELLED, ids=[choices[0] for choices in LABELLED])
def test_labels_in_order_are_read_and_shown_as_written(tmp_path: Path, choices: list[str]) -> None:
    written = choices[1]
    label = written.removesuffix(" lentils")
    for answer in (written, "lentils", label, label.strip("().:"), f" {written} "):
        question = read(tmp_path, choices, answer)
        assert shown(question) == choices
        assert [choice.text for choice in question.choices] == ["beef", "lentils", "rice"]
        assert gold(question) == [1]


NOT_LABELLED = [
    ["11: 30.", "12: 30.", "13: 45."],
    ["1: 30", "2: 30", "3: 30"],
    ["A. Smith", "B. Jones", "T. Bloom"],
    ["I. Newton", "J. Kepler"],
    ["B. Jones", "A. Smith"],
    ["A. Smith", "B. Jones", "Carla Bloom"],
    ["A. beef", "b) lentils"],
    ["2. Bundesliga", "1. FC Nürnberg"],
    ["A.beef", "B.lentils"],
]


@pytest.mark.parametrize("choices", NOT_LABELLED, ids=[choices[0] for choices in NOT_LABELLED])
def test_what_is_not_a_label_stays_in_the_text(tmp_path: Path, choices: list[str]) -> None:
    for place, text in enumerate(choices):
        question = read(tmp_path, choices, text)
        assert [choice.text for choice in question.choices] == choices
        assert shown(question) == [f"({label}) {text}" for label, text in zip("abc", choices, strict=False)]
        assert gold(question) == [place]


@pytest.mark.parametrize("choices", [*LABELLED, *NOT_LABELLED, ["A. Smith", "B. Jones", "C. Bloom"]], ids=str)
def test_an_answer_that_repeats_a_choice_as_written_names_it(tmp_path: Path, choices: list[str]) -> None:
    for place, text in enumerate(choices):
        question = read(tmp_path, choices, text)
        assert gold(question) == [place]
        for response in (text, shown(question)[place], f"The answer is {text}"):
            assert read_choice(response, question.choices) == question.choices[place].label


def test_a_gold_that_two_choices_repeat_makes_both_right(tmp_path: Path) -> None:
    assert gold(read(tmp_path, ["red", "green", "green"], "green")) == [1, 2]


@pytest.mark.parametrize(
    ("choices", "answer", "first", "place"),
    [
        (["red", "green"], 1, 0, 1),
        (["red", "green"], 1, 1, 0),
        (["red", "green"], "1", 0, 1),
        (["red", "green"], 1.0, 0, 1),
        (["red", "green"], "green", 0, 1),
        (["red", "green"], "b", 0, 1),
        (["1. FC Nürnberg", "2. Bundesliga"], 1, 0, 1),
        (["1", "0"], 1, 0, 1),
    ],
)
def test_a_gold_number_is_an_index_if_the_config_says_so(
    tmp_path: Path, choices: list[str], answer: Any, first: int, place: int
) -> None:
    assert gold(read(tmp_path, choices, answer, choiceIndex=first)) == [place]


@pytest.mark.parametrize(
    ("choices", "answer", "place"),
    [(["1. FC Nürnberg", "2. Bundesliga"], 1, 0), ([3, 4], 4, 1), ([3.0, 4.0], 4, 1), (["3", "4"], 4.0, 1)],
)
def test_a_gold_number_may_be_a_label_or_a_text(tmp_path: Path, choices: list[Any], answer: float, place: int) -> None:
    assert gold(read(tmp_path, choices, answer)) == [place]


@pytest.mark.parametrize("answer", [1, "1", 0])
def test_a_gold_number_is_not_guessed_to_be_an_index(tmp_path: Path, answer: Any) -> None:
    error = refused(read, tmp_path, ["red", "green"], answer)
    assert error.where.endswith("[0].answer")
    assert "schema.choiceIndex" in error.remedy


@pytest.mark.parametrize(("answer", "first"), [(2, 0), (-1, 0), (0, 1), (True, 0), ("2", 0)])
def test_an_index_outside_the_choices_is_refused(tmp_path: Path, answer: Any, first: int) -> None:
    error = refused(read, tmp_path, ["red", "green"], answer, choiceIndex=first)
    assert error.where.endswith("[0].answer")


def test_the_first_index_changes_the_fingerprint(tmp_path: Path) -> None:
    items = [item(options=["1. green", "2. red"], answer=1)]
    dumps = [{}, {"choiceIndex": 0}, {"choiceIndex": 1}]
    assert len({opened(tmp_path, items, {"choices": "options"} | one).fingerprint for one in dumps}) == 3


def test_an_index_without_choices_is_refused(tmp_path: Path) -> None:
    assert refused(opened, tmp_path, [item()], {"choiceIndex": 0}).where.endswith("schema.choiceIndex")


@pytest.mark.parametrize(("choices", "answer"), [(["B. beef", "A. lentils"], "A"), (["B. beef", "C. rice"], "b")])
def test_a_gold_label_is_refused_if_the_choices_have_labels_in_another_order(
    tmp_path: Path, choices: list[str], answer: str
) -> None:
    """It may be the label in the text, or the one that the question shows."""
    assert refused(read, tmp_path, choices, answer).where.endswith("[0].answer")
