"""What a probe must pass before it may score. Each gate gives its name where a probe fails it, and None where not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from .askable import Askable
from .words import akin, content, hints, keys, shared, words

_YES_OR_NO = re.compile(r"^(?:is|are|was|were|do|does|did|has|have|had|will|would|can|could|should)\b", re.IGNORECASE)
_WORLD = re.compile(
    r"\b(?:capital of|author of|president of|population of|currency of|who (?:wrote|invented|discovered|painted"
    r"|composed)"
    r"|(?:largest|tallest|highest|longest|deepest|smallest|fastest) \w+ (?:in|on|of)|boiling point|freezing point"
    r"|chemical|square root|how many (?:days|hours|minutes|legs|sides|planets|continents) (?:are|in|has|have|does an?)"
    r"|what year did (?:the )?(?:world war|titanic|berlin wall)|speed of (?:light|sound)|in which country is"
    r"|opposite of)\b",
    re.IGNORECASE,
)
_OWN = re.compile(r"\b(?:user|user's|their|they|them|his|her|my|our|we|i|[\w]+'s?)\b(?<!what's)", re.IGNORECASE)
_ASKS_NAME = re.compile(r"\bname\b|\bold\b|\bfrom\?", re.IGNORECASE)
_GUESSABLE = frozenset(["yes", "no", "true", "false", "male", "female"])
_BARE = frozenset(
    keys("be have do get make thing go use fill gap hold start begin finish take turn come put see try want need")
)


def leaks(question: str, answers: Iterable[str]) -> bool:
    """Whether a content word of an answer stands in the question: in any form, or in a word that looks like it."""
    return any(shared(answer, question) or hints(answer, question) for answer in answers)


def no_value(value: str) -> bool:
    """An answer without a content word can neither be looked for nor told from any other."""
    return not content(value)


def vague(question: str) -> bool:
    """What does the user have? Nothing in it says what is meant."""
    return not _ASKS_NAME.search(question) and not content(question) - _BARE


def empty_context(question: str, answer: str) -> bool:
    """Whether nobody has to have heard the conversation: general knowledge, or a guess between two.

    By shape alone; a subject that is asked without its context finds the rest.
    """
    if _YES_OR_NO.match(question) and " or " not in question:
        return True
    said = words(answer)
    if said and said[0] in _GUESSABLE and len(said) <= 3:
        return True
    return bool(_WORLD.search(question)) and not _OWN.search(question)


Asked = tuple[str, frozenset[str]]


@lru_cache(maxsize=65536)
def asked_key(question: str) -> Asked:
    """What two questions share that ask for the same: the word they open with, and what they are about."""
    said = words(question)
    about = content(question) | ({"name"} if "name" in said else frozenset())  # a name is asked of many things
    return (said[0] if said else ""), about


def rivals(ours: Askable, readings: Iterable[Askable]) -> bool:
    """Whether another fact answers the same question, or one that says more, with something else."""
    opening, about = asked_key(ours.question)
    for other in readings:
        their_opening, theirs = asked_key(other.question)
        if (
            opening == their_opening
            and about <= theirs
            and other.fact != ours.fact
            and content(ours.value) != content(other.value)
        ):
            return True
    return False


def overlap(one: str, other: str) -> bool:
    """Whether to name one value is to name the other: Boston and South Boston."""
    ours, theirs = content(one), content(other)
    smaller, larger = sorted((ours, theirs), key=len)
    return all(any(akin(key, held) for held in larger) for key in smaller)
