"""Exact match and token F1 of an answer against the gold answer.

Rajpurkar et al., "SQuAD: 100,000+ questions for machine comprehension of text", 2016, and for answers without words
"Know what you don't know", 2018. There is no missing value: an empty answer is an answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from memorybench.text.normalisation import normalise_answer


def exact_match(answer: str, gold: str) -> float:
    """Returns 1 if both are the same text after normalisation, else 0."""
    return float(normalise_answer(answer) == normalise_answer(gold))


def contains(answer: str, gold: str) -> float:
    """Returns 1 if the words of the gold answer occur in the answer in sequence, else 0; an empty gold gives 0."""
    gold = normalise_answer(gold)
    return float(bool(gold) and f" {gold} " in f" {normalise_answer(answer)} ")


def token_f1(answer: str, gold: str) -> float:
    """Returns the F1 of the words of both; if one has no words, 1 if neither has, else 0."""
    ours, theirs = normalise_answer(answer).split(), normalise_answer(gold).split()
    if not ours or not theirs:
        return float(ours == theirs)
    return overlap_f1(ours, theirs)


def overlap_f1(ours: Sequence[str], theirs: Sequence[str]) -> float:
    """Returns the F1 of two bags of words; 0 if they share no word."""
    shared = sum((Counter(ours) & Counter(theirs)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(ours), shared / len(theirs)
    return 2 * precision * recall / (precision + recall)
