from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from memorybench.datasets.dates import read_date
from tests.doubles.refusals import refused


def date(value: Any, written: str | None = None) -> datetime | None:
    return read_date(value, lambda: "data.json:3: date", written)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2023-05-20", datetime(2023, 5, 20)),
        ("2023-05-20T02:21:00", datetime(2023, 5, 20, 2, 21)),
        ("2023-05-20T02:21:00Z", datetime(2023, 5, 20, 2, 21, tzinfo=UTC)),
        ("2023-05-20 02:21+02:00", datetime(2023, 5, 20, 2, 21, tzinfo=timezone(timedelta(hours=2)))),
        ("1:56 pm on 8 May, 2023", datetime(2023, 5, 8, 13, 56)),
        ("12:05 am on 28 February, 2024", datetime(2024, 2, 28, 0, 5)),
        ("2023/05/20 (Sat) 02:21", datetime(2023, 5, 20, 2, 21)),
        (1_700_000_000, datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("1700000000", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        (1_700_000_000_000, datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        (None, None),
        ("", None),
    ],
)
def test_dates_as_datasets_write_them(value: Any, expected: datetime | None) -> None:
    assert date(value) == expected


def test_a_custom_date_format_is_applied() -> None:
    assert date("20.05.2023 um 02:21", "%d.%m.%Y um %H:%M") == datetime(2023, 5, 20, 2, 21)
    assert refused(date, "2023-05-20", "%d.%m.%Y").expected == "%d.%m.%Y"


@pytest.mark.parametrize("value", ["yesterday", "31.02.2024", "2023-02-30", 12, True, [2023], {}])
def test_an_invalid_date_is_reported(value: Any) -> None:
    error = refused(date, value)
    assert error.where == "data.json:3: date"
    assert "schema.dateFormat" in error.remedy
