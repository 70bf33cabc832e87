"""Keeps secrets out of every text that leaves the process."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from typing import Any
from urllib.parse import unquote, urlsplit

REDACTED = "[redacted]"
SHORTEST = 8
"""In characters. A shorter value occurs in ordinary text, so redacting it would damage results."""

_SHORTEST_LINE = 16
_SCHEME = re.compile(r"(?i:bearer|token|basic|apikey)\s+(\S+)")
_BACKSLASHES = r"\\{1,16}"  # more than one if JSON is nested in JSON; bounded, so that matching stays linear
_AMPERSAND = rf"(?:&|{_BACKSLASHES}u0026)(?:amp;){{0,3}}"
_PERCENT = "%(?:25){0,3}"
_ENCODED_LETTERS = {
    "%": re.compile(r"%(?:25){0,3}(?:3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa])"),
    "#": re.compile(r"#(?:0*(?:4[89]|5[0-7]|6[5-9]|[78]\d|9[07-9]|1[01]\d|12[0-2])\b|[xX]0*[3-7][0-9A-Fa-f]\b)"),
    "\\": re.compile(r"\\(?:[ux](?:00)?[3-7][0-9A-Fa-f]|U000000|u\{)"),
}
"""Patterns of ASCII letters and digits that are escaped in URLs, HTML and string literals, which is unusual. One
pattern per first character, because that is much faster than one for all."""
_OTHERWISE = {"+": "-", "/": "_"}  # base64 for URLs


class Redactor:
    """Replaces secrets in texts, plain or in the encodings that occur in errors, logs and documents.

    All parts of a program must share one Redactor, because secrets such as login tokens are added while it runs.
    """

    __slots__ = ("_anchors", "_secrets")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: dict[str, _Secret] = {}
        self._anchors: tuple[str, ...] = ()
        self.add(*secrets)

    def add(self, *values: str) -> None:
        """Redact these values as well. Values of fewer than `SHORTEST` characters are ignored."""
        found = {part for value in values for part in _secrets_in(value) if len(part) >= SHORTEST}
        if found <= self._secrets.keys():
            return
        secrets = self._secrets | {text: _Secret(text) for text in found - self._secrets.keys()}
        # a secret that contains another goes first, so that it is replaced whole
        self._secrets = dict(sorted(secrets.items(), key=lambda item: (-len(item[0]), item[0])))
        self._anchors = tuple(dict.fromkeys(anchor for secret in self._secrets.values() for anchor in secret.anchors))

    def clean(self, text: str) -> str:
        anchors = self._anchors
        if not anchors:
            return text
        # nearly every text holds no secret, and `in` finds that out a hundred times faster than a pattern
        hides_letters = _encodes_letters(text)
        for anchor in anchors:
            if hides_letters or anchor in text:
                break
        else:
            return text
        for secret in self._secrets.values():
            if hides_letters:
                text = secret.with_encoded_letters.sub(_replacement, text)
            if any(anchor in text for anchor in secret.anchors):
                text = secret.pattern.sub(_replacement, text)
        return text


def redact_strings(value: Any, redact: Callable[[str], str]) -> Any:
    """Return a JSON value in which `redact` was applied to all texts and keys."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redact_strings(one, redact) for one in value]
    if isinstance(value, dict):
        return {redact(key): redact_strings(one, redact) for key, one in value.items()}
    return value


