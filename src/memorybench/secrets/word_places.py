"""Finds the parts of a text in which a rule about words may match, so that its pattern is not tried everywhere."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence

_CANDIDATE = re.compile(r"\d\S{0,40}|[!@#$%^&*+=~?]\w")
_SPELLED = re.compile(r"(?:(?<=\s)\S ){5}")
_REST_OF_TOKEN = re.compile(r"\S*")
_LETTER = re.compile(r"[^\W\d_]")
_SHORTEST_TOKEN, _LONG_NUMBER = 6, 16
_QUOTE = re.compile(r"[\"'`“‘«„]\w{6}")
_BEFORE, _AFTER = 120, 220
"""Numbers of characters before and after a word in which its value may be."""

Windows = list[tuple[int, int]]


def find_candidates(text: str) -> list[int]:
    """Return the places of digits and signs such as `!`, which every value has unless it consists of words."""
    return [match.start() for match in _CANDIDATE.finditer(text)]


def find_quotes(text: str) -> list[int]:
    """Return the places where a quoted word of at least six letters or digits begins."""
    return [match.start() for match in _QUOTE.finditer(text)]


def find_tokens(text: str) -> list[int]:
    """Return the places in tokens that may be a password, including tokens that are spelled letter by letter."""
    found = []
    for at in find_candidates(text):
        before = text[max(at - _SHORTEST_TOKEN, 0) : at].split(" ")[-1]
        rest = _REST_OF_TOKEN.match(text, at)
        assert rest is not None
        token = before + rest[0]
        if text[at] == "*" and not before.strip("*"):
            continue  # emphasis in Markdown
        if len(token) >= _SHORTEST_TOKEN and (len(token) >= _LONG_NUMBER or _LETTER.search(token)):
            found.append(at)
    spelled = [match.start() for match in _SPELLED.finditer(text)]
    return sorted(found + spelled) if spelled else found


class WordPlaces:
    """Finds the words of rules in a text. Places are cached, because many rules have the same words."""

    def __init__(self, text: str, words: Iterable[str]) -> None:
        self._lowered = text.replace("İ", "I").lower()  # İ is the only letter that becomes two
        self._present = {word for word in words if word in self._lowered}
        self._places: dict[str, list[int]] = {}

    def has_any(self, words: Sequence[str]) -> bool:
        return not self._present.isdisjoint(words)

    def windows(self, words: Sequence[str], candidates: Sequence[int] | None) -> Windows:
        """Return (start, end) of the parts of the text around the words; with `candidates`, only those near one.

        Parts that overlap are joined.
        """
        windows: Windows = []
        for at in sorted({at for word in words if word in self._present for at in self._find(word)}):
            if candidates is not None:
                first = bisect_left(candidates, at - _BEFORE)
                if first >= len(candidates) or candidates[first] >= at + _AFTER:
                    continue
            start, end = max(at - _BEFORE, 0), min(at + _AFTER, len(self._lowered))
            if windows and start <= windows[-1][1]:
                windows[-1] = (windows[-1][0], end)
            else:
                windows.append((start, end))
        return windows

    def _find(self, word: str) -> list[int]:
        places = self._places.get(word)
        if places is None:
            places = self._places[word] = []
            at = self._lowered.find(word)
            while at >= 0:
                places.append(at)
                at = self._lowered.find(word, at + len(word))
        return places
