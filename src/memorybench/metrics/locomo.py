"""LoCoMo's official score of an answer: Maharana et al., "Evaluating very long-term conversational memory of LLM
agents", 2024, its `task_eval/evaluation.py`. There is no missing value: an empty answer is an answer, worth 0.

An answer that is empty on both sides after normalisation scores 0, other than in `text.token_f1`, as it does there.
"""

from __future__ import annotations

import re
import string
from math import fsum

from .porter import stem
from .text import overlap_f1

MULTI_HOP, TEMPORAL, OPEN_DOMAIN, SINGLE_HOP, ADVERSARIAL = 1, 2, 3, 4, 5
_REFUSALS = ("no information available", "not mentioned")
_SMALL_WORDS = re.compile(r"\b(a|an|the|and)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def answer_score(category: int, answer: str, gold: str) -> float:
    """Between 0 and 1. Of an adversarial question the gold is not looked at: right is to say that nothing is known."""
    if category == ADVERSARIAL:
        return float(any(refusal in answer.lower() for refusal in _REFUSALS))
    if category == MULTI_HOP:
        return _listed_f1(answer, gold)
    if category == OPEN_DOMAIN:
        gold = gold.split(";")[0]  # what follows explains
    return stemmed_f1(answer, gold)


def stemmed_f1(answer: str, gold: str) -> float:
    return overlap_f1(_stems(answer), _stems(gold))


def _listed_f1(answer: str, gold: str) -> float:
    """Each part of the gold against the part of the answer that fits it best; parts stand between commas."""
    parts = answer.split(",")
    best = [max(stemmed_f1(part, wanted) for part in parts) for wanted in gold.split(",")]
    return fsum(best) / len(best)


def _stems(text: str) -> list[str]:
    bare = text.lower().translate(_NO_PUNCTUATION)
    return [stem(word) for word in _SMALL_WORDS.sub(" ", bare).split()]
