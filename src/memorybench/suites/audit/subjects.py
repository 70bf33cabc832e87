"""Whom a statement is about, and what it says of them, as a third person would put it."""

from __future__ import annotations

import re

from .lexicon import ADVERBS, BELONGINGS, KIN, MASS_NOUNS, PETS, STATES
from .phrases import bare
from .verbs import BASES, is_gerund, is_past, is_third_person, third

USER = "the user"
MODALS = ("will", "would", "can", "could", "should", "must", "may", "might", "shall")
_SPELLED_OUT = (
    (r"\bI'm\b", "I am"),
    (r"\b(we|they)'re\b", r"\1 are"),
    (r"\b(I|we|they)'ve\b", r"\1 have"),
    (r"\b(I|we|they)'ll\b", r"\1 will"),
    (r"\b(I|we)'d\b", r"\1 would"),
    (r"\b(is|are|was|were|has|have|had|do|does|did|would|could|should)n't\b", r"\1 not"),
    (r"\bcan't\b|\bcannot\b", "can not"),
    (r"\bwon't\b", "will not"),
)
_PERSONS = (
    (r"\b(?:my|our|your|the user's)\b", "their"),
    (r"\b(?:me|us)\b(?!-)", "them"),
    (r"\bmyself\b", "themselves"),
    (r"\bmine\b", "theirs"),
    (r"\bI am\b", "they are"),
    (r"\b(?:I|we)\b", "they"),
)
_OPENING = re.compile(
    r"(?:(?:In|On|At|Since|During|Last|Every|Before|After|As of) [^,]{2,40}|Currently|Recently|Now), (?=\S)"
    r"|(?:Last|This|Next|Every) \w+ (?=(?:I|[Ww]e|(?:[Tt]he )?[Uu]ser)\b)"
)
_OWN = re.compile(r"(?:(?:The )?[Uu]ser|I|[Ww]e|[Hh]e|[Ss]he|[Tt]hey)\b(?!['-])\s+")
_POSSESSIVE = re.compile(r"^(?:The )?[Uu]ser's\b|^(?:[Mm]y|[Oo]ur|[Hh]is|[Hh]er|[Tt]heir)\b")
_AUXILIARIES = frozenset(("is", "are", "was", "were", "has", "have", "had", "does", "do", "did", *MODALS))
_PASSIVE = frozenset(("got", "was", "were", "is", "had", "has", "never", "can", "will", "would", "does", "did"))
_UNDER_WAY = frozenset(
    ("planning", "going", "hoping", "looking", "considering", "training", "learning", "studying", "saving", "moving")
)
_NO_NAME = re.compile(
    r"(?:one of|some|many|most|all|there|it|this|that|what|if|when|a|an|things?|stuff|something|everything|someone)\b",
    re.I,
)
_COUNTS = re.compile(r"two|three|four|five|six|seven|eight|nine|ten")
_LONGEST_SUBJECT = 12


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
    if opening := _OPENING.match(text):
        text = f"{text[opening.end() :]} {opening[0][0].lower()}{opening[0][1:].rstrip(', ')}"
    if own := _OWN.match(text):
        return USER, _of_one(third_person(text[own.end() :]))
    text = _POSSESSIVE.sub(f"{USER}'s", text)
    tokens = text.split()
    said = _said_of_user(tokens)
    if said is not None:
        return USER, third_person(said)
    finite = (place for place in range(1, min(len(tokens), _LONGEST_SUBJECT)) if _is_finite(tokens, place))
    place = next(finite, 0)
    while place > 1 and bare(tokens[place - 1]) in ADVERBS:
        place -= 1
    subject = _named(tokens[:place]) if place else None
    return None if subject is None else (subject, third_person(" ".join(tokens[place:])))


def _of_one(predicate: str) -> str:
    """What I or we do, as it is said of one other: am, have, work → is, has, works."""
    tokens = predicate.split()
    place = next((place for place, token in enumerate(tokens) if bare(token) not in ADVERBS), 0)
    word = tokens[place] if tokens else ""
    put = {"am": "is", "are": "is", "were": "was", "have": "has", "do": "does"}.get(word)
    if put is None and word in BASES and not (is_past(word) and word not in ("read", "put", "cut", "set", "run")):
        put = third(word)
    return " ".join((*tokens[:place], put or word, *tokens[place + 1 :]))


