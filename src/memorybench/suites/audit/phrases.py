"""What follows a verb, cut into phrases by what each of them tells."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from .lexicon import CLAUSE_OPENERS, PLACE_MARKERS, PLACE_VERBS, PREPOSITIONS, TIME_WORDS
from .verbs import BASES, base_form, is_past, is_third_person
from .words import MONTHS, NUMBERS, WEEKDAYS

Kind = Literal["object", "place", "time", "frequency", "duration", "reason", "with", "clause"]

_UNITS_OF_TIME = (
    "second|minute|hour|day|night|week|weekend|month|year|decade|season|semester|quarter|evening|morning|afternoon"
)
_NUMBER = rf"(?:\d[\d.,]*|{'|'.join(NUMBERS)}|a|an|several|many|few|couple of)"
_DATE = re.compile(
    rf"\b(?:{'|'.join((*MONTHS, *WEEKDAYS))}|spring|summer|autumn|fall|winter|christmas|easter|midnight|noon|\d{{4}}"
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
        if token.endswith((",", ";")) and place + 1 < len(tokens) and not _is_list(tokens, place):
            return _phrases(chunks, main) + _clause([",", *tokens[place + 1 :]])
    return _phrases(chunks, main)


def _phrases(chunks: list[list[str]], main: str) -> tuple[Phrase, ...]:
    return tuple(phrase for chunk in chunks if chunk and (phrase := _phrase(chunk, main)))


def _opens_clause(word: str, tokens: list[str], place: int) -> bool:
    after = bare(tokens[place + 1]) if place + 1 < len(tokens) else ""
    if word in CLAUSE_OPENERS:
        return True
    if word == "and":
        return is_third_person(after) or is_past(after) or after in ("i", "they", "he", "she", "now", "is", "was")
    if word in ("due", "thanks") and after == "to":
        return True
    return word == "to" and after in BASES and base_form(after) == after


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
        return True
    if word in TIME_WORDS:
        return word not in ("ago", "each") or before not in ("support", "know", "of")
    if word in PREPOSITIONS:
        return before not in PREPOSITIONS and before not in ("and", "or", "such", "well", "up")
    return False


def _is_list(tokens: list[str], place: int) -> bool:
    """Whether the comma stands in a list: `hiking, chess and baking`."""
    later = " ".join(tokens[place + 1 :])
    return bool(re.match(r"(?:[\w'-]+ ){0,3}[\w'-]+(?:,| and | or )", later + " ")) and not re.match(
        r"(?:which|who|where|so|but|and (?:is|was|has)|because|after|since|especially)\b", later
    )


def _phrase(chunk: list[str], main: str) -> Phrase | None:
    text = " ".join(chunk).strip(" ,;")
    first = bare(chunk[0])
    if first in ("every", "each", "twice", "once", "daily", "weekly", "monthly", "yearly"):
        return Phrase("frequency", "", text)
    if first in TIME_WORDS:
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


def _sort(marker: str, body: str, main: str) -> Kind:
    dated = _DATE.search(body)
    if marker in ("since", "until", "during") or (
        marker in ("in", "on", "at", "after", "before", "by", "around") and dated
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


def _is_place(marker: str, body: str, main: str) -> bool:
    if marker in ("on", "from", "to") and main not in PLACE_VERBS | {"come", "run", "swim", "bike", "cycle", "hike"}:
        return False
    return (
        main in PLACE_VERBS
        or bool(re.match(r"(?:the |a |an )?[A-Z]", body))
        or marker in ("near", "outside", "inside", "at")
    )
