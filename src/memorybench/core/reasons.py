"""Counts failures by their message."""

from __future__ import annotations

import re
from collections import Counter

_VARYING = re.compile(r"(?<!\bHTTP )(?<![\w-])[\w-]*\d[\w-]*")
"""Matches a number or an id in a message, such as the id of a request, but not an HTTP status."""


class Reasons:
    """Counts messages. Messages that differ only in numbers and ids, such as the id of a request, count as the same.

    Messages with different HTTP statuses count as different.
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
        """The most frequent message and its count; ("", 0) if no message was added.

        Of several messages that count as the same, this is the one that was added first.
        """
        kind, number = next(iter(self._counts.most_common(1)), ("", 0))
        return self._examples.get(kind, ""), number
