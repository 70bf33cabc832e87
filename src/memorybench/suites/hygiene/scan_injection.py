"""Detects texts that give orders to an agent, and characters that people cannot see."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from memorybench.secrets.word_places import WordPlaces

from .scan_personal import RuleMatch, Severity

_EARLIER = (
    r"(?:all|any|every|the|your|my|of|these|those|previous|prior|earlier|above|preceding|existing|former|"
    r"other|safety|system)"
)
_ALL = r"(?=(?:\w+\s+){0,4}(?:all|any|every|your|previous|prior|earlier|above|preceding|system|safety)\b)"
_ORDERS = (
    r"(?:instructions?|rules?|prompts?|directions?|guidelines?|guardrails?|orders|commands?|constraints|"
    r"messages|context)"
)


def _orders(*rules: tuple[str, str]) -> tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]:
    return tuple((tuple(triggers.split(",")), re.compile(pattern, re.I | re.M)) for triggers, pattern in rules)


_ORDER_RULES = _orders(
    (
        "ignor,disregard,forget,overrid,bypass,discard,vergiss,missacht,oubli,olvida,esque,desconsider",
        rf"\b(?:ignore|disregard|forget|override|bypass|discard)\s+{_ALL}(?:{_EARLIER}\s+){{1,5}}{_ORDERS}\b|"
        r"\b(?:ignorier\w*|vergiss|missachte\w*)\s+(?:alle\w*|die|deine|sämtliche\w*|bisherige\w*|vorherige\w*|"
        r"\s)+(?:anweisungen|regeln|instruktionen|vorgaben)|"
        r"\b(?:ignore[zr]?|oublie[zr]?)\s+(?:toutes?|les|tes|vos|ces|\s)+(?:instructions|consignes|règles)|"
        r"\b(?:ignora|olvida|ignore)\s+(?:todas?|las|los|tus|\s)+(?:instrucciones|reglas|órdenes)|"
        r"\b(?:ignore|esqueça|desconsidere)\s+(?:todas?|as|os|suas|\s)+(?:instruções|regras|ordens)",
    ),
    (
        "agent,assistant,model,bot",
        r"\b(?:note|message|instructions?|notice|attention|important|memo)\s*(?:to|for|:)?\s*(?:all\s+|any\s+|the\s+)?"
        r"(?:ai|llm|language|automated)[\s-]+(?:agents?|assistants?|models?|bots?)\b[^\n]{0,160}?"
        r"(?:\b(?:forward|send|e-?mail|upload|post|transmit|copy)\b[^\n]{0,120}(?:https?://|@[\w-]+\.\w)|"
        r"\b(?:guidelines|rules|instructions|policies)\s+(?:have|has|are|were)?\s*(?:been\s+)?"
        r"(?:changed|updated|replaced|void)\b)",
    ),
    (
        "you are now",
        r"\byou are now\s+(?:dan\b|in (?:developer|debug|god|admin|unrestricted)|an? (?:unrestricted|unfiltered|"
        r"jailbroken)|free from)",
    ),
    (
        "developer mode,god mode,jailbreak mode,dan mode",
        r"\b(?:developer|god|jailbreak|dan) mode (?:is )?(?:now )?(?:on|enabled|activated)",
    ),
    (
        "system prompt,initial prompt,hidden instructions",
        r"\b(?:reveal|print|repeat|output|leak|show|send|paste)\s+(?:me\s+)?(?:your|the)\s+(?:full\s+|entire\s+|"
        r"hidden\s+)?(?:system prompt|initial prompt|hidden instructions)",
    ),
    (
        "tell,inform,mention,alert,notify,ask",
        r"\b(?:do not|don'?t|never|without)\s+(?:tell|telling|inform|informing|mention|mentioning|alert|alerting|"
        r"notify|notifying|ask|asking)"
        r"\s+(?:this\s+|it\s+|anything\s+)?(?:to\s+)?(?:the\s+)?(?:user|human|owner|operator)s?\b",
    ),
    (
        "instruction",
        r"\b(?:new|updated|real|actual|secret|hidden)\s+(?:system\s+)?instructions?\s*:|</?instructions?_override>",
    ),
    ("<|,inst],sys>>", r"<\|(?:im_start|im_end|system|endoftext)\|>|\[/?INST\]|<</?SYS>>"),
    (
        "system,assistant",
        r"^\s*(?:#+\s*)?(?:system|assistant)\s*(?:prompt|message|override)\s*:|</?system(?:_prompt)?>",
    ),
    (
        "://,@",
        r"\b(?:send|post|upload|forward|exfiltrate|transmit|e?mail|copy|append|curl)\b[^\n.]{0,80}\b(?:secrets?|"
        r"passwords?|credentials?|keys?|tokens?|conversation|chat history|memor(?:y|ies)|env(?:ironment)? variables|"
        r"\.env|files?|data|notes|contacts)\b[^\n]{0,60}(?:https?://|\b[\w.+-]+@[\w-]+\.\w+)",
    ),
    (
        "secretly,silently,covertly,always recommend,run the command,execute",
        r"\bwhen(?:ever)?\b[^\n.]{0,80}\b(?:asks?|mentions?|says?|sees?|reads?)\b[^\n.]{0,80}\b(?:secretly|silently|"
        r"covertly|always recommend|run the command|execute)\b|"
        r"\b(?:secretly|silently|covertly)\s+(?:send|add|insert|run|execute|append|forward|"
        r"include|recommend|change|delete|install|store|copy|upload)",
    ),
)
"""For each rule: trigger strings in lower case, and a pattern.

