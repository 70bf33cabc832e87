from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from memorybench.datasets.dates import read_date
from tests.datasets.described import config, item, opened
from tests.doubles.refusals import refused


def date(value: Any, written: str | Sequence[str] | None = None) -> datetime | None:
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


def test_the_first_date_format_that_fits_is_applied() -> None:
    formats = ["%d.%m.%Y %H:%M", "%d.%m.%Y", "%B %Y"]
    assert date("20.05.2023 02:21", formats) == datetime(2023, 5, 20, 2, 21)
    assert date("20.05.2023", formats) == datetime(2023, 5, 20)
    assert date("May 2023", formats) == datetime(2023, 5, 1)
    expected = refused(date, "2023-05-20", formats).expected
    assert all(format in expected for format in formats)


def test_a_word_of_a_date_is_skipped() -> None:
    assert date("2024年04月01日 周一 08:39", "%Y年%m月%d日 %? %H:%M") == datetime(2024, 4, 1, 8, 39)
    assert date("Montag 01.04.2024", "%? %d.%m.%Y") == datetime(2024, 4, 1)
    for other in ("2024年04月01日 08:39", "2024年04月01日 周一 下午 08:39"):
        assert refused(date, other, "%Y年%m月%d日 %? %H:%M").where == "data.json:3: date"


@pytest.mark.parametrize("written", ["%Y %", "%Y%? %m", ["%Y", "%Q"], [], ""])
def test_an_invalid_date_format_is_located_in_the_config(written: Any) -> None:
    assert "schema.dateFormat" in refused(config, {"dateFormat": written}).where


def test_dates_of_one_dataset_in_several_formats(tmp_path: Path) -> None:
    days = ["Mo 01.04.2024", "2024-05-02"]
    context = {"field": "sessions", "dateField": "days", "itemSchema": {"content": "text"}}
    schema = {"dateFormat": ["%? %d.%m.%Y", "%Y-%m-%d"], "context": context}
    dataset = opened(tmp_path, [item(days=days, sessions=[[{"text": "Hello."}]] * 2)], schema)
    assert [session.at for session in dataset.haystack("q1").sessions] == [datetime(2024, 4, 1), datetime(2024, 5, 2)]
    assert len({dataset.fingerprint, opened(tmp_path, [item()]).fingerprint}) == 2


@pytest.mark.parametrize("value", ["yesterday", "31.02.2024", "2023-02-30", 12, True, [2023], {}])
def test_an_invalid_date_is_reported(value: Any) -> None:
    error = refused(date, value)
    assert error.where == "data.json:3: date"
    assert "schema.dateFormat" in error.remedy
