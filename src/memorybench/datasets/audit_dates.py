"""Dates of an audit dataset: ISO 8601, with or without a time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

_WHOLE_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


class Moment(NamedTuple):
    at: datetime
    whole_day: bool
    """It has no time of day, so it is neither before nor after another moment of that day."""

    @property
    def zoned(self) -> bool:
        return self.at.tzinfo is not None


def read_moment(text: str) -> Moment | None:
    """Parses an ISO 8601 date; None: the text is not a date."""
    try:
        return Moment(datetime.fromisoformat(text), _WHOLE_DAY.fullmatch(text) is not None)
    except ValueError:
        return None


def zoned(dates: Iterable[str | None]) -> bool:
    """Returns whether any of these dates has a time zone."""
    moments = (read_moment(date) for date in dates if date is not None)
    return any(moment.zoned for moment in moments if moment is not None)


def earlier(one: Moment, other: Moment) -> bool:
    """Returns whether `one` is certainly before `other`."""
    if one.whole_day or other.whole_day:
        return one.at.date() < other.at.date()
    return one.zoned == other.zoned and one.at < other.at
