import pytest

from memorybench.metrics.locomo_f1 import answer_score

CASES = [
    # category, answer, gold, score
    ("single-hop", "Painting", "painting", 1.0),
    ("single-hop", "She painted a sunset.", "painting sunsets", 2 * (2 / 3) * 1 / (2 / 3 + 1)),
    ("single-hop", "the dog and the cat", "dog, cat", 1.0),
    ("single-hop", "guitar", "violin", 0.0),
    ("single-hop", "", "violin", 0.0),
    ("single-hop", "the", "and", 0.0),
    ("temporal", "7 May 2023", "7 May, 2023", 1.0),
    ("temporal", "May 2023", "7 May 2023", 0.8),
    ("temporal", "2022", "2022", 1.0),
    ("open-domain", "Likely no", "Likely no; though she likes reading, she wants to be a counselor", 1.0),
    ("open-domain", "Likely no; she likes reading", "Likely no", 2 * (2 / 5) / (2 / 5 + 1)),
    ("single-hop", "Likely no", "Likely no; reading", 2 * (2 / 3) / (2 / 3 + 1)),
    ("multi-hop", "beach, mountains, forest", "mountains, beach", 1.0),
    ("multi-hop", "beach", "mountains, beach", 0.5),
    ("multi-hop", "beach mountains", "mountains, beach", 2 / 3),
    ("multi-hop", "beaches", "beach, the beach, lake", 2 / 3),
    ("multi-hop", "", "mountains, beach", 0.0),
    ("multi-hop", "mountains", "mountains,", 0.5),
    ("adversarial", "No information available.", "self-care", 1.0),
    ("adversarial", "That is NOT MENTIONED in the conversation", "self-care", 1.0),
    ("adversarial", "self-care", "self-care", 0.0),
    ("adversarial", "I do not know", "self-care", 0.0),
    ("adversarial", "", "", 0.0),
]


@pytest.mark.parametrize(("category", "answer", "gold", "score"), CASES)
def test_each_category_is_scored_as_by_the_official_code(category: str, answer: str, gold: str, score: float) -> None:
    assert answer_score(category, answer, gold) == pytest.approx(score)
