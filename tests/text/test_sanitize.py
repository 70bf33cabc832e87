from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybench.text.sanitize import csv_safe, preview, sanitize


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain é 漢 😀", "plain é 漢 😀"),
        ("line\n\ttab", "line\n\ttab"),
        ("over\rwrite\x00\x08\x7f\x85", "overwrite"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1Htop", "top"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPdevice\x1b\\x", "x"),
        ("\x1b(Bx\x1b=y", "xy"),
        ("\x1b]never ended", "never ended"),
        ("\x9dended\nin another line\x07", "ended\nin another line"),
        ("\x1b", ""),
        ("abc\u202edef\u2066\u200f\u061c", "abcdef"),
        ("half \ud83d", "half \ufffd"),
    ],
)
def test_foreign_text_is_disarmed(text, cleaned):
    assert sanitize(text) == cleaned


@given(st.text(alphabet=st.characters() | st.sampled_from("\x1b\x9b[]\x07\\;m\ud800")))
def test_cleaned_text_can_be_printed_and_holds_no_controls(text):
    cleaned = sanitize(text)
    cleaned.encode()
    assert not any((c < " " and c not in "\n\t") or "\x7f" <= c <= "\x9f" for c in cleaned)


def test_a_text_full_of_openings_is_read_in_one_pass():
    assert sanitize("\x1b]" * 200_000) == ""


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_cell_that_could_be_a_formula_gets_a_quote_mark(cell):
    assert csv_safe(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["", "plain", "a=b", "1-2", "'=1", " x"])
def test_other_cells_stay_as_they_are(cell):
    assert csv_safe(cell) == cell


def test_a_value_is_shown_on_one_line_and_cut():
    assert preview("a\nb\u202e\x1b[31m") == '"a\\nb\\u001b[31m"'
    assert preview({"a": [1, None]}) == '{"a": [1, null]}'
    assert len(preview("x" * 1000)) == 60
