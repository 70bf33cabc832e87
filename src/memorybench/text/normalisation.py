"""Converts texts to a standard form before they are compared or searched by patterns."""

from __future__ import annotations

import re
import string
import unicodedata

from .sanitize import sanitize

_SUPERSCRIPT = re.compile(r"(?<=\d)[⁰¹²³⁴-⁹]+")
_SUBSCRIPT = re.compile(r"(?<=\d)(?=[₀-₉①-⓿])")
_REGIONAL_FLAG = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f")
"""The flags of England, Scotland and Wales differ in invisible characters only, which are letters of a code."""
_TAGS = {0xE0000 + code: chr(code) for code in range(0x20, 0x7F)}
_INVISIBLE = frozenset(("Cf", "Co"))
"""Unicode categories that are removed: invisible characters (Cf), and characters of private use (Co)."""
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_SIGNED_ARTICLES = re.compile(r"\b(a|an|the)\b(?![+#])")
_UNSIGNED = re.compile(
    r"((?<=\d)[.:/^*-](?=\d)"  # 1.5, 12:30, 3/4, 2024-05-06
    r"|(?<![\w.])-(?=[$€£]?\.?\d)|(?<![\w.])\.(?=\d)"  # -5, .5
    r"|(?<=[a-z])[+#]+(?!\w))"  # C++, C#
    rf"|[{re.escape(string.punctuation)}]"
)
_DASHES = re.compile(r"[\u2013\u2212](?=[$€£]?\.?\d)")
"""En dashes and minus signs before digits."""
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def plain(text: str) -> str:
    """Return the text in Unicode form NFKC, without invisible and control characters and repeated blanks.

    10³ becomes 10^3, not 103, and 1₂ becomes 1_2, not 12. The flag of England becomes a black flag and "gbeng".
    """
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    marked = _SUBSCRIPT.sub("_", _SUPERSCRIPT.sub(r"^\g<0>", sanitize(_REGIONAL_FLAG.sub(_spell_flag, text))))
    unified = unicodedata.normalize("NFKC", marked)
    return tidy("".join(character for character in unified if unicodedata.category(character) not in _INVISIBLE))


def _spell_flag(found: re.Match[str]) -> str:
    return found[0].translate(_TAGS)


def without_accents(text: str) -> str:
    """Return the text without accents and other marks above or below letters: español becomes espanol."""
    return "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")


def tidy(text: str) -> str:
    """Return the text without repeated blanks and empty lines, because long gaps make some patterns slow."""
    return "\n".join(tidied for line in text.splitlines() if (tidied := " ".join(line.split())))


def normalise_answer(text: str) -> str:
    """Return the text in lower case without ASCII punctuation, articles and repeated blanks, as SQuAD does.

    Rajpurkar et al., "SQuAD: 100,000+ questions for machine comprehension of text", 2016.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(NO_PUNCTUATION)).split())


def normalise_signs(text: str) -> str:
    """Return the text as `normalise_answer` does, but keeps signs that change its meaning.

    1.5 is not 15, -5 is not 5, 12:30 is not 1230, and C++ is not C. A comma in a number is dropped: 1,000 is 1000.
    """
    return " ".join(_SIGNED_ARTICLES.sub(" ", _without_punctuation(text)).split())


def comparable_answer(text: str) -> str:
    """Return the text as `normalise_signs` does, but keep articles or punctuation if nothing else would be left."""
    return normalise_signs(text) or " ".join(_without_punctuation(text).split()) or " ".join(text.lower().split())


def _without_punctuation(text: str) -> str:
    return _UNSIGNED.sub(r"\1", _DASHES.sub("-", text.lower()))
