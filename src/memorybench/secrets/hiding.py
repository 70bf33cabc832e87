"""Decides which parts of a text to hide because of its credentials.

A detector needs only the beginning of a credential to recognise it. Hiding must remove all of it, so more than
the credential may be hidden, such as the words after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .credential import Credential
from .credential_values import looks_secret
from .credentials import credential_in, find_credentials

Span = tuple[int, int]
"""The offset of the first character, and the offset after the last character."""

_PART = 4_000
"""The most characters of the parts in which a text is searched for credentials that are spelled out or split. The
detector decodes longer texts only where they look encoded."""
_BEFORE = 80
"""The number of characters before a value that are searched for its name."""
_CLOSING = {'"': '"', "'": "'", "`": "`", "“": "”", "„": "“", "‘": "’", "«": "»", "‚": "‘"}
_TOKEN_REST = re.compile(r"[^\s\"'`<>“”‘’«»]*")
_LINE_REST = re.compile(r"[^\n]*")
_SENTENCE = re.compile(r"(?:(?![.!?](?:\s|$))[^\n])*")
_PARAGRAPH = re.compile(r"(?:(?!\n[ \t]*\n)[\s\S])*")
_KEY_END = re.compile(r"-----END[^\n]*?-----|Private-MAC:[^\n]*")
_OF_WORDS = re.compile(r"phrase|\bwords\b|mnemonic|seed", re.I)
_PLURAL = re.compile(
    r"\b[\w-]*(?:passwords|passphrases|passcodes|passes|pwds|keys|tokens|secrets|codes|pins|credentials|logins|"
    r"passwörter|kennwörter|schlüssel|clés|claves|contraseñas|chaves|senhas|mots de passe)\b",
    re.I,
)
_NEXT_VALUE = re.compile(
    r"\b(?:for|of|on|in|at|für|pour|para|and|und|et|y|e)\b[^.,;\n]{1,60}?(?:\b(?:is|was|ist|war|est|es|é)\b|[:=])\s*"
    r"(?P<value>[^\s,;]+)|(?:,|;|/|\||\b(?:and|or|then|und|oder|et|ou|y|o|e)\b)\s*(?P<quote>[\"'`“„‘«])(?P<quoted>[^\n]*)",
    re.I,
)
_TOKEN = re.compile(r"[^\s,;\"'`<>“”‘’«»]+")


def spans_to_hide(text: str) -> list[Span]:
    """Return the parts of the text to hide so that no known credential is left, in order and without overlaps."""
    spans = [span for credential in find_credentials(text) for span in _around(credential, text)]
    masked = mask(text, spans)
    for start, end in _parts(masked):
        spans += _hidden_lines(masked, start, end)
    return _joined(spans)


def mask(text: str, spans: Iterable[Span]) -> str:
    """Return the text with asterisks in place of the characters in these spans, except white space."""
    for start, end in spans:
        text = text[:start] + re.sub(r"\S", "*", text[start:end]) + text[end:]
    return text


def _around(found: Credential, text: str) -> Iterator[Span]:
    """Yield the whole credential, and values that follow it in the same line or list."""
    start = found.start
    rest = text[found.end : _matched_end(_TOKEN_REST, text, found.end)]
    end = found.end + len(rest.rstrip(".,;:!?)]}"))
    if found.kind == "private key" and re.search(r"BEGIN|PuTTY", text[start:end]):
        last = _KEY_END.search(text, found.end)
        yield start, last.end() if last else len(text)
        return
    quote = text[start - 1 : start]
    if quote in _CLOSING:
        closing = text.find(_CLOSING[quote], found.end)
        line = _matched_end(_LINE_REST, text, found.end)
        end = max(end, closing if 0 <= closing <= line else line)
    before = text[max(start - _BEFORE, 0) : start]
    value = text[start:end]
    if found.kind == "recovery phrase" or _OF_WORDS.search(before) or re.fullmatch(r"[^\W\d_]+[.,;:)]*", value):
        end = max(end, _matched_end(_SENTENCE, text, end))
    if plurals := list(_PLURAL.finditer(before)):
        # a list: in its line, or below its title
        list_end = _PARAGRAPH if "\n" in before[plurals[-1].end() :] else _LINE_REST
        end = max(end, _matched_end(list_end, text, end))
    yield start, end
    yield from _values_after(text, end)


def _values_after(text: str, start: int) -> Iterator[Span]:
    """Yield further values in the rest of the line, such as B in "for staging it is A, for production B"."""
    end = _matched_end(_LINE_REST, text, start)
    for match in _NEXT_VALUE.finditer(text, start, end):
        if match["value"]:
            yield match.span("value")
        elif (closing := match["quoted"].find(_CLOSING[match["quote"]])) > 0:
            yield match.start("quoted"), match.start("quoted") + closing
    for token in _TOKEN.finditer(text, start, end):
        if looks_secret(token[0], technical=False):
            yield token.span()


def _matched_end(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    assert match is not None  # every pattern matches the empty text
    return match.end()


def _parts(text: str) -> Iterator[Span]:
    """Yield parts of the text, of whole lines and at most _PART characters; a longer line is a part of its own."""
    start = 0
    while start < len(text):
        end = len(text)
        if end - start > _PART:
            end = text.rfind("\n", start, start + _PART) + 1 or text.find("\n", start + _PART) + 1 or len(text)
        yield start, end
        start = end


def _hidden_lines(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the lines with a credential whose exact place is unknown, such as one that is spelled letter by letter."""
    if credential_in(text[start:end]) is None:
        return
    lines = [match.span() for match in re.compile(r"[^\n]+").finditer(text, start, end)]
    found = [line for line in lines if credential_in(text[slice(*line)]) is not None]
    yield from found
    rest = mask(text, found)
    if credential_in(rest[start:end]) is not None:  # it is split over several lines
        last = next((to for _, to in lines if credential_in(rest[start:to]) is not None), end)
        first = next((at for at, _ in reversed(lines) if at < last and credential_in(rest[at:last]) is not None), start)
        yield first, last


def _joined(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif start < end:
            joined.append((start, end))
    return joined
