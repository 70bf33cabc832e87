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
    ],
)
def test_exact_list_wants_all_answers_in_any_order(answer: str, golds: list[str], expected: float) -> None:
    assert exact_list(answer, golds) == expected


def test_rubric_score_is_the_weighted_mean_of_its_items() -> None:
    assert rubric_score([1, 0.5, 0], [1, 1, 1]) == pytest.approx(0.5)
    assert rubric_score([1, 0.5, 0], [2, 1, 1]) == pytest.approx(2.5 / 4)
    assert rubric_score([1, 0.5, 0], [2, 1, 1], partial_credit=False) == pytest.approx(2 / 4)
