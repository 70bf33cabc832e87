"""Parses the date formats of datasets."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.text.sanitize import preview

_WRITTEN = (
    (re.compile(r"\d{4}/\d{1,2}/\d{1,2} \(\w+\) \d{1,2}:\d{2}"), "%Y/%m/%d (%a) %H:%M"),  # LongMemEval
    (re.compile(r"\d{1,2}:\d{2} [ap]m on \d{1,2} \w+, \d{4}"), "%I:%M %p on %d %B, %Y"),  # LoCoMo
)
_NUMBER = re.compile(r"\d{9,13}(\.\d+)?")
_FIRST_MILLISECONDS = 1e11
"""Seconds reach this in the year 5138, milliseconds did in 1973."""


def read_date(value: Any, where: Callable[[], str], written: str | None = None) -> datetime | None:
    """Parses a date; None for null and empty text.

    A number is seconds or milliseconds since 1970; `written` is a strptime format that replaces all others. A date
    without a time zone stays without. `where` is called only for an error, because finding a line takes time.
    """
    if value is None or value == "":
        return None
    try:
        return _read(value, written)
    except (ValueError, OverflowError, OSError):
        raise BadInput(
            where(),
            f"invalid date {preview(value)}",
            expected=written or "ISO 8601, seconds since 1970, or a format in schema.dateFormat",
            remedy="correct it, or set schema.dateFormat",
        ) from None


def _read(value: Any, written: str | None) -> datetime:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError
    text = str(value).strip()
    if written is not None:
        return datetime.strptime(text, written)
    if _NUMBER.fullmatch(text):
        seconds = float(text)
        return datetime.fromtimestamp(seconds / 1000 if seconds >= _FIRST_MILLISECONDS else seconds, UTC)
    if not isinstance(value, str):
        raise ValueError
    for shape, code in _WRITTEN:
        if shape.fullmatch(text):
            return datetime.strptime(text, code)
    return datetime.fromisoformat(text)
