"""Keeps secrets out of every text that leaves the process."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable

REDACTED = "[redacted]"
SHORTEST_SEARCHED_ENCODED = 6
"""Shorter secrets turn up in innocent text: they are replaced only as they are, as whole words."""


class Redactor:
    """Replaces the secrets it was made with, in plain text and in the disguises that errors and logs give them.

    Whoever holds the secrets makes it and passes it on: there is no registry to forget one in.
    """

    __slots__ = ("_anchors", "_found")

    def __init__(self, secrets: Iterable[str]) -> None:
        # A secret that contains another goes first, so that it is replaced whole.
        known = sorted({secret for secret in secrets if secret.strip()}, key=lambda secret: (-len(secret), secret))
        short = [secret for secret in known if len(secret) < SHORTEST_SEARCHED_ENCODED]
        long = [disguise for secret in known if secret not in short for disguise in _disguises(secret)]
        patterns = [*map(_spelled, long), *(rf"(?<!\w){re.escape(secret)}(?!\w)" for secret in short)]
        self._found = re.compile("|".join(patterns))
        self._anchors = [*map(_anchor, long), *short]

    def clean(self, text: str) -> str:
        # Nearly every text holds no secret, and `in` finds that out a hundred times faster than a pattern.
        for anchor in self._anchors:
            if anchor in text:
                return self._found.sub(REDACTED, text)
        return text


def _disguises(secret: str) -> list[str]:
    octets = secret.encode("utf-8", "surrogateescape")  # as the environment hands over bytes that are not UTF-8
    in_hex = octets.hex()
    return [secret, in_hex, in_hex.upper(), *(_base64_middle(octets, shift) for shift in range(3))]


def _base64_middle(octets: bytes, shift: int) -> str:
    """The base64 characters that depend on these bytes alone, when `shift` (mod 3) bytes stand before them.

    So a key is found inside the base64 of `user:key` or `Bearer key`. The characters it shares with its
    neighbours, at most one at each end, are left standing.
    """
    first = -(-shift * 8 // 6)
    end = (shift + len(octets)) * 8 // 6
    return base64.b64encode(bytes(shift) + octets).decode("ascii")[first:end]


def _anchor(disguise: str) -> str:
    """The longest part that every spelling of it has in common."""
    runs: list[str] = re.findall(r"[A-Za-z0-9]*", disguise)
    return max(runs, key=len)


def _spelled(disguise: str) -> str:
    """A pattern for it as it is, URL-encoded, as repr() and as JSON write it, and for mixtures of these."""
    return "".join(c if c.isascii() and c.isalnum() else _any_spelling(c) for c in disguise)


def _any_spelling(character: str) -> str:
    octets = character.encode("utf-8", "surrogateescape")
    in_url = "".join(f"%(?i:{octet:02x})" for octet in octets)
    spellings = [rf"\\*{re.escape(character)}", in_url, *map(re.escape, _escapes(character))]
    if character in _OTHERWISE:
        spellings.append(_OTHERWISE[character])
    return f"(?:{'|'.join(spellings)})"


_OTHERWISE = {" ": r"\+", "+": "-", "/": "_"}  # quote_plus; base64 for URLs


def _escapes(character: str) -> set[str]:
    r"""As repr() writes it, and as JSON does: \n, \xe9, \u00e9, a surrogate pair."""
    units = character.encode("utf-16-be", "surrogatepass")
    in_json = "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
    return {ascii(character)[1:-1], in_json, in_json.upper().replace("\\U", "\\u")} - {character}
