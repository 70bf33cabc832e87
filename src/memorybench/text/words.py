"""Splits text into words, removes stop words and returns stems; for English, unless a language is given."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from .stop_words import FUNCTION_WORDS, STOP_WORDS

_WORD = re.compile(r"\w+")
_CONTRACTED_NOT = re.compile(r"n['’]t\b", re.I)
_UNSPACED = r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
"""Characters of scripts written without blanks, where FTS5 would treat a whole sentence as one word. Not compiled here,
because compiling takes long."""
_REDUNDANT = FUNCTION_WORDS | {"every", "really"}
NEGATIONS = frozenset({"not", "no", "never", "without", "neither", "nor", "cannot", "none"})


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, in their order; "doesn't" becomes "does" and "not"."""
    return _WORD.findall(_CONTRACTED_NOT.sub(" not", text).lower())


def content_words(text: str) -> list[str]:
    """Return the search terms of a text: its distinct words without stop words, or all if it has only stop words."""
    distinct = list(dict.fromkeys(_WORD.findall(text.lower())))
    return [word for word in distinct if word not in STOP_WORDS] or distinct


def space_ideographs(text: str) -> str:
    """Return the text with blanks around each character of scripts that are written without blanks."""
    return text if text.isascii() else re.sub(_UNSPACED, r" \g<0> ", text)


def unspaced_runs(text: str) -> list[str]:
    """Return the stretches of a text that are written without blanks, such as Chinese, with the digits in them."""
    return [] if text.isascii() else re.findall(rf"(?:\d*{_UNSPACED})+\d*", text)


def stems(words: Sequence[str]) -> tuple[str, ...]:
    """Return the stems of the words, without words that do not change what a fact says."""
    return tuple(stem(word) for word in words if word not in _REDUNDANT)


@lru_cache(maxsize=65_536)
def stem(word: str, language: str = "en") -> str:
    """Return the Snowball stem of a word in lower case; for English that is "Porter2"."""
    return str(_stemmer(language).stemWord(word))


@cache
def _stemmer(language: str) -> Any:
    # loads the stemmers of all languages, so only where words are compared
    from snowballstemmer import stemmer

    return stemmer(_SNOWBALL[language])


_SNOWBALL = {"en": "english", "de": "german", "fr": "french", "es": "spanish"}


def numbers(words: Sequence[str]) -> frozenset[str]:
    """Return the words that contain a digit."""
    return frozenset(word for word in words if any(character.isdigit() for character in word))


def is_negated(words: Sequence[str]) -> bool:
    return not NEGATIONS.isdisjoint(words)
