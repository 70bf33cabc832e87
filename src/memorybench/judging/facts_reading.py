"""What a fact says, as far as code can tell: its words, quantities and names, and which of them are denied or in doubt.

A denial or a doubt holds for its whole clause, before and after the word that makes it: "no subscription model" and
"subscription model not wanted" deny the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from memorybench.text.fact_stems import stem_of
from memorybench.text.normalisation import plain
from memorybench.text.stop_words import FACT_STOP_WORDS as FILLERS

from .facts_quantities import FIXED, MONTH_SIGNS, MONTHS, Quantity, taken_out
from .facts_signs import Signs, rewritten, rule, rules, signs_of

DENIED, DOUBTED = "¬", "?"
_MODES = DENIED + DOUBTED

_STRAIGHT = str.maketrans("‘’“”–—−⁄İı", "''\"\"---/Ii")  # patterns that ignore case take both of the last for an i
_REWRITTEN = rules(
    rule("'", r"\bwon't\b", "will not"),
    rule("' cannot", r"\bcan(?:'t|not)\b", "can not"),
    rule("'", r"(?<=\w)n't\b", " not"),
    rule("'", r"(?<=\w)'(?:s|re|ve|ll|d|m)?\b", ""),
    rule("unable", r"\bunable to\b", "can not"),
    rule("not", r"(?<=\bnot )want(?:s|ed)?\b(?: to\b)?", ""),  # who does not want it will have none
    rule("no not", r"\bno longer\b|\bnot any ?more\b", "not"),
    rule("not", r"\bnot only\b", "also"),
    rule("not undecided", r"\bnot (?:yet )?(?:sure|certain|decided)\b|\bundecided\b", "unsure"),
    rule("no not up", r"\bnot? more than\b|\bup to\b|\bno later than\b", "at most"),
    rule("no not", r"\bnot? (?:less|fewer) than\b", "at least"),
    rule("dislike dislikes disliked disliking", r"\bdislik(?:e|es|ed|ing)\b", "not like"),
    rule("exclusively solely", r"\b(?:exclusively|solely)\b", "only"),
    rule("e", r"\be-mail", "email"),
    rule("non", r"\bnon-(?=\w)", "not "),
    rule("half", r"\ban?\s+hour\s+and\s+a\s+half\b", "90 minutes"),
    rule("half", r"\bhalf(?:\s+an)?[\s-]hour\b", "30 minutes"),
    rule("quarters", r"\b(?:three|3)[\s-]quarters\s+of\s+an\s+hour\b", "45 minutes"),
    rule("fewer", r"\bfewer\b", "less"),
    rule("hour hours", r"(?:\b(?:per|an?|each|every)\s+|/\s?)hours?\b", " hourly"),
    rule("day days", r"(?:\b(?:per|a|each|every)\s+|/\s?)days?\b", " daily"),
    rule("week weeks wk", r"(?:\b(?:per|a|each|every)\s+|/\s?)(?:weeks?|wk)\b", " weekly"),
    rule("month months mo", r"(?:\b(?:per|a|each|every)\s+|/\s?)(?:months?|mo)\b", " monthly"),
    rule(
        "year years yr annual annually annum",
        r"(?:\b(?:per|a|each|every)\s+|/\s?)(?:years?|yr)\b|\bannual(?:ly)?\b|\bper annum\b",
        " yearly",
    ),
)
_REWRITING = _REWRITTEN.needs | FIXED.needs
_GLUED = re.compile(r"\d[A-Za-z]")
_CLAUSES = re.compile(
    r"[;!?()\n]|\.(?=\s|$)|,(?=\s)|\s-\s|\b(?:but|although|though|whereas|while)\b"
    r"|\band\s+(?=(?:\w+\s+){0,2}(?:not|no|never|without)\b)|\bnor\b|(?=\b(?:rather than|instead of)\b)",
    re.IGNORECASE,
)
_BREAKING = "but although though whereas while and nor rather instead"
_CLAUSE_SIGNS = frozenset((*";!?()\n.,-", *_BREAKING.split()))
_ENDS = frozenset(";!?.")
_DENIALS = rule(
    """
    not no never none nobody nothing neither without rather instead against avoid avoids avoided avoiding
    refuse refuses refused refusing reject rejects rejected rejecting decline declines declined declining
    stopped quit lack lacks ruled rules excluded
    """,
    r"\b(?:not|no|never|none|nobody|nothing|neither|without|rather than|instead of|against"
    r"|avoid(?:s|ed|ing)?|refus(?:e|es|ed|ing)|reject(?:s|ed|ing)?|declin(?:e|es|ed|ing)|stopped|quit|lacks?"
    r"|rule[ds] out|(?:is|are) excluded)\b",
    " ",
)
_DOUBTS = rule(
    """
    maybe perhaps possibly probably potentially tentative tentatively might could unsure if
    consider considers considered considering explores exploring think thinks thinking open may
    """,
    r"\b(?:maybe|perhaps|possibly|probably|potentially|tentative(?:ly)?|might|could|unsure|if"
    r"|consider(?:s|ed|ing)?|explor(?:es|ing)|think(?:s|ing)? (?:about|of)|open to|(?-i:may))\b",
    " ",
)
_MODAL_SIGNS = _DENIALS.needs | _DOUBTS.needs
_SUBJECT = re.compile(r"^\W*(?:the\s+user|user|they|he|she|i|we|my|our|their)\b\s*", re.IGNORECASE)
_SUBJECTS = frozenset(("user", "they", "he", "she", "i", "we", "my", "our", "their"))
_TOKEN = re.compile(r"[^\W_]+")
_TOKEN_OR_MARK = re.compile(
    r"[\U000f0000-\U000ffffd]|~|\+(?<=[\U000f0000-\U000ffffd] \+)|[^\W_]+(?:\+\+?(?!\w)|#|-(?<=\b[a-f]-)(?=\s|$))?"
)
"""A word with what sets C++ apart from C and A+ from A-; a mark; and the `+` or `~` of a number."""
_DIRECTIONS = frozenset(("from", "to", "than", "over", "before", "after", "under", "above", "below"))
_TURNING = _DIRECTIONS | {"by", "of", "for"}
"""Words that tell who does what to whom: with them, another order may be another fact."""
_POSSESSIVE = re.compile(r"\w's\s|s'\s")
_WEEKDAYS = frozenset(("mon", "tues", "wednes", "thurs", "fri", "satur", "sun"))
_NO_NAMES = frozenset((*MONTHS, "eur", "usd", "gbp", "chf", "jpy", "inr"))


class Reading(NamedTuple):
    text: str
    """In lower case, without punctuation at the ends and double blanks."""
    words: tuple[str, ...]
    """Stems of the words that carry meaning, in their order, each with its mode before it: `¬` denied, `?` in doubt."""
    said: frozenset[str]
    """The same, each once."""
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
    marked: bool
    """Something in it is denied or in doubt."""
    tokens: tuple[str, ...] | None
    """As `tokens_of` its text, where the reading came across all of them: it need not be taken apart once more."""

    @property
    def empty(self) -> bool:
        return not self.words and not self.quantities

    @property
    def modes(self) -> Mapping[str | Decimal, frozenset[str]]:
        """By stem, and by the value of a quantity."""
        modes: dict[str | Decimal, set[str]] = {}
        for word in self.words:
            modes.setdefault(bare(word), set()).add(word[: len(word) - len(bare(word))])
        for quantity in self.quantities:
            modes.setdefault(quantity.value, set()).add(quantity.mode)
        return {thing: frozenset(found) for thing, found in modes.items()}


def bare(word: str) -> str:
    """A stem without its mode."""
    return word.lstrip(_MODES)


def denies(text: str) -> bool:
    told, signs = rewritten(text, signs_of(text), _REWRITTEN)
    return not _DENIALS.absent(signs) and _DENIALS.said.search(told) is not None


def turned(text: str) -> str:
    """The text with its first denial taken out, or denied where it has none."""
    if denies(text):
        told, _ = rewritten(text, signs_of(text), _REWRITTEN)
        return " ".join(_DENIALS.said.sub("", told, count=1).split())
    return f"Not {text}"


@lru_cache(maxsize=2_000)
def reading_of(written: str) -> Reading:
    said = plain(written)
    if not said.isascii():
        said = said.translate(_STRAIGHT)
    lowered, signs = said.lower(), signs_of(said)
    words: list[str] = []
    order: list[str] = []
    quantities: list[Quantity] = []
    marked = False
    tokens: list[str] | None = None
    for mode, rest, found, whole in _clauses(said, signs):
        told = _tokens(rest, found)
        things = [stem_of(token) for token in told if token not in FILLERS]
        if mode and things:
            marked = True
            things = [thing if thing in found else mode + thing for thing in things]
        if found:
            quantities += [quantity._replace(mode=mode) for quantity in found.values()] if mode else found.values()
            words += [thing for thing in things if thing not in found]
            values = {mark: str(quantity.value) for mark, quantity in found.items()}
            things = [values.get(thing, thing) for thing in things]
            told = [values.get(token, token) for token in told]
        else:
            words += things
        order += things
        if whole:
            tokens = told
    text = " ".join(lowered.split()).strip(" .,;:!\"'")
    if text != lowered or not said.isascii() or not MONTH_SIGNS.isdisjoint(signs):
        tokens = None  # without its ends, or without the capital that makes a month of May, it might be read otherwise
    each = frozenset(words)
    names = _names(said) if said[1:] != lowered[1:] else frozenset()  # a capital but the first
    return Reading(
        text=text,
        words=tuple(words),
        said=each,
        stems=frozenset(map(bare, each)) if marked else each,
        quantities=frozenset(quantities),
        names=names.union(_weekdays(signs)) if "day" in lowered else names,
        order=tuple(order),
        directions=_DIRECTIONS & signs,
        turns=_turns(said, signs, names, quantities),
        marked=marked,
        tokens=None if tokens is None else tuple(tokens),
    )


@lru_cache(maxsize=2_000)
def glance_of(text: str) -> frozenset[str] | None:
    """Stems among which are all of a text's that are made of letters; None: it takes a reading to tell.

    A tenth of the work of a reading. Letters right behind a figure may be a unit, or a word by themselves.
    """
    if not text.isascii() or _GLUED.search(text):
        return None
    signs = signs_of(plain(text))
    if not _REWRITING.isdisjoint(signs):
        return None
    return frozenset(map(stem_of, signs))


def _clauses(said: str, signs: Signs) -> list[tuple[str, str, Mapping[str, Quantity], bool]]:
    """Of each clause its mode, its words with marks for its quantities, these, and whether there is no more to it all:
    nothing but this clause, nothing left out."""
    all_told, signs = rewritten(said, signs, _REWRITTEN)
    subject = None if _SUBJECTS.isdisjoint(signs) else _SUBJECT.match(all_told)
    told = all_told[subject.end() :] if subject else all_told
    plainly = _MODAL_SIGNS.isdisjoint(signs)
    clauses: list[tuple[str, str, Mapping[str, Quantity], bool]] = []
    for clause in _split(told, signs):
        mode, stated = ("", clause) if plainly else _moded(clause, signs)
        clauses.append((mode, *taken_out(stated, signs), stated == all_told))
    return clauses


def _split(told: str, signs: Signs) -> Sequence[str]:
    """The clauses that are not empty."""
    breaks = _CLAUSE_SIGNS & signs
    if not breaks:
        return (told,)
    end = told[-1:]
    if end in _ENDS and breaks == {end} and told.index(end) == len(told) - 1:
        return (told[:-1],)  # one sentence: most that are split at all are no more than this
    return list(filter(None, _CLAUSES.split(told)))


def _moded(clause: str, signs: Signs) -> tuple[str, str]:
    """Its mode, and the clause without the words that deny or doubt."""
    denials = doubts = 0
    if not _DENIALS.absent(signs):
        clause, denials = _DENIALS.said.subn(_DENIALS.meant, clause)
    if not _DOUBTS.absent(signs):
        clause, doubts = _DOUBTS.said.subn(_DOUBTS.meant, clause)
    # "not without sugar" is with sugar
    return (DOUBTED if doubts else "") + (DENIED if denials % 2 else ""), clause


def _turns(text: str, signs: Signs, names: frozenset[str], quantities: Sequence[Quantity]) -> bool:
    if names or not _TURNING.isdisjoint(signs) or ("'" in text and _POSSESSIVE.search(text)):
        return True
    if len(quantities) < 2:
        return False
    return len([quantity for quantity in quantities if quantity.unit not in ("day", "month", "year")]) > 1


def tokens_of(text: str) -> list[str]:
    """All words of a text in lower case, also those that carry no meaning, and the values of its quantities."""
    told, signs = rewritten(text, signs_of(text), _REWRITTEN)
    told, found = taken_out(told, signs)
    return [str(found[token].value) if token in found else token for token in _tokens(told, found)]


def _tokens(text: str, found: Mapping[str, Quantity]) -> list[str]:
    """All words of a text in lower case, and the marks of quantities that were found in it."""
    lowered = text.lower()
    parts = lowered.split()
    # where every part is a word or a mark, there is nothing to look for
    return parts if "".join(set(parts).difference(found)).isalnum() else _TOKEN_OR_MARK.findall(lowered)


def _names(text: str) -> frozenset[str]:
    """Words with a capital inside a sentence. A text all in capitals tells nothing by them."""
    names: list[str] = []
    others = 0
    for found in _TOKEN.finditer(text):
        word = found[0]
        capital = word[0].isupper() and not _begins(text, found.start())
        if (capital or others < 2) and _may_be_name(word):  # two other words are enough to tell
            if capital:
                names.append(stem_of(word.lower()))
            else:
                others += 1
    return frozenset() if others < 2 < others + len(names) else frozenset(names)


def _begins(text: str, start: int) -> bool:
    """Whether a sentence, or what follows a colon, begins there."""
    before = text[max(0, start - 4) : start].rstrip(" \"'(*-")
    return not before or before[-1] in ".:;!?"


def _may_be_name(word: str) -> bool:
    known = word.lower()
    no_name = known in FILLERS or known in _NO_NAMES or _is_weekday(known)
    return len(word) > 1 and word[0].isalpha() and not no_name


def _weekdays(signs: Signs) -> frozenset[str]:
    return frozenset(stem_of(sign) for sign in signs if _is_weekday(sign))


def _is_weekday(token: str) -> bool:
    return "day" in token and token.removesuffix("s").removesuffix("day") in _WEEKDAYS
