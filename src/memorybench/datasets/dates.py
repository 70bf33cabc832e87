"""Parses dates: the formats of datasets, and the ISO 8601 dates of audit files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from memorybench.core.errors import BadInput
from memorybench.text.sanitize import preview

_LONGMEMEVAL = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2}) \((?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\) (\d{1,2}):(\d{2})")
_LOCOMO = re.compile(r"\d{1,2}:\d{2} [ap]m on \d{1,2} \w+, \d{4}"), "%I:%M %p on %d %B, %Y"
_WHOLE_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_NUMBER = re.compile(r"\d{9,13}(\.\d+)?")
_FIRST_MILLISECONDS = 1e11
"""Numbers from here on are milliseconds: as seconds, this is the year 5138; as milliseconds, 1973."""


def read_date(value: Any, where: Callable[[], str], format: str | None = None) -> datetime | None:
    """Parse a date; return None for null and empty text.

    A number is seconds or milliseconds since 1970; `format` is a strptime format that replaces all others. A date
    without a time zone stays without. `where` is called only for an error, because finding a line takes time.
    """
    if value is None or value == "":
        return None
    try:
        return _parse(value, format)
    except (ValueError, OverflowError, OSError):
        raise BadInput(
            where(),
            f"invalid date {preview(value)}",
            expected=format or "ISO 8601, seconds since 1970, or a format in schema.dateFormat",
            remedy="correct it, or set schema.dateFormat",
        ) from None


def _parse(value: Any, format: str | None) -> datetime:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError
    text = str(value).strip()
    if format is not None:
        return datetime.strptime(text, format)
    if _NUMBER.fullmatch(text):
        seconds = float(text)
        return datetime.fromtimestamp(seconds / 1000 if seconds >= _FIRST_MILLISECONDS else seconds, UTC)
    if not isinstance(value, str):
        raise ValueError
    if match := _LONGMEMEVAL.fullmatch(text):
        year, month, day, hour, minute = map(int, match.groups())  # strptime takes three times as long
        return datetime(year, month, day, hour, minute)
    pattern, code = _LOCOMO
    if pattern.fullmatch(text):
        return datetime.strptime(text, code)
    return datetime.fromisoformat(text)


class Moment(NamedTuple):
    """A date of an audit file."""

    at: datetime
    whole_day: bool
    """It has no time of day, so it is neither before nor after another moment of that day."""

    @property
    def has_zone(self) -> bool:
        return self.at.tzinfo is not None


def read_moment(text: str) -> Moment | None:
    """Parse an ISO 8601 date; return None if the text is not one."""
    try:
        return Moment(datetime.fromisoformat(text), _WHOLE_DAY.fullmatch(text) is not None)
    except ValueError:
        return None


def any_zoned(dates: Iterable[str | None]) -> bool:
    """Return whether any of these dates has a time zone."""
    moments = (read_moment(date) for date in dates if date is not None)
    return any(moment.has_zone for moment in moments if moment is not None)


def is_earlier(one: Moment, other: Moment) -> bool:
    """Return whether `one` is certainly before `other`."""
    if one.whole_day or other.whole_day:
        return one.at.date() < other.at.date()
    return one.has_zone == other.has_zone and one.at < other.at