class _Secret:
    """The patterns of one secret, compiled when they are first needed."""

    def __init__(self, text: str) -> None:
        self._text = text
        octets = text.encode("utf-8", "surrogateescape")  # as the environment holds bytes that are not UTF-8
        in_hex = octets.hex()
        self._forms = [text, in_hex, in_hex.upper(), *(_base64_middle(octets, shift) for shift in range(3))]
        self.anchors = [_anchor(form) for form in self._forms]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Matches the secret in any encoding that does not change ASCII letters and digits, and in hex and base64."""
        return re.compile("|".join(_pattern(form, _spell_symbol) for form in self._forms))

    @cached_property
    def with_encoded_letters(self) -> re.Pattern[str]:
        return re.compile(_pattern(self._text, _any_spelling))


def _replacement(match: re.Match[str]) -> str:
    """Return `[redacted]`; after an odd number of backslashes with one more before it, so that JSON stays valid."""
    before = match.string[max(0, match.start() - 64) : match.start()]
    backslashes = len(before) - len(before.rstrip("\\"))
    return f"\\{REDACTED}" if backslashes % 2 else REDACTED


def _secrets_in(value: str) -> Iterable[str]:
    """Yield the stripped value and the parts that are secrets themselves: bearer token, URL password, long lines."""
    value = value.strip()
    yield value
    if scheme := _SCHEME.fullmatch(value):
        yield scheme[1]
    if "://" in value:
        yield from credentials_in_url(value)
    lines = value.splitlines()
    if len(lines) > 1:
        yield from (line for line in map(str.strip, lines) if len(line) >= _SHORTEST_LINE and line[:5] != "-----")


def credentials_in_url(url: str) -> list[str]:
    """Return the password of a URL, as written and decoded; if it has none, its user; else an empty list."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return []
    secret = parts.password or parts.username
    return [secret, unquote(secret)] if secret else []


def _encodes_letters(text: str) -> bool:
    return any(first in text and letter.search(text) for first, letter in _ENCODED_LETTERS.items())


def _base64_middle(octets: bytes, shift: int) -> str:
    """Return those base64 characters that depend only on these bytes if `shift` (0 to 2) other bytes come before them.

    So a key is found inside the base64 of `user:key` or `Bearer key`. At most one character at each end, which
    also depends on neighbouring bytes, is not redacted.
    """
    first = -(-shift * 8 // 6)
    end = (shift + len(octets)) * 8 // 6
    return base64.b64encode(bytes(shift) + octets).decode("ascii")[first:end]


def _anchor(form: str) -> str:
    """Return the longest sequence of ASCII letters and digits: the part that most encodings do not change."""
    runs: list[str] = re.findall(r"[A-Za-z0-9]*", form)
    return max(runs, key=len)


def _pattern(form: str, spell: Callable[[str], str]) -> str:
    # any spaces match any others: messages are wrapped and shortened
    spaces = "|".join([r"\s", r"\+", *(spelling for space in " \t\n\r" for spelling in _encodings(space))])
    parts = re.split(r"(\s+)", form)
    return "".join(f"(?:{spaces})+" if part.isspace() else "".join(map(spell, part)) for part in parts)


def _spell_symbol(character: str) -> str:
    return character if character.isascii() and character.isalnum() else _any_spelling(character)


@cache
def _any_spelling(character: str) -> str:
    """Return a pattern for a character, unchanged or escaped as in URLs, HTML, repr() and JSON."""
    literal = re.escape(character) if character.isalnum() else rf"\\{{0,16}}{re.escape(character)}"
    return f"(?:{'|'.join([literal, *_encodings(character), *_OTHERWISE.get(character, '')])})"


def _encodings(character: str) -> list[str]:
    code, octets = ord(character), character.encode("utf-8", "surrogateescape")
    utf_16 = character.encode("utf-16-be", "surrogatepass")
    units = [utf_16[at : at + 2].hex() for at in range(0, len(utf_16), 2)]
    escape = ascii(character)[1:-1].lstrip("\\")
    return [
        "".join(rf"{_PERCENT}(?i:{octet:02x})" for octet in octets),
        rf"{_AMPERSAND}#(?:0*{code}|(?i:x0*{code:x}))(?:;|(?!\w))",
        *(f"{_AMPERSAND}{name}" for name in _entity_names().get(character, ())),
        "".join(rf"{_BACKSLASHES}u(?i:{unit})" for unit in units),
        rf"{_BACKSLASHES}(?i:u\{{0*{code:x}\}}|U{code:08x})",
        "".join(rf"{_BACKSLASHES}(?i:x{octet:02x})" for octet in octets),
        *([rf"{_BACKSLASHES}{re.escape(escape)}"] if escape and escape != character else []),
    ]


@cache
def _entity_names() -> dict[str, list[str]]:
    from html.entities import html5

    names: dict[str, list[str]] = {}
    for name, character in html5.items():
        if name.endswith(";"):
            names.setdefault(character, []).append(name)
    return names
