"""Whether a reply says that it does not know, or denies what it is asked about, instead of answering.

Each clause is read by itself. What decides is whether one of them admits or denies, and whether another one answers
all the same; where code can not tell, nobody is told anything.
"""

from __future__ import annotations

import re
from enum import IntEnum, auto
from itertools import pairwise
from typing import NamedTuple

from .lexicon import listed
from .spoken import clauses, sentences
from .verbs import is_past, is_third_person
from .words import akin, content, key, words


class Admission(NamedTuple):
    example: str
    pattern: re.Pattern[str]


_NOT = r"(?:not|never)"
_FEW = r"(?:\w+ ){0,3}?"
_SAY = (
    r"(?:mention|say|state|specify|specifie|include|contain|indicate|reveal|cover|discuss|show|disclose|provide|give"
    r"|tell|answer|share|describe|explain|record|list|talk about|bring up)(?:s|d|ed|ing)?"
)
_SAID = (
    r"(?:said|told|mentioned|specified|stated|discussed|disclosed|shared|indicated|revealed|explained|addressed"
    r"|brought up|come up|came up|talked about|named)"
)
_RECORDED = r"(?:known|clear|available|given|provided|included|listed|recorded|documented|determined|established|noted)"
_INFORMATION = (
    r"(?:information|info|discussion|mention|records?|indication|evidence|references?|details?|data|answer|memory|memories|clue"
    r"|idea|knowledge|recollection|way of knowing|way to (?:know|tell)|context|access)"
)
_SOURCE = (
    r"(?:conversation|chat|context|transcript|history|memory|memories|records?|notes|text|discussion|messages"
    r"|information|it|this|that)"
)
_UN = r"(?:unknown|unclear|unspecified|undisclosed|unstated|uncertain|missing)"
_NOTHING = r"(?:no|none|nothing|nobody|no one)"


def _admissions(*pairs: tuple[str, str]) -> tuple[Admission, ...]:
    return tuple(Admission(example, re.compile(pattern)) for example, pattern in pairs)


ADMISSIONS = _admissions(
    (
        "i do not know",
        rf"\b(?:i|we)(?:'m|'ve)?(?: (?:am|have|was|were|do|did|can|could|would|had))* {_NOT} {_FEW}(?:know|sure|certain"
        rf"|aware|recall|remember|help|see|find|found|determine|confirm|able|have|got|come across|familiar|hear|heard"
        rf"|given|{_SAY}|{_SAID})\b",
    ),
    ("we have no record of that", rf"\b(?:i|we)(?:'ve)?(?: have| see| find| found)? no {_FEW}{_INFORMATION}\b"),
    ("i know nothing about it", r"\b(?:i|we) (?:know|have|see|found|find|recall|remember) nothing\b"),
    ("i'm unable to answer", r"\bi(?:'m| am) (?:unable|unsure|uncertain|unaware)\b"),
    ("i do not think we talked about it", rf"\bi (?:do|did) not (?:think|believe) {_FEW}(?:{_SAY}|{_SAID}|talked)\b"),
    ("i lack the details", rf"\b(?:i|it) (?:lacks?|am lacking) {_FEW}{_INFORMATION}\b"),
    ("can not say", rf"^(?:(?:do|can|could) )?{_NOT} (?:quite )?(?:know|sure|certain|say|tell|recall|remember)\b"),
    ("can not be determined", rf"\bcan not be (?:{_SAID}|{_RECORDED}|answered)\b"),
    ("unable to tell", r"^unable to (?:tell|say|determine|answer|find|recall|confirm)\b"),
    ("not mentioned anywhere", rf"^{_NOT} (?:\w+ ){{0,2}}?{_SAID}\b"),
    ("not available", rf"^{_NOT} {_RECORDED}$"),
    ("not one that i know of", r"\bthat i (?:know|am aware) of$"),
    ("no information about it", rf"^(?:no|zero|not enough|insufficient) (?:\w+ )?{_INFORMATION}\b"),
    ("beats me", r"^(?:beats me|n/a|not applicable|who knows)\b|^(?:nobody|no one) knows$"),
    ("impossible to say", r"^(?:hard|impossible) to (?:say|tell|know)\b"),
    ("i'm drawing a blank", r"\bdraw(?:ing)? a blank\b"),
    ("the conversation does not say", rf"\b{_SOURCE} (?:(?:do|does|did|has|have) )?{_NOT} {_FEW}{_SAY}\b"),
    ("the chat has nothing on it", rf"\b{_SOURCE} (?:contains?|says?|has|have|holds?|tells?) (?:no|nothing)\b"),
    ("that is not in my notes", rf"\bnot (?:a )?(?:part of|in|among) (?:our|the|this|my) (?:\w+ )?{_SOURCE}\b"),
    ("the chat is silent on this", rf"\b{_SOURCE} (?:is|was) silent\b"),
    ("you never mentioned a boat", rf"\b{_NOT} (?:\w+ )?(?:mention|specify|disclose)(?:ed|d|ing)?\b"),
    ("the user did not tell me", rf"\b{_NOT} (?:\w+ )?(?:tell|told) (?:me|us)\b"),
    (
        "the user did not say why",
        rf"\b{_NOT} (?:\w+ )?(?:said|{_SAY})(?:$| (?:why|where|what|which|how|who|whom|whose|when|whether|anything)\b)",
    ),
    (
        "that was never discussed",
        rf"\b(?:is|are|was|were|been|has|have) {_NOT} (?:\w+ )?{_SAID}"
        r"(?:$| (?:in|anywhere|here|yet|at|during|and|or)\b)",
    ),
    ("that never came up", rf"\b{_NOT} (?:come|came|brought|been brought) up\b"),
    (
        "no twins were mentioned",
        rf"\b{_NOTHING}\b (?:\w+ ){{0,4}}?(?:is|are|was|were|has|have)(?: been| ever)? {_SAID}\b",
    ),
    (
        "there is nothing about a gym",
        rf"\bthere(?:'s| is| was| are| were) (?:no|nothing|not any|not enough) "
        rf"(?:\w+ ){{0,2}}?(?:{_INFORMATION}|about|in (?:the|our|this))\b",
    ),
    ("it's not known", rf"\b(?:it|that|this)(?:'s| is| was) {_NOT} {_RECORDED}\b"),
    ("nothing about that", r"^nothing (?:about|on|in|regarding)\b"),
    ("that detail was left out", r"\b(?:left out|omitted)\b"),
    ("it is unclear", rf"\b(?:it|that|this)(?:'s| is| was| has been| remains) (?:left )?{_UN}\b"),
    ("unknown", rf"^{_UN}\b"),
    ("there is insufficient context", rf"\b(?:insufficient|not enough) (?:\w+ )?{_INFORMATION}\b"),
    ("that is not something we discussed", r"\bnot something (?:that )?(?:i|we|you)\b"),
)  # fmt: skip

