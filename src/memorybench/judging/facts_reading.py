"""What a fact says, as far as code can tell: its words, quantities and names, and which of them are denied or in doubt.

A denial or a doubt holds for its whole clause, before and after the word that makes it: "no subscription model" and
"subscription model not wanted" deny the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from .facts_quantities import MONTHS, Quantity, is_mark, place_of, taken_out
from .plain import plain

DENIED, DOUBTED = "¬", "?"

_STRAIGHT = str.maketrans("‘’“”–—", "''\"\"--")
_REWRITTEN = tuple(
    (re.compile(said, re.IGNORECASE), meant)
    for said, meant in (
        (r"\bwon't\b", "will not"),
        (r"\bcan(?:'t|not)\b", "can not"),
        (r"(?<=\w)n't\b", " not"),
        (r"(?<=\w)'(?:s|re|ve|ll|d|m)?\b", ""),
        (r"\bunable to\b", "can not"),
        (r"(?<=\bnot )want(?:s|ed)?\b(?: to\b)?", ""),  # who does not want it will have none
        (r"\bno longer\b|\bnot any ?more\b", "not"),
        (r"\bnot only\b", "also"),
        (r"\bnot (?:yet )?(?:sure|certain|decided)\b|\bundecided\b", "unsure"),
        (r"\bnot? more than\b|\bup to\b|\bno later than\b", "at most"),
        (r"\bnot? (?:less|fewer) than\b", "at least"),
        (r"\bdislik(?:e|es|ed|ing)\b", "not like"),
        (r"\b(?:exclusively|solely)\b", "only"),
        (r"\be-mail", "email"),
        (r"\bnon-(?=\w)", "not "),
        (r"(?:\b(?:per|an?|each|every)\s+|/\s?)hours?\b", " hourly"),
        (r"(?:\b(?:per|a|each|every)\s+|/\s?)days?\b", " daily"),
        (r"(?:\b(?:per|a|each|every)\s+|/\s?)(?:weeks?|wk)\b", " weekly"),
        (r"(?:\b(?:per|a|each|every)\s+|/\s?)(?:months?|mo)\b", " monthly"),
        (r"(?:\b(?:per|a|each|every)\s+|/\s?)(?:years?|yr)\b|\bannual(?:ly)?\b|\bper annum\b", " yearly"),
    )
)
_CLAUSES = re.compile(
    r"[;!?()\n]|\.(?=\s|$)|,(?=\s)|\s-\s|\b(?:but|although|though|whereas|while)\b"
    r"|\band\s+(?=(?:\w+\s+){0,2}(?:not|no|never|without)\b)|\bnor\b|(?=\b(?:rather than|instead of)\b)",
    re.IGNORECASE,
)
_DENIALS = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|without|rather than|instead of|against"
    r"|avoid(?:s|ed|ing)?|refus(?:e|es|ed|ing)|reject(?:s|ed|ing)?|declin(?:e|es|ed|ing)|stopped|quit|lacks?)\b",
    re.IGNORECASE,
)
_DOUBTS = re.compile(
    r"\b(?:maybe|perhaps|possibly|probably|potentially|tentative(?:ly)?|might|could|unsure|if"
    r"|consider(?:s|ed|ing)?|explor(?:es|ing)|think(?:s|ing)? (?:about|of)|open to|(?-i:may))\b",
    re.IGNORECASE,
)
_SUBJECT = re.compile(r"^\W*(?:the\s+user|user|they|he|she|i|we|my|our|their)\b\s*", re.IGNORECASE)
_TOKEN = re.compile(r"[^\W_]+")
_TOKEN_OR_MARK = re.compile(r"[^\W_]+|[\U000f0000-\U000ffffd]")
_FILLING = """
    a an the this that these those is are was were be been being am has have had having own owns do does did will would
    shall should can there it its he she they them his her their theirs i me my mine we us our ours you your of in on
    at to for by with from as via through and or than then so too also very just now about around approximately
    roughly who which what s
