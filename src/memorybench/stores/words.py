"""Words as the reference store compares and searches them. English; other languages are compared word for word."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"\w+")
_APOSTROPHE = re.compile(r"n['’]t\b", re.I)

NEGATIONS = frozenset({"not", "no", "never", "without", "neither", "nor", "cannot", "none"})

# closed classes of English words, and what the apostrophe cuts off
_STOP_WORDS = frozenset(
    _WORD.findall("""
    a an the this that these those and or but so if then as because while
    i me my mine you your yours he him his she her hers it its we our ours they them their theirs
    am is are was were be been being do does did doing have has had having can could would should shall must
    at by for from in into of off on onto out to up with about during through
    what when where which who whom whose why how there here
    any some all each every both such very too also just only really d ll m re s ve
    """)
)
_ENDINGS = ("ingly", "edly", "ing", "ies", "ed", "es", "ly", "s")
_SHORTEST_STEM = 3


def words(text: str) -> list[str]:
    """In lower case, in order; "doesn't" is two words, of which one is "not"."""
    return _WORD.findall(_APOSTROPHE.sub(" not", text).lower())


def telling_words(text: str) -> list[str]:
    """Each once and without stop words; all of them, where there are no others."""
    every = list(dict.fromkeys(words(text)))
    return [word for word in every if word not in _STOP_WORDS] or every


def stems(said: Sequence[str]) -> tuple[str, ...]:
    """What is left of words for comparing: neither stop words nor endings."""
    return tuple(_stem(word) for word in said if word not in _STOP_WORDS)


def numbers(said: Sequence[str]) -> frozenset[str]:
    return frozenset(word for word in said if any(character.isdigit() for character in word))


def negated(said: Sequence[str]) -> bool:
    return not NEGATIONS.isdisjoint(said)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM and not word.endswith("ss"):
            word = word.removesuffix(ending)
            break
    if len(word) > _SHORTEST_STEM and word[-1] == word[-2]:
        word = word[:-1]  # planned → plan
    return word.removesuffix("e") if len(word) > _SHORTEST_STEM else word
