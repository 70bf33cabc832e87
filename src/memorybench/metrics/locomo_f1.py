"""LoCoMo's official answer score, by question category.

Maharana et al., "Evaluating very long-term conversational memory of LLM agents", 2024, `task_eval/evaluation.py`.
There is no missing value: an empty answer is an answer and scores 0. If both texts are empty after normalisation the
score is 0, as in the official code, whereas `answers.token_f1` gives 1.

The benchmark card (catalog/benchmarks/locomo.yaml) maps the numbers in the data to the category names used here.
"""

from __future__ import annotations

import re
from math import fsum

from memorybench.text.normalisation import NO_PUNCTUATION
from memorybench.text.porter import stem

from .answers import overlap_f1

CATEGORIES = frozenset({"multi-hop", "temporal", "open-domain", "single-hop", "adversarial"})
_REFUSALS = ("no information available", "not mentioned")
_IGNORED_WORDS = re.compile(r"\b(a|an|the|and)\b")


def answer_score(category: str, answer: str, gold: str) -> float:
    """Return a score from 0 to 1. For an adversarial question, the gold is ignored and a refusal scores 1."""
    if category == "adversarial":
        return float(any(refusal in answer.lower() for refusal in _REFUSALS))
    if category == "multi-hop":
        # each part of the gold counts with the part of the answer that fits it best
        parts = answer.split(",")
        best = [max(stemmed_f1(part, gold_part) for part in parts) for gold_part in gold.split(",")]
        return fsum(best) / len(best)
    if category == "open-domain":
        gold = gold.split(";")[0]  # an explanation follows the semicolon
    return stemmed_f1(answer, gold)


def stemmed_f1(answer: str, gold: str) -> float:
    return overlap_f1(_stems(answer), _stems(gold))


def _stems(text: str) -> list[str]:
    without_punctuation = text.lower().translate(NO_PUNCTUATION)
    return [stem(word) for word in _IGNORED_WORDS.sub(" ", without_punctuation).split()]
