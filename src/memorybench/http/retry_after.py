"""The Retry-After header (RFC 9110, 10.2.3), and what servers make of it."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def parse_retry_after(value: str | None, *, date: str | None, now: datetime) -> float | None:
    """Seconds to wait; None: the server did not say, or not so that it can be understood.

    A date is measured from the reply's own Date header where there is one: the two clocks may differ.
    Never negative, and not capped: how long is too long is for the one who waits to decide.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        until = _moment(value)
        if until is None:
            return None
        seconds = (until - (_moment(date) or now)).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _moment(text: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text or "")
    except (ValueError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
