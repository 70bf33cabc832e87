"""A report as data: suites build it, renderers (`reporting/`) format it.

A report is a title, a verdict, warnings and sections. Sections contain values, not text: the renderer decides how a
measure, a duration or an amount of money looks. A new kind of section is one class here, added to `Section`, one
case in `reporting/terminal.py` and `reporting/markdown.py` (mypy says if it is missing), and one in
`reporting/html/sections.html` (a report with the section fails without it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from .measures import Measure

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Duration:
    """A cell that shows a time."""

    seconds: float | None


@dataclass(frozen=True, slots=True)
class Money:
    """A cell that shows an amount of money."""

    dollars: float | None
    """None if a price is unknown."""


DECIMALS: Mapping[str, int] = {"s": 4, "$": 6}
"""How many decimal places a difference is shown with, by the unit of the measure; 1 for units not listed."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two values of a measure, with its interval."""

    value: float | None
    low: float | None = None
    high: float | None = None
    significant: bool = False
    unit: str = ""
    """The unit of the measure; empty for a difference of shares, which is shown in percentage points."""


@dataclass(frozen=True, slots=True)
class State:
    """A named result, and how often it occurred."""

    name: str
    good: bool | None
    """Whether the result is good; None if it is neither good nor bad, such as skipped."""
    count: int = 1


Cell = str | int | None | Measure | Duration | Money | Difference | tuple[State, ...]
"""The content of a cell of a table; None means not measured and is shown as a dash."""
Part = Literal["value", "interval", "value_of_n", "n"]
"""Which part of a measure a column shows: `62.3%`, `62.3% [57.1, 67.2]`, `62.3% of 80` or `80/80`."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    heading: str
    shows: Part = "value"
    priority: int = 0
    """0: always shown in full. If the terminal is too narrow, columns above 0 are shortened; if that is not enough,
    they are left out, the highest number first."""
    align: Literal["left", "right"] = "right"
    wrap: bool = False


def text_column(heading: str, *, priority: int = 0, wrap: bool = False) -> Column:
    return Column(heading, priority=priority, align="left", wrap=wrap)


Row = tuple[Cell, ...]


def columns_and_rows(
    items: Iterable[T], *columns: tuple[Column, Callable[[T], Cell]]
) -> tuple[tuple[Column, ...], tuple[Row, ...]]:
    """Return columns and one row per item. Each column comes with the function that returns its cell for an item."""
    rows = tuple(tuple(cell(item) for _, cell in columns) for item in items)
    return tuple(column for column, _ in columns), rows


@dataclass(frozen=True, slots=True)
class Table:
    """A section that is a table."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    detail_rows: tuple[Row, ...] = ()
    """Further rows, which report files show and the terminal does not."""
    level: int = 2
    """The level of the heading in report files: 2 for `##`."""
    detail: bool = False
    """Whether only report files show the section, and the terminal does not."""


@dataclass(frozen=True, slots=True)
class Case:
    """One trial of the section `Cases`, with its texts."""

    heading: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]
    """Pairs of name and text, in order. A name may occur more than once."""
    command: str = ""
    """The command line that shows more about the case; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Cases:
    """A section that lists single trials with question, expected answer and returned answer."""

    title: str
    cases: tuple[Case, ...]
    total: int
    """How many trials there are. This is more than the length of `cases` if the section lists only the worst trials."""
    if_empty: str
    detail: bool = True


@dataclass(frozen=True, slots=True)
class Text:
    """A section with a longer text, shown with its line breaks, such as a prompt."""

    title: str
    text: str
    detail: bool = False


@dataclass(frozen=True, slots=True)
class Notes:
    """A section of lines of text, or of `(name, definition)` pairs."""

    lines: tuple[str | tuple[str, str], ...]
    title: str = ""
    warning: bool = False
    detail: bool = False


@dataclass(frozen=True, slots=True)
class Provenance:
    """How the run was made: its id, subjects, data and models. A terminal shows it as the header."""

    facts: Mapping[str, str]
    title: str = ""
    detail: bool = False


Section = Table | Cases | Text | Notes | Provenance


@dataclass(frozen=True, slots=True)
class Report:
    """The content of a report, the same for every format."""

    title: str
    sections: tuple[Section, ...]
    verdict: tuple[str, ...] = ()
    """The main result, one sentence per subject."""
    warnings: tuple[str, ...] = ()
    """Warnings that a reader must know before relying on the figures."""
    document: Mapping[str, Any] = field(default_factory=dict)
    """The content of report.json, which `--json` prints (docs/report.schema.json)."""
