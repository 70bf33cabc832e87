"""Table cells as text."""

from __future__ import annotations

import pytest

from memorybench.core.measures import Measure
from memorybench.core.report_sections import Cell, Difference, Duration, Money, Part, State
from memorybench.reporting.formatting import cell_text, money, total_cost

SHARE = Measure(name="recall", value=0.623, n=80, planned=90, low=0.571, high=0.672)


@pytest.mark.parametrize(
    ("shows", "text"),
    [("value", "62.3%"), ("interval", "62.3% [57.1, 67.2]"), ("value_of_n", "62.3% of 80"), ("n", "80/90")],
)
def test_a_column_selects_the_part_of_a_measure(shows: Part, text: str) -> None:
    assert cell_text(SHARE, shows) == text


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (None, "–"),
        (Measure(name="recall", value=None, n=0, planned=9), "–"),
        (Measure(name="context_tokens", value=1234.4, n=3, planned=3, unit="tokens"), "1,234"),
        (Measure(name="found", value=0.44, n=3, planned=3, unit="memories"), "0.4"),
        (12345, "12,345"),
        (Duration(0.0216), "21.6 ms"),
        (Duration(125), "2 min 5 s"),
        (Duration(179.7), "3 min 0 s"),
        (Duration(None), "–"),
        (Money(0.0), "$0"),
        (Money(0.25), "$0.2500"),
        (Difference(0.112, 0.041, 0.183, significant=True), "+11.2 [+4.1, +18.3]*"),
        (Difference(-0.2), "-20.0"),
        (Difference(None), "–"),
        (Difference(0.0004, 0.0001, 0.0007, unit="s"), "+0.0004 [+0.0001, +0.0007]"),
        (Difference(-0.000042, unit="$"), "-0.000042"),
        (Measure(name="cost", value=0.000157, n=3, planned=3, unit="$"), "$0.000157"),
        ((State("pass", good=True),), "✓ pass"),
        ((State("pass", good=True, count=3), State("violated", good=False, count=2)), "✓ pass 3, ✗ violated 2"),
        ((State("pass", good=True, count=3),), "✓ pass 3"),
        ((), "–"),
    ],
)
def test_each_type_of_cell_has_its_format(cell: Cell, text: str) -> None:
    assert cell_text(cell) == text


def test_an_unknown_price_is_not_shown_as_zero() -> None:
    assert cell_text(Money(None)) == "?"
    assert "unknown" in money(None)


@pytest.mark.parametrize(
    ("known", "unknown", "possible", "text"),
    [
        (0.2, 0, 0.1, "$0.20 to $0.30"),
        (0.0, 2, 0.1, "$0 to $0.10 + ?"),
        (0.0, 2, 0.0, "?"),
        (12.34, 0, 0.001, "$12"),
    ],
)
def test_a_cost_is_a_range_only_if_its_ends_look_different(
    known: float, unknown: int, possible: float, text: str
) -> None:
    assert total_cost(known, unknown, possible) == text
