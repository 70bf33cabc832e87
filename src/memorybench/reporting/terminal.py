"""Renders reports for a terminal with rich, which is imported late so that `--help` stays fast."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from memorybench.core.report_sections import (
    Case,
    Cases,
    Cell,
    Column,
    Notes,
    Part,
    Provenance,
    Report,
    Section,
    Table,
    Text,
)
from memorybench.text.quantities import quantity
from memorybench.text.sanitize import PLAIN, sanitize, shorten

from .formatting import cell_text, footnotes
from .typed_commands import PROGRAM, as_typed

if TYPE_CHECKING:
    from rich.console import Console

_WRAPPED_WIDTH = 24
"""The expected width of a column that wraps, in characters."""
_NARROWEST = 10
"""The least width of a column that wraps, in characters."""

_COMMAND = re.compile(rf"(`{PROGRAM} [^`]+`|(?<=: ){PROGRAM} [a-z].*$)")
"""Matches a command in a text: in backticks, or after a colon at the end of the text."""
_LAST_COMMAND = re.compile(rf": {PROGRAM} [a-z].*$")
_LONGEST_CELL, _LONGEST_TEXT = 10_000, 1_000_000
"""The most characters that are printed of a cell or note, and of a text such as a prompt. More would take minutes."""


def console() -> Console:
    from rich.console import Console

    out = Console(highlight=False, emoji=False, markup=False)
    if not out.width:  # COLUMNS=0: unknown
        out.width = 80
    return out


def whole_in(run: Path) -> str:
    """Return a phrase for where all columns of a run's tables can be seen, such as `a wider terminal or report.md`."""
    return "a wider terminal or report.md" if (run / "report.md").exists() else "a wider terminal"


def _clean(out: Console, text: str, longest: int = _LONGEST_CELL) -> str:
    """Return a text that the console can print: shortened, without control characters, in its encoding."""
    text = sanitize(shorten(text, longest))
    if out.encoding.startswith("utf"):
        return text
    return text.translate(PLAIN).encode(out.encoding, "replace").decode(out.encoding)


def show_header(out: Console, title: str, facts: Mapping[str, str]) -> None:
    """Show facts about a run in a box, such as its id and settings."""
    from rich import box
    from rich.align import Align
    from rich.table import Table as RichTable

    drawn = RichTable(box=box.ROUNDED, show_header=True, header_style="bold", width=min(out.width, 80))
    drawn.add_column(Align.center(title), overflow="fold")
    for name, fact in facts.items():
        drawn.add_row(f"{name}: {_clean(out, fact)}")
    out.print(drawn)


def show_hints(out: Console, hints: Mapping[str, str]) -> None:
    """Show commands with their purposes, each on one line if it fits."""
    for command, purpose in ((sanitize(as_typed(command)), purpose) for command, purpose in hints.items()):
        line = f"  {command}    {purpose}"
        broken = f"  {_break_before_flags(command, out.width)}\n      {purpose}"
        out.print(line if len(line) <= out.width else broken, soft_wrap=True)


def _break_before_flags(command: str, width: int) -> str:
    """Return a command, broken before flags into lines that fit the width. All lines but the last end with a backslash.

    A command with a quote is not broken.
    """
    lines: list[str] = []
    for part in [command] if "'" in command else re.split(" (?=--)", command):
        if lines and len(lines[-1]) + len(part) + 7 <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return " \\\n    ".join(lines)


def show_report(out: Console, report: Report, whole_in: str = "report.md", place: Sequence[str] = ()) -> None:
    """Show a report, except its detail sections and the header, which is shown when a run begins.

    `whole_in` says where all columns of the tables can be seen. `place` are the flags, such as --results, that the
    commands of warnings need to find the run.
    """
    for line in report.verdict:
        out.print()
        _print_text(out, line, "bold")
    for section in report.sections:
        if not section.detail:
            show_section(out, section, whole_in)
    for line in report.warnings:
        _print_text(out, f"{line} {shlex.join(place)}" if place and _LAST_COMMAND.search(line) else line, "yellow")


def _print_text(out: Console, text: str, style: str) -> None:
    """Print a text. If it is too long for one line, commands in it are put on separate lines, to be copied."""
    text = _clean(out, text)
    typed = as_typed(text)
    if len(typed) <= out.width:
        out.print(typed, style=style)
        return
    for place, part in enumerate(_COMMAND.split(text)):
        if place % 2:
            out.print(f"  {_break_before_flags(as_typed(part.strip('`')), out.width)}", style=style, soft_wrap=True)
        elif part.strip(" ."):
            out.print(as_typed(part.strip()), style=style)


def show_section(out: Console, section: Section, whole_in: str = "report.md") -> None:
    match section:
        case Table():
            out.print()
            show_table(out, section, whole_in)
        case Text():
            out.print()
            show_text(out, section)
        case Notes():
            if not section.warning:
                out.print()
            for line in section.lines:
                text = ": ".join(line) if isinstance(line, tuple) else line
                _print_text(out, text, "bold yellow" if section.warning else "")
        case Cases():  # our suites mark them as details, but a suite of another package may show them
            for one in section.cases:
                show_case(out, one)
            out.print(quantity(len(section.cases), "trial") if section.cases else section.if_empty)
        case Provenance():
            pass  # the header shows the facts
        case _:
            assert_never(section)


