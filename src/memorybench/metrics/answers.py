"""Exact match and token F1 of an answer against the gold answer, and the score of a rubric.

Rajpurkar et al., "SQuAD: 100,000+ questions for machine comprehension of text", 2016, and for answers without words
"Know what you don't know", 2018. There is no missing value: an empty answer is an answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import fsum

from memorybench.text.normalisation import comparable_answer, normalise_answer, normalise_signs
from memorybench.text.words import space_ideographs

_TRUTH = {"true": "yes", "false": "no"}
"""How booleans of the data are compared: as yes or no."""


def exact_match(answer: str, gold: str) -> float:
    """Return 1 if both texts are equal after normalisation, else 0. "True" equals "yes", and "False" equals "no".

    SQuAD's rule drops all punctuation and articles. Here, signs of numbers and names are kept (`normalise_signs`), and
    so are articles if a text has no other word, such as the grade A.
    """
    answer, gold = comparable_answer(answer), comparable_answer(gold)
    return float(_TRUTH.get(answer, answer) == _TRUTH.get(gold, gold))


def contains(answer: str, gold: str) -> float:
    """Return 1 if the answer contains the words of the gold answer in sequence, else 0; 0 for an empty gold answer."""
    # each character of scripts without blanks counts as a word
    gold, answer = (normalise_signs(space_ideographs(text)) for text in (gold, answer))
    return float(bool(gold) and f" {gold} " in f" {answer} ")


def token_f1(answer: str, gold: str) -> float:
    """Return the F1 of the words of both texts. If one has no words: 1 if the other has none either, else 0."""
    ours, theirs = normalise_answer(answer).split(), normalise_answer(gold).split()
    if not ours or not theirs:
        return float(ours == theirs)
    return overlap_f1(ours, theirs)


def overlap_f1(ours: Sequence[str], theirs: Sequence[str]) -> float:
    """Return the F1 of two lists of words, in any order; 0 if they share no word."""
    shared = sum((Counter(ours) & Counter(theirs)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(ours), shared / len(theirs)
    return 2 * precision * recall / (precision + recall)


_SEPARATORS = re.compile(r"[,;\n•*]|\band\b|&", re.IGNORECASE)


def exact_list(answer: str, golds: Sequence[str]) -> float:
    """Return 1 if the answer lists all gold answers and nothing else, in any order, else 0.

    Commas, semicolons, lines and "and" separate the parts of a list.
    """
    wanted = {part for gold in golds for part in _parts(gold)}
    return float(bool(wanted) and set(_parts(answer)) == wanted)


def _parts(text: str) -> list[str]:
    return [part for piece in _SEPARATORS.split(text) if (part := comparable_answer(piece))]


def rubric_score(scores: Sequence[float], weights: Sequence[float], *, partial_credit: bool = True) -> float:
    """Return the weighted mean of the scores of a rubric's items, each 0, 0.5 or 1.

    Tavakoli et al., "Beyond a Million Tokens", 2025 (BEAM), with equal weights. Their published code drops half points
    (`int(score)`) for all abilities but event ordering; `partial_credit=False` does the same. There is no missing
    value: an item that could not be judged leaves the question unscored.
    """
    counted = [score if partial_credit or score == 1 else 0.0 for score in scores]
    return fsum(score * weight for score, weight in zip(counted, weights, strict=True)) / fsum(weights)
