"""How many days a reply tells, and whether they are right: as for the judge, one day more or less is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .spoken import unadorned, value_words
from .words import MONTHS

_FORGIVEN = 1
_MONTH = "|".join(MONTHS)
_DATE = re.compile(
    r"(?:\b(?:from|to|between|and|until|on|since) )?"
    rf"(?:\d{{4}}-\d{{2}}-\d{{2}}|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{_MONTH})\b(?:,? \d{{4}})?"
    rf"|\b(?:{_MONTH}) \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?)"
)
"""It tells when, and counts nothing."""
_TERMS = re.compile(r"^.*=")
"""Of a sum only what comes out of it is told."""
_INEXACT = re.compile(
    r"\b(?:between|from|least|most|to|than|over|under|nearly|almost|not|never|or)(?: \w+){0,2} \d|\d \w*\b ?or\b"
)
"""A range, a bound, or a denial."""
_IN_DAYS = {"day": 1, "days": 1, "week": 7, "weeks": 7}
_OTHER_UNITS = frozenset(("month", "months", "year", "years", "hour", "hours", "minute", "minutes"))


def days_right(text: str, days: int) -> bool | None:
    """None: it gives no number, a range or a bound, several that do not agree, or months."""
    told = value_words(_TERMS.sub("", _DATE.sub(" ", unadorned(text).replace("\n", " "))))
    counted = None if _INEXACT.search(" ".join(told)) else _counted(told)
    return None if counted is None else abs(counted - days) <= _FORGIVEN


def _counted(said: Sequence[str]) -> int | None:
    """A number alone is days; weeks and days are added."""
    amounts = [(int(word), "".join(said[place + 1 : place + 2])) for place, word in enumerate(said) if word.isdigit()]
    units = [unit.removesuffix("s") for _, unit in amounts]
    if _OTHER_UNITS & set(said) or (len(amounts) != 1 and units != ["week", "day"]):
        return None
    return sum(number * _IN_DAYS.get(unit, 1) for number, unit in amounts)