DENIALS = _admissions(
    ("none", r"^(?:none|nothing|nobody|no one|nowhere|never)$"),
    ("nothing like that", r"^(?:none|nothing) (?:of|that|like|such)\b"),
    (
        "the user did not do that",
        rf"\b{_NOT} (?:do|did|done|had|have|happen|happened|occur|occurred|take place|took place)"
        r"(?: (?:that|this|it|so|such))?$",
    ),
)

UNTOLD = re.compile(
    rf"^(?:(?P<of>.*) (?:is|are|was|were|remains?|been) (?:{_UN}|{_NOT} (?:\w+ )?(?:{_RECORDED}|{_SAID}))"
    rf"|no (?P<none>.*?) (?:is|are|was|were|has been|have been) (?:{_RECORDED}|{_SAID}))\b"
)
"""Something is not known, or was not given: admits where it is what the question asks about."""
ABOUT_KNOWING = re.compile(
    r"\b(?:know|knows|known|tell|told|say|sure|certain|unsure|uncertain|information|missing|unable|determined?|recall"
    r"|remember|blank|clue|idea|reasons?|aware|find|found|unclear|unknown|should|ask|check|guess|i|my|we)\b"
)
"""What speaks of knowing and matches none of these is not taken for an answer."""


class _Reading(IntEnum):
    ADMITS = auto()
    """Says that it does not know, or was not told."""
    DENIES = auto()
    """Says that what the question takes for granted is not so."""
    GUESSES = auto()
    """Answers with a hedge, or gives a reason."""
    NAMES = auto()
    """Answers with a bare name: nothing but words that the question does not have."""
    STATES = auto()
    """Tells something of its own."""
    RETELLS = auto()
    """Tells what was or was not talked about."""
    UNCLEAR = auto()
    """Denies what is only in part asked about, or speaks of knowing in words that are not known here."""
    IDLE = auto()


