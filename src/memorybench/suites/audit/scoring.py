"""What a reply says, as far as code can tell: which option it takes, whether it refuses, whether it gives a value.

Each answers None where it can not tell. Words are compared, by stem and worth: the same in other words takes a judge.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .options import chosen_option
from .refusals import refuses
from .spoken import sentences
from .standings import Standing, standings

__all__ = ["chosen_option", "mentions", "names_as_current", "refuses"]

_ABOUT_THE_PAST = re.compile(r"\b(?:was|were|did|had|used to)\b")
_UNDECIDED = frozenset((Standing.PARTLY, Standing.ONE_OF_TWO, Standing.WAS))


def mentions(text: str, value: str, question: str = "") -> bool | None:
    """Whether a reply gives a value as the answer to the question; None: it can not be told.

    What is denied is not given, nor is what held before, unless the question is about the past. One of three or more
    alternatives is not given either: who names everything has answered nothing. One of two, one in a row of bare
    names, and a part of the value can not be told.
    """
    found = standings(text, value, question)
    past = _ABOUT_THE_PAST.search(question.lower()) is not None
    if any(standing >= (Standing.PAST if past else Standing.PLAIN) for standing in found):
        return True
    if Standing.WAS in found and len(sentences(text)) == 1:
        return True  # of what is, people say `it was`; after something else it tells what is no more
    return None if found & _UNDECIDED else False


def names_as_current(text: str, current: str, stale: Sequence[str], question: str = "") -> bool | None:
    """Whether a reply that names both tells that the one holds and the others held before; None: it does not tell."""
    ours = [standing for standing in standings(text, current, question) if standing >= Standing.PAST]
    others = [one for value in stale for one in standings(text, value, question) if one >= Standing.PAST]
    if not ours or not others or max(ours) == max(others):
        return None
    return max(ours) > max(others)