Every match of the pattern contains one of the triggers, so texts without a trigger are not searched.
"""
_TRIGGERS = frozenset(trigger for triggers, _ in _ORDER_RULES for trigger in triggers)
_SPEAKS_ABOUT = re.compile(
    r"injection|injected|attack|malicious|jailbreak(?:s|ing)\b|phishing|suspicious|untrusted|such as|e\.g\.|"
    r"for example|like [\"'“]|"
    r"(?:never|do not|don'?t|refuse to) (?:follow|obey|act on|comply)|detect|scanner|red team|treat (?:it|them|"
    r"this|that|any|such)",
    re.I,
)
"""Matches words of a line that speaks about injections, such as a warning. Orders in such a line are not reported."""

_QUOTED_WORDS = re.compile(
    r"\b(?:words?|phrases?|texts?|strings?|sentences?|lines?|prompts?|inputs?|quer(?:y|ies)|payloads?|says?|contains?)\s+"
    r"[\"'“„«‘`]$",
    re.I,
)
"""Matches the text before a quoted order, up to the quotation mark, as in: a page with the words "ignore all rules"."""

_TAGS = re.compile("(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0001-\U000e007f]+")
_OVERRIDES = re.compile("[\u202a\u202b\u202d\u202e\u2066-\u2068]")
_ZERO_WIDTH = re.compile(
    "(?<=[\x21-\x7e])[\u200b-\u200d\u2060\u2061-\u2064\ufeff\u00ad]+(?=[\x20-\x7e])|[\u200b\u2060-\u2064\ufeff]{3,}"
)
_VARIATION = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")


_AROUND = 320
"""The number of characters before and after a trigger that are searched, to the ends of their lines."""


def _orders_in(text: str) -> Iterator[re.Match[str]]:
    places = WordPlaces(text, _TRIGGERS, before=_AROUND, after=_AROUND)
    found = [
        match
        for triggers, pattern in _ORDER_RULES
        for start, end in _whole_lines(text, places.windows(triggers))
        for match in pattern.finditer(text, start, end)
    ]
    end = 0
    for match in sorted(found, key=lambda match: (match.start(), -match.end())):
        if match.start() >= end:
            end = match.end()
            yield match


def _whole_lines(text: str, windows: Iterable[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Extend the windows to whole lines: a cut could end a match, or make a match of a part of a word."""
    parts: list[tuple[int, int]] = []
    for start, end in windows:
        if parts and end <= parts[-1][1]:
            continue
        line_start, line_end = text.rfind("\n", 0, start) + 1, text.find("\n", end)
        if parts and line_start <= parts[-1][1]:
            line_start = parts.pop()[0]
        parts.append((line_start, line_end if line_end >= 0 else len(text)))
    return parts


def find_injections(text: str) -> Iterator[RuleMatch]:
    for match in _orders_in(text):
        start = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.end())
        whole = text[start : end if end >= 0 else len(text)]
        if not _SPEAKS_ABOUT.search(whole) and not _QUOTED_WORDS.search(text[start : match.start()]):
            yield RuleMatch("order to an agent", "high", match.start(), match.end())
    if text.isascii():
        return
    hidden: tuple[tuple[str, Severity, re.Pattern[str]], ...] = (
        ("hidden text in tag characters", "high", _TAGS),
        ("hidden text in variation selectors", "high", _VARIATION),
        ("characters that reorder text", "high", _OVERRIDES),
        ("zero-width characters", "medium", _ZERO_WIDTH),
    )
    for kind, severity, pattern in hidden:
        lines: set[int] = set()
        for match in pattern.finditer(text):
            line = text.rfind("\n", 0, match.start())
            if line not in lines:  # one finding per line
                lines.add(line)
                yield RuleMatch(kind, severity, match.start(), match.end())
