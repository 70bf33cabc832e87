import pytest

from memorybench.metrics.answers import contains, exact_list, exact_match, rubric_score, token_f1
from memorybench.text.normalisation import normalise_answer


def test_case_punctuation_articles_and_blanks_do_not_count() -> None:
    assert normalise_answer("  The  Eiffel-Tower, in a park! ") == "eiffeltower in park"
    assert exact_match("The cat.", "cat") == 1
    assert exact_match("another cat", "other cat") == 0


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("a red car", "the red car", 1.0),
        ("red", "red car", 2 / 3),
        ("red red red", "red", 0.5),
        ("car red", "red car", 1.0),
        ("blue", "red car", 0.0),
        ("", "red car", 0.0),
        ("the", "a", 1.0),
        ("red", "the", 0.0),
    ],
)
def test_token_f1(answer: str, gold: str, expected: float) -> None:
    assert token_f1(answer, gold) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [("It is the Red car.", "red car", 1.0), ("a reddish car", "red", 0.0), ("red", "the", 0.0), ("", "red", 0.0)],
)
def test_contains_compares_whole_words(answer: str, gold: str, expected: float) -> None:
    assert contains(answer, gold) == expected


@pytest.mark.parametrize(
    ("answer", "golds", "expected"),
    [
        ("red and blue", ["blue", "red"], 1.0),
        ("Blue, the red.", ["blue", "red"], 1.0),
        ("red", ["blue", "red"], 0.0),
        ("red, blue and green", ["blue", "red"], 0.0),
        ("", ["blue"], 0.0),
        ("A and B", ["A", "B"], 1.0),
        ("B", ["A", "B"], 0.0),
        ("C and 15", ["C++", "1.5"], 0.0),
    ],
)
def test_exact_list_wants_all_answers_in_any_order(answer: str, golds: list[str], expected: float) -> None:
    assert exact_list(answer, golds) == expected


def test_rubric_score_is_the_weighted_mean_of_its_items() -> None:
    assert rubric_score([1, 0.5, 0], [1, 1, 1]) == pytest.approx(0.5)
    assert rubric_score([1, 0.5, 0], [2, 1, 1]) == pytest.approx(2.5 / 4)
    assert rubric_score([1, 0.5, 0], [2, 1, 1], partial_credit=False) == pytest.approx(2 / 4)


@pytest.mark.parametrize(
    ("gold", "answer", "expected"),
    [
        ("1.5", "15", 0), ("1.5", "1.5.", 1), ("-5", "5", 0), ("-5", "−5", 1), ("-$5", "$-5", 1), ("0.5", "05", 0),
        (".5", "5", 0), ("3/4", "34", 0), ("12:30", "1230", 0), ("12:30", "12:30!", 1), ("2024-05-06", "20240506", 0),
        ("C++", "C", 0), ("C++", "c++.", 1), ("C#", "C", 0), ("A+", "a", 0), ("$1,000", "1000", 1), ("50%", "50", 1),
        ("well-known", "wellknown", 1), ("5-year", "5year", 1), ("Dr. Who?", "dr who", 1), ("(b) the cat", "b cat", 1),
        ("A", "The", 0), ("A", "a", 1), ("A", "(A)", 1), ("The The", "the the", 1), ("The The", "a", 0), ("?", "!", 0),
        ("yes", "True", 1), ("yes", "true.", 1), ("no", "False", 1), ("yes", "false", 0), ("no", "true", 0),
    ],
)  # fmt: skip
def test_signs_that_change_an_answer_are_compared(gold: str, answer: str, expected: float) -> None:
    assert exact_match(answer, gold) == expected


@pytest.mark.parametrize(
    ("gold", "answer", "expected"),
    [("3.5", "It is 35 km", 0), ("3.5", "It is 3.5 km.", 1), ("2.5", "about 25 percent", 0), ("7", "-7 degrees", 0),
     ("C++", "He likes C", 0), ("C++", "He likes C++, too", 1), ("the cat", "a cat!", 1)],
)  # fmt: skip
def test_required_texts_keep_their_signs(gold: str, answer: str, expected: float) -> None:
    assert contains(answer, gold) == expected
