"""Regular expressions from files. Each search has a time limit, because some patterns take exponential time."""

from __future__ import annotations

from collections.abc import Callable

import regex

from memorybench.core.errors import Unreadable

from .sanitize import preview

SECONDS = 1.0


class Pattern:
    """A regular expression with the syntax of Python's `re`. Raises ValueError if it is invalid."""

    def __init__(self, text: str, *, ignore_case: bool = False) -> None:
        try:
            self._compiled = regex.compile(text, regex.IGNORECASE if ignore_case else 0)
        except (regex.error, RecursionError) as error:
            raise ValueError(f"invalid regular expression: {error}") from None

    def search(self, text: str) -> bool:
        """Return whether the pattern occurs in the text."""
        return self._find(self._compiled.search, text)

    def fullmatch(self, text: str) -> bool:
        """Return whether the pattern matches the whole text."""
        return self._find(self._compiled.fullmatch, text)

    def _find(self, find: Callable[..., object], text: str) -> bool:
        try:
            return find(text, timeout=SECONDS) is not None
        except TimeoutError:
            raise Unreadable(
                f"the regular expression {preview(self._compiled.pattern)} takes longer than {SECONDS:g} s;"
                " avoid repetitions inside of repetitions"
            ) from None
