"""Detects texts that give orders to an agent, and characters that people cannot see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .scan_personal import Severity


@dataclass(frozen=True, slots=True)
class Injection:
    kind: str
    severity: Severity
    start: int
    end: int


_EARLIER = (
    r"(?:all|any|every|the|your|my|of|these|those|previous|prior|earlier|above|preceding|existing|former|"
    r"other|safety|system)"
)
_ALL = r"(?=(?:\w+\s+){0,4}(?:all|any|every|your|previous|prior|earlier|above|preceding|system|safety)\b)"
_ORDERS = (
    r"(?:instructions?|rules?|prompts?|directions?|guidelines?|guardrails?|orders|commands?|constraints|"
    r"messages|context)"
)
_ORDER = re.compile(
    rf"\b(?:ignore|disregard|forget|override|bypass|discard)\s+{_ALL}(?:{_EARLIER}\s+){{1,5}}{_ORDERS}\b|"
    r"\b(?:ignorier\w*|vergiss|missachte\w*)\s+(?:alle\w*|die|deine|sämtliche\w*|bisherige\w*|vorherige\w*|"
    r"\s)+(?:anweisungen|regeln|instruktionen|vorgaben)|"
    r"\b(?:ignore[zr]?|oublie[zr]?)\s+(?:toutes?|les|tes|vos|ces|\s)+(?:instructions|consignes|règles)|"
    r"\b(?:ignora|olvida|ignore)\s+(?:todas?|las|los|tus|\s)+(?:instrucciones|reglas|órdenes)|"
    r"\b(?:ignore|esqueça|desconsidere)\s+(?:todas?|as|os|suas|\s)+(?:instruções|regras|ordens)|"
    r"\byou are now\s+(?:dan\b|in (?:developer|debug|god|admin|unrestricted)|an? (?:unrestricted|unfiltered|"
    r"jailbroken)|free from)|"
    r"\b(?:developer|god|jailbreak|dan) mode (?:is )?(?:now )?(?:on|enabled|activated)|"
    r"\b(?:reveal|print|repeat|output|leak|show|send|paste)\s+(?:me\s+)?(?:your|the)\s+(?:full\s+|entire\s+|"
    r"hidden\s+)?(?:system prompt|"
    r"initial prompt|hidden instructions)|"
    r"\b(?:do not|don'?t|never|without)\s+(?:tell|telling|inform|informing|mention|mentioning|alert|alerting|"
    r"notify|notifying|ask|asking)"
    r"\s+(?:this\s+|it\s+|anything\s+)?(?:to\s+)?(?:the\s+)?(?:user|human|owner|operator)s?\b|"
    r"\b(?:new|updated|real|actual|secret|hidden)\s+(?:system\s+)?instructions?\s*:|"
    r"<\|(?:im_start|im_end|system|endoftext)\|>|\[/?INST\]|<</?SYS>>|^\s*(?:#+\s*)?(?:system|"
    r"assistant)\s*(?:prompt|message|override)\s*:|"
    r"</?(?:system|system_prompt|instructions?_override)>|"
    r"\b(?:send|post|upload|forward|exfiltrate|transmit|e?mail|copy|append|curl)\b[^\n.]{0,80}\b(?:secrets?|"
    r"passwords?|credentials?|keys?|tokens?|"
    r"conversation|chat history|memor(?:y|ies)|env(?:ironment)? variables|\.env|files?|data|notes|"
    r"contacts)\b[^\n]{0,60}(?:https?://|\b[\w.+-]+@[\w-]+\.\w+)|"
    r"\bwhen(?:ever)?\b[^\n.]{0,80}\b(?:asks?|mentions?|says?|sees?|reads?)\b[^\n.]{0,80}\b(?:secretly|silently|"
    r"covertly|always recommend|"
    r"run the command|execute)\b|\b(?:secretly|silently|covertly)\s+(?:send|add|insert|run|execute|append|forward|"
    r"include|recommend|change|delete|"
    r"install|store|copy|upload)",
    re.I | re.M,
)
_SPEAKS_ABOUT = re.compile(
    r"injection|injected|attack|malicious|jailbreak(?:s|ing)\b|phishing|suspicious|untrusted|such as|e\.g\.|"
    r"for example|like [\"'“]|"
    r"(?:never|do not|don'?t|refuse to) (?:follow|obey|act on|comply)|detect|scanner|red team|treat (?:it|them|"
    r"this|that|any|such)",
    re.I,
)
"""Words of a line that warns of injections instead of being one."""

_TAGS = re.compile("(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0001-\U000e007f]+")
_OVERRIDES = re.compile("[\u202a\u202b\u202d\u202e\u2066-\u2068]")
_ZERO_WIDTH = re.compile(
    "(?<=[\x21-\x7e])[\u200b-\u200d\u2060\u2061-\u2064\ufeff\u00ad]+(?=[\x20-\x7e])|[\u200b\u2060-\u2064\ufeff]{3,}"
)
_VARIATION = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")


def find_injections(text: str) -> Iterator[Injection]:
    for match in _ORDER.finditer(text):
        start = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.end())
        if not _SPEAKS_ABOUT.search(text[start : end if end >= 0 else len(text)]):
            yield Injection("order to an agent", "high", match.start(), match.end())
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
                yield Injection(kind, severity, match.start(), match.end())
