"""One statement taken apart: whom it is about, its verb, and the phrases that follow."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .lexicon import ADVERBS, CATENATIVES
from .phrases import Phrase, bare, phrases
from .subjects import MODALS, USER, is_plural
from .verbs import BASES, base_form, is_gerund, is_participle, is_past


@dataclass(frozen=True, slots=True)
class Clause:
    subject: str
    """As a question names it: `the user`, `the user's sister`, `Anna`."""
    front: str
    """The verb that goes before the subject in a question: does, did, is, has, will."""
    verb: str
    """The words between subject and phrases in a question: `not eat`, `plan to visit`, `` after a plain is."""
    main: str
    """The base of its last verb."""
    phrases: tuple[Phrase, ...]
    predicate: str
    """All that is said of the subject, as it was said."""


def read_clause(subject: str, predicate: str) -> Clause | None:
    """None: its verb is not known."""
    tokens = predicate.split()
    adverbs = 0
    while tokens and bare(tokens[0]) in ADVERBS:
        tokens.pop(0)
        adverbs += 1
    if not tokens:
        return None
    found = _verb(tokens, subject)
    if found is None:
        return None
    front, verb, main, used = found
    if is_plural(subject):
        front = {"does": "do", "is": "are", "was": "were", "has": "have"}.get(front, front)
    return Clause(subject, front, verb, main, phrases(" ".join(tokens[used:]), main), predicate)


def _is_adverb(word: str) -> bool:
    return word in (*ADVERBS, "not", "never") or (word.endswith("ly") and len(word) > 6 and word not in BASES)


_NOUNS_TOO = frozenset(("read", "set", "cut", "cost", "put", "run", "bed", "hundred", "seed", "wooded", "red"))
_ROUTES = frozenset(("school", "university", "college", "work", "church", "bed"))


def _verb(tokens: list[str], subject: str) -> tuple[str, str, str, int] | None:
    """Front, verb phrase, base of the main verb, and how many words these take."""
    first = bare(tokens[0])
    place = 1
    said: list[str] = []

    def skip_adverbs() -> None:
        nonlocal place
        while place < len(tokens) and _is_adverb(bare(tokens[place])):
            if bare(tokens[place]) in ("not", "never"):
                said.append(bare(tokens[place]))
            place += 1

    if first == "never" and len(tokens) > 1:
        inner = _verb(tokens[1:], subject)
        return inner and (inner[0], f"never {inner[1]}".strip(), inner[2], inner[3] + 1)
    if first in ("is", "are", "was", "were", "am"):
        front = (
            {"am": "is"}.get(first, first)
            if subject != USER
            else {"am": "is", "are": "is", "were": "was"}.get(first, first)
        )
        skip_adverbs()
        word = bare(tokens[place]) if place < len(tokens) else ""
        if is_gerund(word) or (is_participle(word) and place + 1 < len(tokens)):
            said.append(word)
            main = base_form(word)
            place += 1
            return _extended(front, said, main, tokens, place)
        return front, " ".join(said), "be", place
    if first in ("has", "have", "had"):
        skip_adverbs()
        word = bare(tokens[place]) if place < len(tokens) else ""
        front = "has" if first == "have" and subject == USER else first
        if word == "been" and place + 1 < len(tokens):
            after = bare(tokens[place + 1])
            said.append("been")
            if is_gerund(after) or is_participle(after):
                said.append(after)
                return _extended(front, said, base_form(after), tokens, place + 2)
            return front, " ".join(said), "be", place + 1
        if (is_participle(word) or re.fullmatch(r"[a-z]{3,}ed", word)) and word not in _NOUNS_TOO:
            return _extended(front, [*said, word], base_form(word), tokens, place + 1)
        return _extended("did" if first == "had" else "does", [*said, "have"], "have", tokens, place)
    if first in ("does", "do", "did"):
        skip_adverbs()
        if place < len(tokens) and base_form(bare(tokens[place])) in BASES:
            base = base_form(bare(tokens[place]))
            return _extended("did" if first == "did" else "does", [*said, base], base, tokens, place + 1)
        return "did" if first == "did" else "does", "do", "do", 1
    if first in MODALS:
        skip_adverbs()
        if place < len(tokens) and base_form(bare(tokens[place])) in BASES:
            return _extended(first, [*said, bare(tokens[place])], base_form(bare(tokens[place])), tokens, place + 1)
        return None
    base = base_form(first)
    if base not in BASES:
        base = _guessed(first) or ""
    if not base:
        return None
    if base == "use" and first == "used" and len(tokens) > 1 and bare(tokens[1]) == "to":
        return _extended("did", ["use"], "use", tokens, 1)
    front = "did" if is_past(first) or (first.endswith("ed") and first not in BASES) else "does"
    return _extended(front, [base], base, tokens, 1)


def _guessed(word: str) -> str | None:
    """The base of a verb we do not know, by its ending."""
    if word.endswith("ed") and len(word) > 4:
        return word[:-2] if not word.endswith(("ced", "sed", "zed", "ged", "ved", "ued", "red", "ted")) else word[:-1]
    if word.endswith("s") and len(word) > 4 and not word.endswith(("ss", "us")):
        return word[:-1]
    return None


def _extended(front: str, said: list[str], main: str, tokens: list[str], place: int) -> tuple[str, str, str, int]:
    """Adds `to visit` after plans, `swimming` after loves, `to be`; so that the question asks for what comes last."""
    while place + 1 < len(tokens) and main in CATENATIVES | {"be"}:
        word, after = bare(tokens[place]), bare(tokens[place + 1])
        if word == "to" and (base_form(after) == after and after in BASES) and place + 2 < len(tokens):
            said += ["to", after]
            main, place = after, place + 2
        elif is_participle(word) if main == "get" else main in CATENATIVES - {"have"} and is_gerund(word):
            said.append(word)
            main, place = base_form(word), place + 1
        else:
            break
    route = [bare(token) for token in tokens[place : place + 2]]
    if main == "go" and route[:1] == ["to"] and route[-1] in _ROUTES:
        said += route
        place += 2
    particles = ("up", "out", "off", "down", "away", "back", "over")
    if place < len(tokens) and bare(tokens[place]) in particles and main not in ("be", "have"):
        said.append(bare(tokens[place]))
        place += 1
    return front, " ".join(said), main, place
