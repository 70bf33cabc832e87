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
    """None: a price is unknown."""


DECIMALS: Mapping[str, int] = {"s": 3, "$": 4}
"""Of a difference, by the unit of the measure; one for others."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two values of a measure."""

    value: float | None
    low: float | None = None
    high: float | None = None
    significant: bool = False
    unit: str = ""
    """As of the measure; "": a difference of shares, shown in percentage points."""


@dataclass(frozen=True, slots=True)
class State:
    """A named result, and how often it occurred."""

    name: str
    good: bool | None
    """None: neither good nor bad, such as skipped."""
    count: int = 1


Cell = str | int | None | Measure | Duration | Money | Difference | tuple[State, ...]
"""None: not measured."""
Part = Literal["value", "interval", "value_of_n", "n"]
"""What a column shows of a measure: `62.3%`, `62.3% [57.1, 67.2]`, `62.3% of 80` or `80/80`."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    heading: str
    shows: Part = "value"
    priority: int = 0
    """0: always shown in full. Where a terminal is too narrow, the others are shortened, then the highest dropped."""
    align: Literal["left", "right"] = "right"
    wrap: bool = False


def text_column(heading: str, *, priority: int = 0, wrap: bool = False) -> Column:
    return Column(heading, priority=priority, align="left", wrap=wrap)


Row = tuple[Cell, ...]


def columns_and_rows(
    items: Iterable[T], *columns: tuple[Column, Callable[[T], Cell]]
) -> tuple[tuple[Column, ...], tuple[Row, ...]]:
    """Return the columns and a row per item, from each column and the function that returns its cell for an item."""
    rows = tuple(tuple(cell(item) for _, cell in columns) for item in items)
    return tuple(column for column, _ in columns), rows


@dataclass(frozen=True, slots=True)
class Table:
    """A section that is a table."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    detail_rows: tuple[Row, ...] = ()
    """Further rows for documents; a terminal leaves them out."""
    level: int = 2
    """The heading's level in documents."""
    detail: bool = False
    """Whether the section is for documents only."""


@dataclass(frozen=True, slots=True)
class Case:
    """One question or item, with its texts."""

    heading: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]
    """Names and texts, in order; a name may occur more than once."""
    command: str = ""
    """The command that shows more of it."""


@dataclass(frozen=True, slots=True)
class Cases:
    """Single trials with question, expected answer and returned answer."""

    title: str
    cases: tuple[Case, ...]
    total: int
    """How many there are; more than `cases` where only the worst are included."""
    if_empty: str
    detail: bool = True


@dataclass(frozen=True, slots=True)
class Text:
    """A longer text with its line breaks, such as a prompt."""

    title: str
    text: str
    detail: bool = False


@dataclass(frozen=True, slots=True)
class Notes:
    """Lines of text, or `(name, definition)` pairs."""

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
    """What every format of a report shows."""

    title: str
    sections: tuple[Section, ...]
    verdict: tuple[str, ...] = ()
    """One sentence per subject."""
    warnings: tuple[str, ...] = ()
    """What a reader must know before relying on the figures."""
    document: Mapping[str, Any] = field(default_factory=dict)
    """The content of report.json, which `--json` prints (docs/report.schema.json)."""
