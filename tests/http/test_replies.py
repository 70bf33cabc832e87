from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memorybench.http.replies import parse_retry_after

NOW = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "date", "seconds"),
    [
        (None, None, None),
        ("30", None, 30.0),
        ("2.5", None, 2.5),
        (" 7 ", None, 7.0),
        ("0", None, 0.0),
        ("-1", None, 0.0),
        ("1000000000", None, 1e9),
        ("1e9", None, 1e9),
        ("inf", None, None),
        ("nan", None, None),
        ("soon", None, None),
        ("", None, None),
        ("Fri, 02 Jan 2026 12:01:30 GMT", None, 90.0),
        ("Fri, 02 Jan 2026 12:01:30 -0000", None, 90.0),
        ("Fri, 02 Jan 2026 11:00:00 GMT", None, 0.0),
        ("Fri, 02 Jan 2026 12:01:30 GMT", "Fri, 02 Jan 2026 12:01:00 GMT", 30.0),
        ("Fri, 02 Jan 2026 12:01:30 GMT", "yesterday", 90.0),
        ("Fri, 99 Jan 2026 12:01:30 GMT", None, None),
        ("Fri, 02 Jan 999999999999 12:01:30 GMT", None, None),
    ],
)
def test_the_hint_is_read(value: str | None, date: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value, date=date, now=NOW) == seconds
