"""The stemmer of the fact matcher."""

from __future__ import annotations

import re
from functools import lru_cache

_SHORT_FORMS = {
    "hrs": "hour", "hr": "hour", "mins": "minute", "min": "minute", "secs": "second", "sec": "second", "yrs": "year",
    "kgs": "kg", "kilo": "kg", "kilos": "kg", "kilogram": "kg", "kilograms": "kg", "km": "km", "kilometre": "km",
    "kilometres": "km", "kilometer": "km", "kilometers": "km", "metre": "meter", "metres": "meter",
}  # fmt: skip


@lru_cache(maxsize=4_000)
def stem_of(word: str) -> str:
    """The word without the endings of number and tense. Crude on purpose: it only has to treat both sides alike."""
    word = _SHORT_FORMS.get(word, word)
    if len(word) <= 3:
        return word
    word = word.replace("isation", "ization")
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and re.search("[aeiouy]", word[: -len(ending)]):
            word = word[: -len(ending)]
            if word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    if word.endswith("y") and len(word) > 3 and word[-2] not in "aeiou":
        word = word[:-1] + "i"
    return word[:-1] if word.endswith("e") and len(word) > 3 else word
