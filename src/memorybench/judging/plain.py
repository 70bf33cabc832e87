"""Foreign text as a reader sees it, so that patterns need not know its disguises."""

from __future__ import annotations

import re
import unicodedata

from memorybench.text.sanitize import sanitize

_RAISED = re.compile(r"(?<=\d)[⁰¹²³⁴-⁹]+")
"""10³, which is not 103."""
_INVISIBLE = frozenset(("Cf", "Co"))
"""Categories of characters that show nothing, or nothing that two readers agree on."""


def plain(text: str) -> str:
    """Forms of one letter made one, what is invisible left out, tidied."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())  # has neither, and only one line
    unified = unicodedata.normalize("NFKC", _RAISED.sub(r"^\g<0>", sanitize(text)))
    return tidy("".join(character for character in unified if unicodedata.category(character) not in _INVISIBLE))


def tidy(text: str) -> str:
    """One blank at a time and no empty lines: no pattern can be led to walk a long gap again and again."""
    return "\n".join(tidied for line in text.splitlines() if (tidied := " ".join(line.split())))
