"""Finds the parts of a text in which a rule about words may match, so that its pattern is not tried everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class WordPlaces:
    """Finds the words of rules in a text. Results are cached, because many rules have the same words.

    `before` and `after` are the numbers of characters around a word in which a match may be.
    """

    def __init__(self, text: str, words: Iterable[str], *, before: int, after: int) -> None:
        self._before, self._after = before, after
        self._lowered = text.replace("İ", "I").lower()  # İ is the only letter that becomes two
        self._present = {word for word in words if word in self._lowered}
        self._windows: dict[tuple[str, ...], Sequence[tuple[int, int]]] = {}

    def windows(self, words: tuple[str, ...]) -> Sequence[tuple[int, int]]:
        """Return (start, end) of the parts of the text around the words. Parts that overlap are joined."""
        if words not in self._windows:
            windows: list[tuple[int, int]] = []
            for at in sorted({at for word in self._present.intersection(words) for at in self._find(word)}):
                start, end = max(at - self._before, 0), min(at + self._after, len(self._lowered))
                if windows and start <= windows[-1][1]:
                    windows[-1] = (windows[-1][0], end)
                else:
                    windows.append((start, end))
            self._windows[words] = windows
        return self._windows[words]

    def _find(self, word: str) -> Iterable[int]:
        at = self._lowered.find(word)
        while at >= 0:
            yield at
            at = self._lowered.find(word, at + len(word))
