"""How near an answer comes to the gold, word by word.

Rajpurkar et al., "SQuAD: 100,000+ questions for machine comprehension of text", 2016, and for answers without words
"Know what you don't know", 2018. There is no missing value: an empty answer is an answer.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """Lower case, without ASCII punctuation and articles, single blanks."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(answer: str, gold: str) -> float:
    return float(normalise(answer) == normalise(gold))


def token_f1(answer: str, gold: str) -> float:
    """F1 of the words of both; where one has no words left, 1 if neither has."""
    ours, theirs = normalise(answer).split(), normalise(gold).split()
    if not ours or not theirs:
        return float(ours == theirs)
    return overlap_f1(ours, theirs)


def overlap_f1(ours: Sequence[str], theirs: Sequence[str]) -> float:
    """F1 of two bags of words: a word counts as often as both have it. 0 where they share none."""
    shared = sum((Counter(ours) & Counter(theirs)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(ours), shared / len(theirs)
    return 2 * precision * recall / (precision + recall)