"""
_FILLERS = frozenset(_FILLING.split())
_DIRECTIONS = frozenset(("from", "to", "than", "over", "before", "after", "under", "above", "below"))
_TURNING = _DIRECTIONS | {"by", "of", "for"}
"""Words that tell who does what to whom: with them, another order may be another fact."""
_POSSESSIVE = re.compile(r"\w's\s|s'\s")
_SHORT_FORMS = {
    "hrs": "hour", "hr": "hour", "mins": "minute", "min": "minute", "secs": "second", "sec": "second", "yrs": "year",
    "kgs": "kg", "kilo": "kg", "kilos": "kg", "kilogram": "kg", "kilograms": "kg", "km": "km", "kilometre": "km",
    "kilometres": "km", "kilometer": "km", "kilometers": "km", "metre": "meter", "metres": "meter",
}  # fmt: skip
_WEEKDAYS = frozenset(("mon", "tues", "wednes", "thurs", "fri", "satur", "sun"))
_NO_NAMES = frozenset((*MONTHS, "eur", "usd", "gbp", "chf", "jpy", "inr"))


@dataclass(frozen=True, slots=True)
class Reading:
    text: str
    """In lower case, without punctuation at the ends and double blanks."""
    words: tuple[str, ...]
    """Stems of the words that carry meaning, in their order, each with its mode before it: `¬` denied, `?` in doubt."""
    stems: frozenset[str]
    """The same without modes."""
    quantities: frozenset[Quantity]
    names: frozenset[str]
    """Stems of words that are written as names, and of days of the week."""
    order: tuple[str, ...]
    """Words and numbers as they follow each other."""
    directions: frozenset[str]
    """From where, to what, before or after: words between the words that carry meaning."""
    turns: bool
    """Another order of its words may be another fact: it tells who does what to whom, or counts several things."""
    modes: Mapping[str | Decimal, frozenset[str]]
    """By stem, and by the value of a quantity."""
    marked: bool
    """Something in it is denied or in doubt."""

    @property
    def empty(self) -> bool:
        return not self.words and not self.quantities


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


def bare(word: str) -> str:
    """A stem without its mode."""
    return word.lstrip(DENIED + DOUBTED)


def denies(text: str) -> bool:
    return bool(_DENIALS.search(_rewritten(text)))


def turned(text: str) -> str:
    """The text with its first denial taken out, or denied where it has none."""
    if denies(text):
        return " ".join(_DENIALS.sub("", _rewritten(text), count=1).split())
    return f"Not {text}"


@lru_cache(maxsize=20_000)
def reading_of(text: str) -> Reading:
    said = plain(text).translate(_STRAIGHT)
    order: list[str] = []
    words: list[str] = []
    quantities: list[Quantity] = []
    for clause in _CLAUSES.split(_SUBJECT.sub("", _rewritten(said))):
        mode = _mode(clause)
        rest, found = taken_out(_DOUBTS.sub(" ", _DENIALS.sub(" ", clause)))
        quantities += [quantity._replace(mode=mode) for quantity in found]
        stems = list(_stems(rest))
        words += [f"{mode}{stem}" for stem in stems if not is_mark(stem[0])]
        order += [str(found[place_of(stem)].value) if is_mark(stem[0]) else f"{mode}{stem}" for stem in stems]
    tokens = _TOKEN.findall(said.lower())
    modes = _modes(words, quantities)
    return Reading(
        text=" ".join(said.lower().split()).strip(" .,;:!\"'"),
        words=tuple(words),
        stems=frozenset(map(bare, words)),
        quantities=frozenset(quantities),
        names=frozenset(_names(said)).union(_weekdays(tokens)),
        order=tuple(order),
        directions=_DIRECTIONS.intersection(tokens),
        turns=_turns(said, tokens, quantities),
        modes=modes,
        marked=any(mode for found in modes.values() for mode in found),
    )


def _modes(words: Sequence[str], quantities: Sequence[Quantity]) -> Mapping[str | Decimal, frozenset[str]]:
    modes: dict[str | Decimal, set[str]] = {}
    for word in words:
        modes.setdefault(bare(word), set()).add(word[: len(word) - len(bare(word))])
    for quantity in quantities:
        modes.setdefault(quantity.value, set()).add(quantity.mode)
    return {thing: frozenset(found) for thing, found in modes.items()}


def _rewritten(text: str) -> str:
    for said, meant in _REWRITTEN:
        text = said.sub(meant, text)
    return text


def _mode(clause: str) -> str:
    denied = len(_DENIALS.findall(clause)) % 2  # "not without sugar" is with sugar
    return (DOUBTED if _DOUBTS.search(clause) else "") + (DENIED if denied else "")


def _turns(text: str, tokens: Sequence[str], quantities: Sequence[Quantity]) -> bool:
    counted = [quantity for quantity in quantities if quantity.unit not in ("day", "month", "year")]
    told_apart = bool(_names(text)) or bool(_POSSESSIVE.search(text)) or len(counted) > 1
    return told_apart or any(token in _TURNING for token in tokens)


def _stems(text: str) -> Iterator[str]:
    """With the marks of quantities, as they come."""
    for token in _TOKEN_OR_MARK.findall(text.lower()):
        if token not in _FILLERS:
            yield stem_of(token)


def _names(text: str) -> frozenset[str]:
    """Words with a capital inside a sentence. A text all in capitals tells nothing by them."""
    words = [(word[0], word.start()) for word in _TOKEN.finditer(text) if _may_be_name(word[0])]
    inner = [word for word, start in words if word[0].isupper() and not _begins(text, start)]
    if len(words) > 2 and len(inner) >= len(words) - 1:
        return frozenset()
    return frozenset(stem_of(word.lower()) for word in inner)


def _begins(text: str, start: int) -> bool:
    """Whether a sentence, or what follows a colon, begins there."""
    before = text[max(0, start - 4) : start].rstrip(" \"'(*-")
    return not before or before[-1] in ".:;!?"


def _may_be_name(word: str) -> bool:
    known = word.lower()
    no_name = known in _FILLERS or known in _NO_NAMES or _is_weekday(known)
    return len(word) > 1 and word[0].isalpha() and not no_name


def _weekdays(tokens: Sequence[str]) -> frozenset[str]:
    return frozenset(stem_of(token) for token in tokens if _is_weekday(token))


def _is_weekday(token: str) -> bool:
    return token.removesuffix("s").removesuffix("day") in _WEEKDAYS and "day" in token
