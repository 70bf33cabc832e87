"""Counts failures by their message."""

from __future__ import annotations

import re
from collections import Counter

_VARYING = re.compile(r"(?<!\bHTTP )(?<![\w-])[\w-]*\d[\w-]*")
"""A number or an id, such as that of a request; not the status of a reply."""


class Reasons:
    """Counts messages. Messages that differ only in numbers and ids, such as that of a request, count as one.

    Those with another HTTP status do not.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, str] = {}

    def add(self, message: str) -> None:
        kind = _VARYING.sub("#", message)
        self._counts[kind] += 1
        self._examples.setdefault(kind, message)

    @property
    def most_frequent(self) -> tuple[str, int]:
        """The most frequent message and its count; ("", 0) if there is none.

        Of messages that count as one, it is the first.
        """
        kind, number = next(iter(self._counts.most_common(1)), ("", 0))
        return self._examples.get(kind, ""), number