_NEGATOR = re.compile(r"\b(?:not|no|never|none|neither|nor|nobody|nothing)\b")
_WITHOUT = re.compile(r"^\w{3,}less$|\bun(?:married|employed|named|decided)\b")
_HEDGE = re.compile(
    r"\b(?:probably|likely|i (?:would )?guess|i'd guess|guess is|i think|i believe|i suspect|maybe|perhaps|i assume"
    r"|i'd say|i would say|presumably|must (?:be|have been)|it (?:might|could|may) be|it's|it is|it was"
    r"|sounds like|appears to be|seems to be)\b"
)
_REASON = re.compile(r"^(?:because|due to|on account of)\b")
_RETELLS = re.compile(
    r"\b(?:conversation|chat|context|transcript|mention(?:s|ed)?|only|just|you (?:said|told|talked|asked)"
    r"|talk(?:s|ed)? about|discuss(?:es|ed)?|let me know|happy to|could you|can you|if you|please|tell me|told me|help"
    r"|feel free|share)\b"
)
_IDLE = re.compile(
    r"^(?:sorry|i'm sorry|i am sorry|apologies|i apologi[sz]e|unfortunately|hm+|well|honestly|actually|no|yes|okay|sure"
    r"|as far as .*|based on .*|according to .*|from (?:what|the|our|this) .*|in (?:the|our|this) (?:conversation|chat)"
    r"|as an ai.*|(?:it|that) depends.*|(?:great|good) question|thanks.*|exactly)$"
)
_TURN = re.compile(r"\b(?:but|however|although|though|nevertheless|that said|even so|so)\b")
_EXISTS = frozenset(
    key(word)
    for word in listed("""
        have own possess exist happen do get believe think be record take place plan name reason detail information 1
        share say state reveal give provide tell indicate provided above whole entire previous conversation context
        chat unfortunately honestly actually sorry afraid nobody nothing none neither anybody anything
    """)
)
"""Words that tell nothing of their own of what was asked about."""
_SUBJECT = frozenset(listed("i you he she it they we there that this who"))
_AUXILIARY = frozenset(listed("am is are was were be has have had do does did can could will would may might must"))
_COUNTED = re.compile(r"\bhow (?:many|much) (\w+)")


def refuses(text: str, question: str = "") -> bool | None:
    """None: it can not be told. `Rome, I'm not sure` answers; `I don't know, but you mentioned a trip` does not."""
    read = [_reading(clause, question) for clause in _clauses(text)]
    # what follows a retelling after a comma belongs to it: only a dog, Biscuit
    found = {
        reading
        for before, reading in pairwise([_Reading.IDLE, *read])
        if not (reading is _Reading.NAMES and before is _Reading.RETELLS)
    }
    answers = bool(found & {_Reading.GUESSES, _Reading.NAMES})
    if _Reading.DENIES in found and answers:
        return None
    if answers:
        return False
    if found & {_Reading.ADMITS, _Reading.DENIES}:
        return None if found & {_Reading.STATES, _Reading.UNCLEAR} else True
    if found & {_Reading.UNCLEAR, _Reading.RETELLS}:
        return None
    return False if _Reading.STATES in found else None


def _clauses(text: str) -> list[str]:
    parts = [part for sentence in sentences(text) for clause in clauses(sentence) for part in _TURN.split(clause)]
    return [part.strip() for part in parts if part.strip()]


def _reading(clause: str, question: str) -> _Reading:
    if _IDLE.match(clause):
        return _Reading.IDLE
    if _REASON.match(clause):
        return _Reading.GUESSES
    if _admits(clause, question):
        return _Reading.ADMITS
    if any(denial.pattern.search(clause) for denial in DENIALS):
        return _Reading.DENIES
    asked = content(question)
    new = _news(clause, question)
    if _NEGATOR.search(clause) or _WITHOUT.search(clause):
        return _negation(clause, question, new)
    if _RETELLS.search(clause):
        return _Reading.GUESSES if new and asked and asked <= content(clause) else _Reading.RETELLS
    if not new:
        return _Reading.IDLE
    if _HEDGE.search(clause) or (asked and asked <= content(clause)):
        return _Reading.GUESSES
    if ABOUT_KNOWING.search(clause):
        return _Reading.UNCLEAR
    return _Reading.NAMES if _bare(clause) else _Reading.STATES


def _admits(clause: str, question: str) -> bool:
    """Only of what the question asks about: `a firm whose name I do not recall` tells something before it admits."""
    found = next((match for one in ADMISSIONS if (match := one.pattern.search(clause))), None)
    if found is not None:
        return not _news(clause[: found.start()], question)
    untold = UNTOLD.match(clause)
    return untold is not None and not _news(untold["of"] or untold["none"], question)


def _news(text: str, question: str) -> frozenset[str]:
    """What is told that the question does not ask about."""
    asked = content(question)
    return frozenset(one for one in content(text) - _EXISTS if not any(akin(one, other) for other in asked))


def _negation(clause: str, question: str, new: frozenset[str]) -> _Reading:
    """No boat was sold: denies what was asked. No sugar: answers. The user drinks no coffee: who knows."""
    negator = _NEGATOR.search(clause)
    denied = content(clause[negator.end() :]) if negator else frozenset[str]()
    counted = _COUNTED.search(question.lower())
    if denied & content(question) and not new and not (counted and key(counted[1]) in denied):
        return _Reading.DENIES
    if negator is None or len(new) < len(content(clause) - _EXISTS) or not new:
        return _Reading.UNCLEAR
    if ABOUT_KNOWING.search(clause) or clause.startswith("not "):
        return _Reading.UNCLEAR
    return _Reading.NAMES if _bare(clause) else _Reading.STATES


def _bare(clause: str) -> bool:
    """Without a verb or a subject: a name, a place, a time."""
    return not any(
        word in _SUBJECT or word in _AUXILIARY or is_past(word) or is_third_person(word) for word in words(clause)
    )
