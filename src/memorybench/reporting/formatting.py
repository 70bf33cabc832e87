"""Formats numbers and table cells as text. A value that was not measured is shown as a dash, never as zero."""

from __future__ import annotations

from decimal import Decimal

from memorybench.core.measures import Measure, exceeds
from memorybench.core.report_sections import DECIMALS, Cell, Difference, Duration, Money, Part, Table
from memorybench.text.quantities import quantity

ABSENT = "–"
UNKNOWN_PRICE = "?"
_WHY_UNKNOWN = "a model has no known price, or a reply was lost or does not say how many tokens were used"
_MARKS = {True: "✓", False: "✗", None: "–"}


def cell_text(cell: Cell, shows: Part = "value") -> str:
    """Return a table cell as text; `shows` selects which part of a measure is shown."""
    match cell:
        case None:
            return ABSENT
        case str():
            return cell
        case int():
            return f"{cell:,}"
        case Measure():
            return _measure(cell, shows)
        case Duration():
            return ABSENT if cell.seconds is None else seconds(cell.seconds)
        case Money():
            return UNKNOWN_PRICE if cell.dollars is None else money(cell.dollars)
        case Difference():
            return _difference(cell)
    if not cell:
        return ABSENT
    alone = len(cell) == 1 and cell[0].count == 1
    return ", ".join(f"{_MARKS[state.good]} {state.name}{'' if alone else f' {state.count}'}" for state in cell)


def footnotes(table: Table) -> list[str]:
    """Return the line that explains the sign `?` for an unknown price, if a cell of the table has it; otherwise []."""
    cells = [cell for row in (*table.rows, *table.detail_rows) for cell in row]
    has_unknown_price = any(isinstance(cell, Money) and cell.dollars is None for cell in cells)
    return [f"{UNKNOWN_PRICE}: {_WHY_UNKNOWN}"] if has_unknown_price else []


def _measure(measure: Measure, shows: Part) -> str:
    if shows == "n":
        return f"{measure.n}/{measure.planned}"
    if shows == "interval":
        return with_interval(measure)
    if shows == "value_of_n" and measure.value is not None:
        return f"{value(measure)} of {measure.n}"
    return value(measure)


def _difference(difference: Difference) -> str:
    """Return a difference such as `+11.2 [+4.1, +18.3]*`, in percentage points or the measure's unit.

    The star marks a significant difference.
    """
    if difference.value is None:
        return ABSENT
    ends = [end for end in (difference.low, difference.high) if end is not None]
    value, *interval = (_signed(amount, difference.unit) for amount in (difference.value, *ends))
    return value + (f" [{', '.join(interval)}]" if len(interval) == 2 else "") + ("*" if difference.significant else "")


def _signed(amount: float, unit: str) -> str:
    text = f"{amount if unit else 100 * amount:+,.{DECIMALS.get(unit, 1)}f}"
    return text if text.strip("+-0.") else text[1:]


def share(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.1%}"


def value(measure: Measure) -> str:
    if measure.value is None:
        return ABSENT if measure.low is None else f"{100 * measure.low:.1f} to {share(measure.high)}"
    if measure.unit == "s":
        return seconds(measure.value)
    if measure.unit == "$":
        return f"${measure.value:,.{DECIMALS[measure.unit]}f}"
    return _amount(measure.value, measure.unit) if measure.unit else share(measure.value)


def with_interval(measure: Measure) -> str:
    """Return a text such as `62.3% [57.1, 67.2]`; only the value if there is no interval."""
    if measure.value is None or measure.low is None or measure.high is None:
        return value(measure)
    if measure.unit:
        low, high = (_amount(end, measure.unit) for end in (measure.low, measure.high))
        return f"{value(measure)} [{low}, {high}]"
    return f"{share(measure.value)} [{100 * measure.low:.1f}, {100 * measure.high:.1f}]"


def _amount(number: float, unit: str) -> str:
    # a search finds few memories: 0.4 per search is not 0
    return f"{number:,.{1 if unit == 'memories' else 0}f}"


def seconds(amount: float) -> str:
    if amount < 0.0995:
        return f"{1000 * amount:.1f} ms"
    if amount < 1:
        return f"{1000 * amount:.0f} ms"
    if amount < 120:
        return f"{amount:.1f} s"
    minutes, rest = divmod(round(amount), 60)
    return f"{minutes} min {rest} s"


def about(dollars: float) -> str:
    """Return an amount in dollars as text, with two significant digits."""
    rounded = float(f"{dollars:.2g}")
    if rounded >= 10 or not rounded:
        return f"${rounded:,.0f}"
    return f"${rounded:.2f}" if rounded == round(rounded, 2) else f"${Decimal(str(rounded)):f}"


def total_cost(known: float, unknown: int, possible: float = 0.0) -> str:
    """Return the cost of a run as text: the `known` dollars, and `+ ?` if it has `unknown` calls of unknown cost.

    If lost calls may have cost `possible` dollars more, return a range such as `$0.20 to $0.30`.
    """
    text = " to ".join(dict.fromkeys((about(known), about(known + possible))))
    if not unknown:
        return text
    return f"{text} + ?" if known or possible else "?"


def spent(cost: float | None, known: float, unknown: int, possible: float) -> str:
    """Return a sum of costs as text: `cost` or, if that is None, its `known` part.

    `unknown` is the number of calls of unknown cost; `possible` is what lost calls may have cost in addition.
    """
    text = (
        f"{money(known)} + ? ({quantity(unknown, 'call')} of unknown cost)" if cost is None and known else money(cost)
    )
    return f"{text}, possibly {money(possible)} more" if possible else text


def lost_calls(number: int) -> str:
    """Return a sentence without full stop about paid calls whose reply was lost; "" if there are none."""
    return f"{quantity(number, 'paid call')} may have been charged without a result, or twice" if number else ""


def money(dollars: float | None) -> str:
    if dollars is None:
        return f"unknown ({_WHY_UNKNOWN})"
    return f"${dollars:,.4f}" if dollars else "$0"


def beside(limit: float, value: float, digits: int = 3) -> str:
    """Return a value with `digits` decimals, or with more if these are needed to show on which side of the limit it is.

    A value that differs from the limit only by a rounding error is shown as the limit.
    """
    if not exceeds(value, limit) and not exceeds(limit, value):
        value = limit
    for more in range(digits, 17):
        text = f"{value:.{more}f}"
        if (float(text) < limit, float(text) > limit) == (value < limit, value > limit):
            return text
    return f"{value!r}"


def exact(limit: float) -> str:
    return f"{limit:g}" if float(f"{limit:g}") == limit else f"{limit!r}"