def _said_of_user(tokens: list[str]) -> str | None:
    """Works as…, Got promoted…, Allergic to…, Planning a trip…: a note whose subject goes without saying."""
    place = 0
    while place < len(tokens) and bare(tokens[place]) in ADVERBS:
        place += 1
    if place >= len(tokens) or (place == 0 and tokens[0].endswith("'s")):
        return None
    first = bare(tokens[place])
    follows = [bare(token) for token in tokens[place + 1 :] if bare(token) not in ADVERBS]
    second = follows[0] if follows else ""
    led = " ".join(token.lower() for token in tokens[:place])
    rest = " ".join((tokens[place].lower(), *tokens[place + 1 :]))
    if _COUNTS.fullmatch(first) and not any(_is_finite(tokens, at) for at in range(1, len(tokens))):
        return f"has {rest}"  # two cats, Salt and Pepper
    if first == "not" or first in STATES or " ".join((first, second)) in STATES:
        return f"is {led} {rest}".replace("  ", " ")
    if first in _UNDER_WAY and not any(bare(token) in ("is", "was", "has", "are") for token in tokens[1:]):
        return f"is {led} {rest}".replace("  ", " ")
    opens = is_third_person(first) or is_past(first) or first in _AUXILIARIES or first == "never"
    if not opens or (second in _AUXILIARIES and first not in _PASSIVE):
        return None
    if first not in _PASSIVE and (is_third_person(second) or (is_past(second) and second not in BASES)):
        return None
    return f"{led} {rest}".strip()


def _is_finite(tokens: list[str], place: int) -> bool:
    word = bare(tokens[place])
    if word in _AUXILIARIES:
        return True
    before = tokens[place - 1].lower()
    if before in ("the", "a", "an", "of", "his", "her", "their", "and") or before.endswith("'s"):
        return False
    if before.endswith("s") and word in BASES and not is_third_person(before):
        return True  # the twins play
    named = place == 1 and tokens[0][0].isupper() and not tokens[0].endswith("'s")
    return is_third_person(word) or is_past(word) or (named and word.endswith(("ed", "es")) and word.isalpha())


def _named(tokens: list[str]) -> str | None:
    """The subject as a question names it: with an owner or an article where a note leaves it out; None: no noun."""
    subject = " ".join(tokens).rstrip(",:")
    first, second = bare(tokens[0]), tokens[1] if len(tokens) > 1 else ""
    if (
        _NO_NAME.match(subject)
        or "," in subject
        or is_gerund(first)
        or tokens[-1].endswith(",")
        or any(bare(token) in ADVERBS for token in tokens)
    ):
        return None
    if re.match(r"[Tt]he\b|Dr\b|Mrs?\b|Ms\b", subject) or tokens[0].endswith("'s") or subject.startswith(USER):
        return re.sub(r"\b[Mm]y\b|\b[Oo]ur\b|\b[Tt]he [Uu]ser's\b", f"{USER}'s", re.sub(r"^The\b", "the", subject))
    if first in KIN | PETS | BELONGINGS or f"{first} {bare(second)}" in ("best friend", "twin brother", "twin sister"):
        return f"{USER}'s {subject[0].lower()}{subject[1:]}"
    if first in MASS_NOUNS or first.endswith(("tion", "ness", "ment", "ship")):
        return subject[0].lower() + subject[1:]
    if second[:1].islower() and second not in ("and", "or", "&") and not tokens[0].isupper():
        return f"the {subject[0].lower()}{subject[1:]}"
    return subject if tokens[0][0].isupper() else None


def is_plural(subject: str) -> bool:
    """Whether do, are, were and have go with it: the twins, Anna and Tom; but not James."""
    if " and " in subject:
        return True
    words = re.split(r" (?:of|for|in|with|at|on|to|from|about) ", subject)[0].split()
    last = words[-1]
    if last in ("children", "people", "parents"):
        return True
    common = len(words) > 1 or last[0].islower()
    return common and last[0].islower() and bool(re.search(r"[^suia']s$", last))


def is_person(subject: str) -> bool:
    """The user, somebody's kin, or a name."""
    last = re.split(r"'s? ", subject)[-1].split()
    if subject == USER or last[0].lower() in KIN or last[-1].lower() in KIN | PETS or last[0].lower() in PETS:
        return True
    return all(word[0].isupper() for word in subject.split())