def show_table(out: Console, table: Table, whole_in: str = "a wider terminal") -> None:
    """Show the columns of a table that fit the terminal; `whole_in` says where the others can be seen."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text as RichText

    shown = _fitting_columns(out, table)
    drawn = RichTable(
        box=box.ROUNDED, title_justify="left", title_style="bold", show_header=any(c.heading for c in table.columns)
    )
    for _, column in shown:
        drawn.add_column(_clean(out, column.heading), justify=column.align, no_wrap=not column.wrap, overflow="fold")
    for row in table.rows:
        drawn.add_row(
            *(RichText(_text(out, row[place], column.shows), style=_style(row[place])) for place, column in shown)
        )
    out.print(_clean(out, table.title), style="bold")  # rich would wrap its own title at the table's width
    out.print(drawn)
    hidden = len(table.columns) - len(shown)
    if hidden:
        out.print(f"{hidden} more column{'' if hidden == 1 else 's'} in {whole_in}", style="dim")
    for note in footnotes(replace(table, detail_rows=())):
        out.print(_clean(out, note), style="dim")


def _style(cell: Cell) -> str:
    return "red" if isinstance(cell, tuple) and any(state.good is False for state in cell) else ""


def _text(out: Console, cell: Cell, shows: Part) -> str:
    return _clean(out, cell_text(cell, shows))


def _fitting_columns(out: Console, table: Table) -> list[tuple[int, Column]]:
    """Return the columns that fit the terminal, with their indexes.

    If the terminal is too narrow, headings are broken into lines, then intervals and counts are left out, then
    columns of low priority. If that is not enough, texts are wrapped and columns dropped from the right: a number is
    never broken.
    """
    columns = list(enumerate(table.columns))
    content_width = cache(partial(_content_width, out, table))
    while True:
        broken = [(place, replace(one, heading=re.sub("([_-])| ", r"\1\n", one.heading))) for place, one in columns]
        short = [(place, _shortened(one)) for place, one in broken]
        for form in (columns, broken, short):
            if _width(out, form, content_width) <= out.width:
                return form
        if not any(column.priority for _, column in columns):
            break
        columns.remove(max(columns, key=lambda numbered: (numbered[1].priority, numbered[0])))
    wrapped = [(place, replace(one, wrap=one.wrap or one.align == "left")) for place, one in broken]
    while _width(out, wrapped, content_width, _NARROWEST) > out.width and len(wrapped) > 2:
        wrapped.pop()
    return wrapped


def _shortened(column: Column) -> Column:
    """Return a column of low priority with values only, without intervals and counts; other columns unchanged."""
    if not column.priority or column.shows not in ("interval", "value_of_n"):
        return column
    return replace(column, shows="value", heading=re.sub(r"\s*\[95%\]", "", column.heading))


def _width(
    out: Console,
    columns: Sequence[tuple[int, Column]],
    content_width: Callable[[int, Part], int],
    wrapped: int = _WRAPPED_WIDTH,
) -> int:
    from rich.cells import cell_len

    total = 1
    for place, column in columns:
        heading = max(map(cell_len, _clean(out, column.heading).split("\n")))
        longest = max(heading, content_width(place, column.shows))
        total += 3 + (min(longest, wrapped) if column.wrap else longest)
    return total


def _content_width(out: Console, table: Table, place: int, shows: Part) -> int:
    """Return the width of the longest cell of a column, without its heading."""
    from rich.cells import cell_len

    return max((cell_len(_text(out, row[place], shows)) for row in table.rows), default=0)


def show_case(out: Console, case: Case) -> None:
    out.print("  ".join(_clean(out, part) for part in case.heading if part), style="bold")
    for name, text in case.fields:
        lines = (line for line in _wrapped(out, text, 12) if line.strip())
        for place, line in enumerate(lines):
            out.print(f"  {'' if place else name:<9} {line}", soft_wrap=True)
    if case.command:
        out.print(f"  {'show':<9} {_clean(out, case.command)}", soft_wrap=True)  # a command must stay on one line
    out.print()


def show_text(out: Console, section: Text) -> None:
    out.print(_clean(out, section.title), style="bold")
    for line in _wrapped(out, section.text.strip("\n"), 2):
        out.print(f"  {line}".rstrip(), soft_wrap=True)


def _wrapped(out: Console, text: str, indent: int) -> Iterator[str]:
    """Yield the lines of a text, wrapped to the width of the terminal less an indent."""
    from rich.text import Text as RichText

    for line in _clean(out, text, _LONGEST_TEXT).expandtabs(4).split("\n"):
        yield from (part.plain.rstrip() for part in RichText(line).wrap(out, max(20, out.width - indent)))
