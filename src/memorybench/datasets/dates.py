"""Parses dates: the formats of datasets, and the ISO 8601 dates of audit files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from memorybench.core.errors import BadInput
from memorybench.text.sanitize import preview

_LONGMEMEVAL = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2}) \((?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\) (\d{1,2}):(\d{2})")
_LOCOMO = re.compile(r"\d{1,2}:\d{2} [ap]m on \d{1,2} \w+, \d{4}"), "%I:%M %p on %d %B, %Y"
_WHOLE_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_NUMBER = re.compile(r"\d{9,13}(\.\d+)?")
_COMPACT = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[01]\d|2[0-3])(?:[0-5]\d)?")
"""A date without separators, such as 202404010930, which may also be a number of seconds or milliseconds."""
_FIRST_MILLISECONDS = 1e11
"""A number of this size or more is milliseconds since 1970, a smaller one seconds. 1e11 seconds is in the year 5138,
1e11 milliseconds in 1973."""


Formats = str | Sequence[str] | None
"""A strptime format, or several, of which the first that fits is used; None: the usual formats. `%?` is a word that is
skipped."""
_SKIPPED = "%?"
_strptime = lru_cache(maxsize=4096)(datetime.strptime)
"""strptime with a cache, because it is slow and the same dates occur again in other parts of a history."""


def read_date(value: Any, where: Callable[[], str], formats: Formats = None) -> datetime | None:
    """Parse a date; return None for null and empty text.

    With `formats`, only these are accepted. Without, a number is seconds or milliseconds since 1970; a number that may
    also be a date without separators is an error. A date without a time zone stays without. `where` is called only for
    an error, because finding a line takes time.
    """
    if value is None or value == "":
        return None
    formats = (formats,) if isinstance(formats, str) else formats
    for format in formats or (None,):
        try:
            return _parse(value, format)
        except (ValueError, OverflowError, OSError):
            continue
    example = "%Y%m%d%H%M" if len(str(value).strip()) == 12 else "%Y%m%d%H"
    hint = f": {example}" if _COMPACT.fullmatch(str(value).strip()) else ""
    raise BadInput(
        where(),
        f"ambiguous date {preview(value)}" if hint and not formats else f"invalid date {preview(value)}",
        expected=" or ".join(formats) if formats else "ISO 8601, seconds since 1970, or a format in schema.dateFormat",
        remedy="correct it, or add its format to schema.dateFormat"
        if formats
        else f"correct it, or set schema.dateFormat{hint}",
    )


def check_format(format: str) -> None:
    """Raise ValueError if strptime does not accept the format. `%?` is allowed as a word between spaces."""
    known = " ".join(word for word in format.split() if word != _SKIPPED)
    if not known:
        raise ValueError("the format has no code such as %Y")
    if _SKIPPED in known:
        raise ValueError("%? must be a separate word, between spaces")
    datetime.strptime(datetime(2001, 2, 3, 4, 5, 6).strftime(known), known)


def _without_skipped(text: str, format: str) -> tuple[str, str]:
    """Return `15 March` and `%d %B` for the date `Fri 15 March` and the format `%? %d %B`."""
    words, codes = text.split(), format.split()
    if len(words) != len(codes):
        raise ValueError
    known = [(word, code) for word, code in zip(words, codes, strict=True) if code != _SKIPPED]
    return " ".join(word for word, _ in known), " ".join(code for _, code in known)


def _parse(value: Any, format: str | None) -> datetime:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError
    text = str(value).strip()
    if format is not None:
        if _SKIPPED in format:
            text, format = _without_skipped(text, format)
        return _strptime(text, format)
    if _COMPACT.fullmatch(text):
        raise ValueError
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
    """Whether the date has no time of day. It is then neither before nor after another moment of its day."""

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
    """Return whether `one` is before `other`; False if that is not certain, such as on the same day."""
    if one.whole_day or other.whole_day:
        return one.at.date() < other.at.date()
    return one.has_zone == other.has_zone and one.at < other.at
