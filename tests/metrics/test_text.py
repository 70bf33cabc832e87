import pytest

from memorybench.metrics.text import exact_match, normalise, token_f1


def test_case_punctuation_articles_and_blanks_do_not_count() -> None:
    assert normalise("  The  Eiffel-Tower, in a park! ") == "eiffeltower in park"
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
