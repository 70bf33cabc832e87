import pytest

from memorybench.metrics.locomo import ADVERSARIAL, MULTI_HOP, OPEN_DOMAIN, SINGLE_HOP, TEMPORAL, answer_score

CASES = [
    # category, answer, gold, score
    (SINGLE_HOP, "Painting", "painting", 1.0),
    (SINGLE_HOP, "She painted a sunset.", "painting sunsets", 2 * (2 / 3) * 1 / (2 / 3 + 1)),
    (SINGLE_HOP, "the dog and the cat", "dog, cat", 1.0),
    (SINGLE_HOP, "guitar", "violin", 0.0),
    (SINGLE_HOP, "", "violin", 0.0),
    (SINGLE_HOP, "the", "and", 0.0),
    (TEMPORAL, "7 May 2023", "7 May, 2023", 1.0),
    (TEMPORAL, "May 2023", "7 May 2023", 0.8),
    (TEMPORAL, "2022", "2022", 1.0),
    (OPEN_DOMAIN, "Likely no", "Likely no; though she likes reading, she wants to be a counselor", 1.0),
    (OPEN_DOMAIN, "Likely no; she likes reading", "Likely no", 2 * (2 / 5) / (2 / 5 + 1)),
    (SINGLE_HOP, "Likely no", "Likely no; reading", 2 * (2 / 3) / (2 / 3 + 1)),
    (MULTI_HOP, "beach, mountains, forest", "mountains, beach", 1.0),
    (MULTI_HOP, "beach", "mountains, beach", 0.5),
    (MULTI_HOP, "beach mountains", "mountains, beach", 2 / 3),
    (MULTI_HOP, "beaches", "beach, the beach, lake", 2 / 3),
    (MULTI_HOP, "", "mountains, beach", 0.0),
    (MULTI_HOP, "mountains", "mountains,", 0.5),
    (ADVERSARIAL, "No information available.", "self-care", 1.0),
    (ADVERSARIAL, "That is NOT MENTIONED in the conversation", "self-care", 1.0),
    (ADVERSARIAL, "self-care", "self-care", 0.0),
    (ADVERSARIAL, "I do not know", "self-care", 0.0),
    (ADVERSARIAL, "", "", 0.0),
]


@pytest.mark.parametrize(("category", "answer", "gold", "score"), CASES)
def test_each_category_is_scored_as_by_the_official_code(category: int, answer: str, gold: str, score: float) -> None:
    assert answer_score(category, answer, gold) == pytest.approx(score)
