"""Figures of suites that have one subject and many measures: a row for each measure, then the same by group."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memorybench.core.measures import Measure
from memorybench.text.sanitize import sanitize

from . import figures
from .markdown import table
from .summary import Result, Summary

if TYPE_CHECKING:
    from rich.console import Console

_MEANING = "what it tells"
_WIDE = 120
"""Columns from which on there is room for the meaning, too."""
_MOST_GROUPS = 30
"""More rows than a person reads; report.json has them all."""


@dataclass(frozen=True, slots=True)
class Card:
    """What is shown of a suite, in the order of a reader's interest."""

    rows: Mapping[str, str]
    """Measure → what it tells, in a few words."""
    by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Label → the measures shown by it."""
    short: Mapping[str, str] = field(default_factory=dict)
    """What a measure is called at the head of a column."""


Table = tuple[str, list[list[str]]]
"""Title, and rows of which the first is the head."""


def tables(summary: Summary, card: Card) -> Iterator[Table]:
    for benchmark in summary.benchmarks:
        for result in summary.overall(benchmark):
            yield f"{benchmark} × {result.subject}", _overall(result, card)
            for label, names in card.by.items():
                rows = _grouped(summary, result, label, names, card.short)
                if len(rows) > 2:  # a single group tells nothing new
                    yield f"by {label.replace('_', ' ')}", rows


def _overall(result: Result, card: Card) -> list[list[str]]:
    rows = [["measure", "value [95%]", "n", _MEANING]]
    for name, meaning in card.rows.items():
        found = result.measure(name)
        if found is not None and (found.planned or found.n):
            better = "" if found.higher_is_better else " (lower is better)"
            rows.append([name, figures.with_interval(found), f"{found.n}/{found.planned}", meaning + better])
    return rows


def _grouped(
    summary: Summary, whole: Result, label: str, names: tuple[str, ...], short: Mapping[str, str]
) -> list[list[str]]:
    groups = [
        result
        for result in summary.grouped(whole.benchmark)
        if result.subject == whole.subject and label in result.group
    ]
    shown = [name for name in names if any((m := group.measure(name)) and m.n for group in groups)]
    rows = [["", *(short.get(name, name) for name in shown)]]
    for group in sorted(groups, key=lambda group: _natural(group.group[label]))[:_MOST_GROUPS]:
        found = [group.measure(name) for name in shown]
        if any(measure and measure.n for measure in found):
            rows.append([group.group[label], *(_with_n(measure) for measure in found)])
    return rows


def _with_n(measure: Measure | None) -> str:
    """`50.0% of 2`: a share tells little without what it is a share of."""
    if measure is None or measure.value is None:
        return figures.ABSENT
    return f"{figures.value(measure)} of {measure.n}"


def _natural(text: str) -> tuple[int, float, str]:
    """10 after 9, and words after numbers."""
    leading = re.match(r"\d+", text)
    return (0, float(leading[0]), text) if leading else (1, 0.0, text)


def _fitting(rows: list[list[str]], width: int) -> list[list[str]]:
    """What a terminal has room for: first without the numbers behind `of`, then without the last columns. The reports
    have them all."""
    if rows[0][-1] == _MEANING or _width(rows) <= width:
        return rows
    rows = [[cell.partition(" of ")[0] for cell in row] for row in rows]
    while _width(rows) > width and len(rows[0]) > 2:
        rows = [row[:-1] for row in rows]
    return rows


def _width(rows: list[list[str]]) -> int:
    return 1 + sum(3 + max(map(len, column)) for column in zip(*rows, strict=True))


def show_card(out: Console, summary: Summary, card: Card) -> None:
    from rich import box
    from rich.table import Table as Drawn

    for title, rows in tables(summary, card):
        head, *body = _fitting(rows, out.width)
        drawn = Drawn(box=box.ROUNDED, title=sanitize(title), title_justify="left", title_style="bold")
        shown = [place for place, heading in enumerate(head) if heading != _MEANING or out.width >= _WIDE]
        for place in shown:
            number = place > 0 and head[place] != _MEANING
            drawn.add_column(head[place], justify="right" if number else "left", no_wrap=True)
        for row in body:
            drawn.add_row(*(sanitize(row[place]) for place in shown))
        out.print()
        out.print(drawn)


def card_markdown(summary: Summary, card: Card) -> list[str]:
    parts = []
    for title, rows in tables(summary, card):
        parts += [f"### {sanitize(title)}", table(rows)]
    return parts
