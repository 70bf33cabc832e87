"""A reply taken apart: sentences, clauses, and words with what they are worth."""

from __future__ import annotations

import re
from functools import lru_cache

from .words import key, plain, unaccented, words

MARK = ","
"""Stands among the words where a comma, a colon or a bracket stood."""

_ORNAMENT = re.compile(r"[*_`#>\"“”«»]+")
_SENTENCE_END = re.compile(r"(?<!\b(?:mr|ms|dr|st))(?<!\bmrs)(?<!\bprof)(?<!\b[c-z])(?<!\.\w)[.!?]+(?=\s|$)|;|\n+")
"""After a title or an initial a point ends nothing; after A or B, which may be an option, it does."""
_CLAUSE_END = re.compile(r"(?<!\d)[,:]|[,:](?!\d)|[()\[\]—–]|(?<=\s)-(?=\s)")
_NEGATED = re.compile(r"\b(can|do|does|did|is|are|was|were|has|have|had|would|could|should|might|must)n't\b")
_IDIOM = re.compile(
    r"\b(?:no doubt|without (?:a )?(?:doubt|question)|no question|no wonder|not only|no less than|not to mention"
    r"|if i am not mistaken|if i'm not mistaken|unless i am mistaken|no problem|why not|or so|or thereabouts"
    r"|or whatever|after all|first of all|above all)\b"
)
"""Phrases whose words mean something else elsewhere: they deny, order and count nothing."""

_SYMBOLS = {"€": "euros", "£": "pounds", "$": "dollars", "%": "percent"}
_NUMBER = r"\d+(?:[.,]\d+)*"
_BEFORE_NUMBER = re.compile(rf"([€£$]|\b(?:eur|gbp|usd)\b)\s?({_NUMBER})(\s?(?:k|thousand|million)\b)?")
_AFTER_NUMBER = re.compile(rf"({_NUMBER})\s?([€£$%])")
_NO_CENTS = re.compile(r"(?<=\d)[.]00\b")
_THOUSANDS = re.compile(r"\b(\d+) (thousand|million)\b")
_HUNDREDS = re.compile(r"\b(?:hundred|thousand) and\b")
_SLASH = re.compile(r"(?<=[a-z])/(?=[a-z])")
_SPELLED_IN = re.compile(r"[\d/]")
"""Without one of these nothing is spelled otherwise, as in most sentences."""
_SAME_UNIT = {
    "quid": "pound", "gbp": "pound", "sterl": "pound", "eur": "euro", "usd": "dollar", "buck": "dollar", "hr": "hour",
    "h": "hour", "min": "minut", "kilo": "kilogram", "kg": "kilogram", "km": "kilometr", "kilomet": "kilometr",
}  # fmt: skip
UNITS = frozenset(key(unit) for unit in (
    "euro", "pound", "dollar", "percent", "second", "minute", "hour", "day", "week", "month", "year", "gram",
    "kilogram", "mile", "metre", "meter", "kilometre", "litre", "liter", "degree",
)) | frozenset(_SAME_UNIT.values())  # fmt: skip


def unadorned(text: str) -> str:
    """In small letters, without markup and quotes, contractions of `not` written out, idioms left out."""
    said = _ORNAMENT.sub("", unaccented(plain(text))).replace("cannot", "can not")
    if "n't" in said:
        said = _NEGATED.sub(r"\1 not", said.replace("can't", "can not").replace("won't", "will not"))
    return _IDIOM.sub(" ", said).strip()


@lru_cache(maxsize=256)  # a reply is looked at from several sides
def sentences(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in _SENTENCE_END.split(unadorned(text)) if part.strip())


def clauses(sentence: str) -> list[str]:
    return [part.strip() for part in _CLAUSE_END.split(sentence) if part.strip()]


def marked_words(sentence: str) -> list[str]:
    """Every word, amounts as a number and a unit, and a mark between clauses."""
    found: list[str] = []
    for clause in clauses(_amounts_spelled(sentence)):
        found += [MARK, *words(clause)]
    return _hundreds_added(found[1:]) if _HUNDREDS.search(sentence) else found[1:]


@lru_cache(maxsize=256)  # a reply is read for every value that it may name
def marked_sentences(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(marked_words(sentence)) for sentence in sentences(text))


def _hundreds_added(said: list[str]) -> list[str]:
    """900 and 50, of nine hundred and fifty → 950."""
    added: list[str] = []
    for word in said:
        if word.isdigit() and int(word) < 100 and len(added) > 1 and added[-1] == "and" and added[-2].endswith("00"):
            added[-2:] = [str(int(added[-2]) + int(word))]
        else:
            added.append(word)
    return added


def value_words(value: str) -> tuple[str, ...]:
    return tuple(word for word in marked_words(unadorned(value)) if word != MARK)


def worth(word: str) -> str:
    """Quid and GBP are pounds."""
    found = key(word)
    return _SAME_UNIT.get(found, found)


def _amounts_spelled(text: str) -> str:
    """€48k, EUR 48,000 and 48 thousand euros become 48k euros, 48,000 euros and 48000 euros."""
    if not _SPELLED_IN.search(text):
        return text
    text = _BEFORE_NUMBER.sub(lambda match: f"{match[2]}{match[3] or ''} {_SYMBOLS.get(match[1], match[1])}", text)
    text = _AFTER_NUMBER.sub(lambda match: f"{match[1]} {_SYMBOLS[match[2]]}", text)
    text = _THOUSANDS.sub(lambda match: match[1] + ("000" if match[2] == "thousand" else "000000"), text)
    return _SLASH.sub(" or ", _NO_CENTS.sub("", text))
