"""Ways to say that one does not know, each beside a clause that says it so. As data."""

from __future__ import annotations

import re
from typing import NamedTuple


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
