"""Whom a statement is about, and what it says of them, as a third person would put it."""

from __future__ import annotations

import re

from .phrases import bare
from .verbs import BASES, is_past, is_third_person

USER = "the user"
MODALS = ("will", "would", "can", "could", "should", "must", "may", "might", "shall")
_SPELLED_OUT = (
    (r"\bI'm\b", "I am"),
    (r"\bwe're\b", "we are"),
    (r"\b(I|we)'ve\b", r"\1 have"),
    (r"\b(I|we)'ll\b", r"\1 will"),
    (r"\b(I|we)'d\b", r"\1 would"),
    (r"\b(is|are|was|were|has|have|had|do|does|did|would|could|should)n't\b", r"\1 not"),
    (r"\bcan't\b|\bcannot\b", "can not"),
    (r"\bwon't\b", "will not"),
)
_PERSONS = (
    (r"\b(?:my|our|your|the user's)\b", "their"),
    (r"\b(?:me|us)\b", "them"),
    (r"\bmyself\b", "themselves"),
    (r"\bmine\b", "theirs"),
    (r"\bI am\b", "they are"),
    (r"\b(?:I|we)\b", "they"),
)


def tidy(text: str) -> str:
    text = " ".join(text.replace("’", "'").replace("–", "-").split()).strip(" -•*")
    text = re.sub(r"\s*\([^)]*\)", "", text)
    for pattern, put in _SPELLED_OUT:
        text = re.sub(pattern, put, text, flags=re.IGNORECASE)
    return text.rstrip(" .!;")


def third_person(text: str) -> str:
    """The user's own words as said of the user."""
    for pattern, put in _PERSONS:
        text = re.sub(pattern, put, text)  # a capital makes it a name: `Among Us`
    return text


def split_subject(text: str) -> tuple[str, str] | None:
    """Whom a tidy statement is about, and what it says of them; None: no subject is seen."""
    if opening := re.match(
        r"(?:(?:In|On|At|Since|During|Last|Every|Before|After|As of) [^,]{2,40}|Currently|Recently|Now), (?=\S)", text
    ):
        text = f"{text[opening.end() :]} {opening[0][0].lower()}{opening[0][1:].rstrip(', ')}"
    if own := re.match(r"(?:(?:The )?[Uu]ser|I|[Ww]e|He|She|They)\b(?!['-])\s+", text):
        return USER, third_person(text[own.end() :])
    text = re.sub(r"^(?:The )?[Uu]ser's\b|^(?:My|Our|His|Her|Their)\b", f"{USER}'s", text)
    tokens = text.split()
    first = bare(tokens[0]) if tokens else ""
    if first and text[0].isupper() and _opens_predicate(first, tokens):
        return USER, third_person(text[0].lower() + text[1:])
    for place in range(1, min(len(tokens), 14)):
        word = bare(tokens[place])
        if _is_finite(word, tokens, place):
            subject = " ".join(tokens[:place]).rstrip(",")
            if not _nameable(subject):
                return None
            return _named(subject), third_person(" ".join(tokens[place:]))
    return None


def _opens_predicate(first: str, tokens: list[str]) -> bool:
    """Works as…, Allergic to…, Married to…: a statement whose subject goes without saying."""
    second = bare(tokens[1]) if len(tokens) > 1 else ""
    if is_third_person(first) or first in ("does", "never"):
        return not (_is_finite(second, tokens, 1) and not second.endswith("ing"))
    return (
        first in ("allergic", "afraid", "interested", "vegetarian", "vegan", "fluent")
        or (first in ("married", "engaged", "born", "raised", "based") and second in ("to", "in", "on", "near"))
        or (is_past(first) and second in ("to", "in", "a", "an", "the", "from", "at", "their", "his", "her"))
    )


def _is_finite(word: str, tokens: list[str], place: int) -> bool:
    if word in ("is", "are", "was", "were", "has", "have", "had", "does", "did", *MODALS):
        return True
    before = tokens[place - 1].lower()
    if before in ("the", "a", "an", "of", "his", "her", "their", "and") or before.endswith("'s"):
        return False
    if before.endswith("s") and word in BASES and not is_third_person(before):
        return True  # the twins play
    named = place == 1 and tokens[0][0].isupper() and not tokens[0].endswith("'s")
    return is_third_person(word) or is_past(word) or (named and word.endswith(("ed", "es")) and word.isalpha())


def _nameable(subject: str) -> bool:
    return not re.match(r"(?:there|it|this|that|what|if|when|a|an)\b", subject, re.IGNORECASE) and "," not in subject


def _named(subject: str) -> str:
    subject = re.sub(r"\b[Mm]y\b|\b[Oo]ur\b|\b[Tt]he [Uu]ser's\b", f"{USER}'s", subject)
    return re.sub(r"^The\b", "the", subject)
