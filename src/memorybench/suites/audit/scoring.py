"""Reads replies by code: the chosen option, whether it declines, whether it gives a value.

Each function returns None if the reply is unclear. Words are compared by stem and numbers by value; a paraphrase needs
a judge.
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
    """Return whether a reply gives a value as the answer to the question; None: unclear.

    A denied value is not given, nor is an earlier one, unless the question is about the past, nor one of three or more
    alternatives. One of two alternatives, one in a list of bare names, and a part of the value are unclear.
    """
    senses = standings(text, value, question)
    past = _ABOUT_THE_PAST.search(question.lower()) is not None
    if any(standing >= (Standing.PAST if past else Standing.PLAIN) for standing in senses):
        return True
    if Standing.WAS in senses and len(sentences(text)) == 1:
        return True  # a single sentence with `it was` may be about the present
    return None if senses & _UNDECIDED else False


def names_as_current(text: str, current: str, stale: Sequence[str], question: str = "") -> bool | None:
    """Return whether a reply names one value as current and the others as earlier ones; None: unclear."""
    for_current = [standing for standing in standings(text, current, question) if standing >= Standing.PAST]
    for_stale = [one for value in stale for one in standings(text, value, question) if one >= Standing.PAST]
    if not for_current or not for_stale or max(for_current) == max(for_stale):
        return None
    return max(for_current) > max(for_stale)
