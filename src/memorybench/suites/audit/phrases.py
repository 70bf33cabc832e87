"""What follows a verb, cut into phrases by what each of them tells."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from .lexicon import ADVERBS, CLAUSE_OPENERS, PLACE_MARKERS, PLACE_VERBS, PREPOSITIONS, RELATIONAL, TIME_WORDS
from .verbs import BASES, base_form, is_gerund, is_participle, is_past, is_third_person
from .words import MONTHS, NUMBERS, WEEKDAYS

Kind = Literal["object", "place", "time", "frequency", "duration", "reason", "with", "clause"]

_UNITS_OF_TIME = (
    "second|minute|hour|day|night|week|weekend|month|year|decade|season|semester|quarter|evening|morning|afternoon"
)
_NUMBER = rf"(?:\d[\d.,]*|{'|'.join(NUMBERS)}|a|an|several|many|few|couple of)"
DATE = re.compile(
    rf"\b(?:{'|'.join((*MONTHS, *WEEKDAYS))}|spring|summer|autumn|fall|winter|christmas|easter|midnight|noon"
    rf"|(?:19|20)\d\d"
    rf"|(?:1[0-9]|20)\d0s|(?:{_UNITS_OF_TIME})s?|\d{{1,2}}(?::\d\d)?\s*(?:am|pm|a\.m\.|p\.m\.)|\d{{1,2}}:\d\d|o'clock"
    rf"|\d{{4}}-\d\d-\d\d|q[1-4]|age|yesterday|today|tomorrow|tonight|weekends|(?:{'|'.join(WEEKDAYS)})s)\b",
    re.IGNORECASE,
)
_DURATION = re.compile(
    rf"^(?:about |over |almost |nearly |more than |at least )?{_NUMBER}(?: and a half)? (?:{_UNITS_OF_TIME})s?\b", re.I
)
_FREQUENCY = re.compile(
    rf"^(?:every|each|daily|weekly|monthly|yearly|twice|once|{_NUMBER} times) ?|(?:a|per|each) (?:{_UNITS_OF_TIME})$",
    re.I,
)


_SPAN = rf"times\b|(?:{_UNITS_OF_TIME})s? ago\b"
_NUMBERED = re.compile(rf"\d+|{'|'.join(NUMBERS)}|several|many|a few")


@dataclass(frozen=True, slots=True)
class Phrase:
    """What follows a verb: its object, or words after a preposition."""

    kind: Kind
    marker: str
    text: str

    @property
    def whole(self) -> str:
        return f"{self.marker} {self.text}".strip()


def bare(token: str) -> str:
    """The word without what is put around it."""
    return token.strip(",;:\"'").lower()


def phrases(rest: str, main: str) -> tuple[Phrase, ...]:
    """Cuts what follows a verb at prepositions and words of time. A clause within takes all that comes after it."""
    chunks: list[list[str]] = [[]]
    tokens = rest.split()
    for place, token in enumerate(tokens):
        word = bare(token) if token[0].islower() or token[0].isdigit() or not place else token
        if place and _begins(word, tokens, place):
            chunks.append([])
        if _opens_clause(word, tokens, place):
            return _phrases(chunks, main) + _clause(tokens[place:])
        chunks[-1].append(token)
        if token.endswith((",", ";", ":")) and place + 1 < len(tokens) and not _is_list(tokens, place):
            return _phrases(chunks, main) + _clause([",", *tokens[place + 1 :]])
    return _phrases(chunks, main)


def _phrases(chunks: list[list[str]], main: str) -> tuple[Phrase, ...]:
    found: list[Phrase] = []
    for phrase in (phrase for chunk in chunks if chunk and (phrase := _phrase(chunk, main))):
        if found and _belongs(phrase, found[-1]):
            found[-1] = Phrase(found[-1].kind, found[-1].marker, f"{found[-1].text} {phrase.whole}")
        else:
            found.append(phrase)
    return tuple(found)


_ATTACHED = ("for", "to", "about", "from", "in", "with", "between", "on", "at", "into", "near", "behind", "by")
_NEAR = ("about", "from", "in", "at", "near", "between", "behind", "among")


def _belongs(phrase: Phrase, before: Phrase) -> bool:
    """Whether it says which one is meant: the keys to the house, a shelter in Leeds, making a difference in a life."""
    if phrase.kind not in ("place", "with"):
        return False
    last = bare(before.text.split()[-1])
    if before.kind == "object":
        gerund = is_gerund(bare(before.text.split()[0])) and phrase.marker != "as"
        longer = re.search(r" (?:on|to|for|about|from) ", before.text) is not None and phrase.marker in _NEAR
        return gerund or longer or (last in RELATIONAL and phrase.marker in _ATTACHED)
    if before.kind not in ("place", "with") or before.marker in ("with", "by", "as"):
        return False
    return phrase.marker in _NEAR or (last in RELATIONAL and phrase.marker in _ATTACHED)


def _opens_clause(word: str, tokens: list[str], place: int) -> bool:
    after = bare(tokens[place + 1]) if place + 1 < len(tokens) else ""
    if word in CLAUSE_OPENERS:
        return True
    if word == "and":
        if after in ADVERBS and place + 2 < len(tokens):
            after, place = bare(tokens[place + 2]), place + 1
        return _finite_after(after, tokens, place) or after in ("i", "they", "he", "she", "it", "now", "is", "was")
    if place and (word == "like" or (word == "such" and after == "as")):
        return True
    if word in ("due", "thanks") and after == "to":
        return True
    if place and is_participle(word) and word.endswith("ed") and after in PREPOSITIONS:
        before = bare(tokens[place - 1])
        return before not in ADVERBS and before not in ("and", "be", "being", "get", "not", "very")  # a card sent by
    if word == "as":
        if after in ("his", "her", "their", "its", "the"):
            return any(bare(token) in ("is", "are", "was", "were") for token in tokens[place + 2 : place + 5])
        return after in ("he", "she", "they", "it", "well", "i", "a") and (after != "a" or _way(tokens, place))
    return word == "to" and after in BASES and base_form(after) == after


def _finite_after(word: str, tokens: list[str], place: int) -> bool:
    """and uses it, and bought a car: but not and plans, and books at the end of a list."""
    if is_past(word) and word not in BASES:
        return True
    follows = bare(tokens[place + 2]) if place + 2 < len(tokens) else ""
    if word in BASES and base_form(word) == word:
        return follows in ("a", "an", "the", "his", "her", "their", "it", "them")
    return is_third_person(word) and bool(follows)


def _way(tokens: list[str], place: int) -> bool:
    """as a way to relax: half of a thought."""
    return any(bare(token) in ("way", "means", "chance", "reminder") for token in tokens[place + 2 : place + 4])


def _clause(tokens: list[str]) -> tuple[Phrase, ...]:
    first = bare(tokens[0])
    body = tokens[1:]
    if first in ("due", "thanks"):
        first, body = "because", tokens[2:]
    if first == "because" and body[:1] == ["of"]:
        body = body[1:]
    text = " ".join(body).strip(" ,;")
    return (Phrase("reason" if first == "because" else "clause", first, text),) if text else ()


def _begins(word: str, tokens: list[str], place: int) -> bool:
    before = bare(tokens[place - 1])
    if word in ("once", "twice"):
        return before not in ("at", "least", "than")
    if _NUMBERED.fullmatch(word) and re.match(_SPAN, " ".join(tokens[place + 1 :])):
        return True
    if word == "this":
        return place + 1 < len(tokens) and DATE.fullmatch(bare(tokens[place + 1])) is not None
    if word in TIME_WORDS and (before in PREPOSITIONS or before == "once"):
        return False  # in every app
    if word in TIME_WORDS:
        return word not in ("ago", "each") or before not in ("support", "know", "of")
    if word in PREPOSITIONS:
        return before not in PREPOSITIONS and before not in ("and", "or", "such", "well", "up")
    return False


def _is_list(tokens: list[str], place: int) -> bool:
    """Whether the comma stands in a list: `hiking, chess and baking`."""
    later = tokens[place + 1 :]
    first, second = bare(later[0]), bare(later[1]) if len(later) > 1 else ""
    if (
        tokens[place].endswith((";", ":"))
        or first in CLAUSE_OPENERS | PREPOSITIONS
        or first in ("after", "since", "not", "both", "even", "they", "he", "she", "most", "rated")
    ):
        return False
    if first in ("and", "or"):
        return not (is_third_person(second) or is_past(second) or second in ("they", "he", "she", "it"))
    if is_gerund(first) or first.endswith("ed"):
        return is_gerund(first) and any(is_gerund(bare(tokens[at])) for at in (0, place))
    return bool(re.match(r"(?:[\w'\"-]+ ){0,4}[\w'\"-]+(?:,| and | or )", " ".join(later) + " "))


def _phrase(chunk: list[str], main: str) -> Phrase | None:
    text = " ".join(chunk).strip(" ,;")
    first = bare(chunk[0])
    if first in ("every", "each", "twice", "once", "daily", "weekly", "monthly", "yearly"):
        return Phrase("frequency", "", text)
    if first in TIME_WORDS or (first == "this" and DATE.match(text.partition(" ")[2])):
        return Phrase("time", "", text)
    if first in PREPOSITIONS and len(chunk) > 1:
        body = text.split(" ", 1)[1]
        return Phrase(_sort(first, body, main), first, body)
    if first in PREPOSITIONS:
        return None
    if re.search(r"\bago$", text) and _DURATION.match(text):
        return Phrase("time", "", text)
    if _DURATION.match(text) and main not in ("have", "own", "be", "need", "spend"):
        return Phrase("frequency" if _FREQUENCY.search(text) else "duration", "", text)
    if _FREQUENCY.match(text) and re.search(_UNITS_OF_TIME, text):
        return Phrase("frequency", "", text)
    return Phrase("object", "", text)


def _tells_date(body: str) -> bool:
    """In the evening, on 1 May at noon: but not in evening classes."""
    dated = DATE.search(body)
    return dated is not None and not re.match(
        r"s? (?!of|and|in|at|on|to|or|morning|evening|night|\d)[a-z]", body[dated.end() :]
    )


def _sort(marker: str, body: str, main: str) -> Kind:
    dated = _tells_date(body)
    if marker in ("since", "until", "during") or (
        marker in ("in", "on", "at", "after", "before", "by", "around", "from") and dated
    ):
        if marker in ("after", "before", "since") and not dated:
            return "clause"
        return "time"
    if marker == "for" and _DURATION.match(body):
        return "duration"
    if marker == "for" and dated and re.match(r"(?:over|almost|the past|about)", body):
        return "duration"
    if marker in PLACE_MARKERS and _is_place(marker, body, main):
        return "place"
    return "with"


_ON_WHAT = frozenset(("go", "work", "travel", "return", "move"))


def _is_place(marker: str, body: str, main: str) -> bool:
    if (marker == "on" and main in _ON_WHAT) or re.match(r"[\d$€£]", body):
        return False  # on a trip, at 3.2%
    if marker == "to" and re.match(r"(?:an? |the )?(?:[\w-]+ )?(?:trip|tour|journey|walk|event|party|concert)\b", body):
        return False
    if marker in ("on", "from", "to") and main not in PLACE_VERBS | {"come", "run", "swim", "bike", "cycle", "hike"}:
        return False
    return (
        main in PLACE_VERBS
        or bool(re.match(r"(?:the |a |an )?[A-Z]", body))
        or marker in ("near", "outside", "inside", "at")
    )
