"""Puts texts into one form before patterns or scores compare them."""

from __future__ import annotations

import re
import string
import unicodedata

from .sanitize import sanitize

_SUPERSCRIPT = re.compile(r"(?<=\d)[⁰¹²³⁴-⁹]+")
_INVISIBLE = frozenset(("Cf", "Co"))
"""Unicode categories that show nothing, or nothing that two readers agree on."""
_ARTICLES = re.compile(r"\b(a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def plain(text: str) -> str:
    """Applies NFKC, removes invisible and control characters, and collapses blanks. 10³ becomes 10^3, not 103."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    unified = unicodedata.normalize("NFKC", _SUPERSCRIPT.sub(r"^\g<0>", sanitize(text)))
    return tidy("".join(character for character in unified if unicodedata.category(character) not in _INVISIBLE))


def without_accents(text: str) -> str:
    """Removes accents and other marks above or below letters: español becomes espanol."""
    return "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")


def tidy(text: str) -> str:
    """Collapses blanks and drops empty lines, so that no pattern backtracks over a long gap."""
    return "\n".join(tidied for line in text.splitlines() if (tidied := " ".join(line.split())))


def normalise_answer(text: str) -> str:
    """Returns the text in lower case without ASCII punctuation, articles and repeated blanks, as SQuAD does.

    Rajpurkar et al., "SQuAD: 100,000+ questions for machine comprehension of text", 2016.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(NO_PUNCTUATION)).split())
