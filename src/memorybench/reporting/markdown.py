"""Renders a report as Markdown: report.md."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import assert_never

from memorybench.core.report_sections import Cases, Notes, Provenance, Report, Section, Table, Text
from memorybench.text.sanitize import sanitize

from .formatting import cell_text, footnotes

_GLOSSARY = "memorybench's docs/glossary.md defines the terms of this report, and docs/metrics.md its measures."


def to_markdown(report: Report, checks: Iterable[str] = ()) -> str:
    """Return a report as Markdown. `checks` are lines about thresholds, which are put after the title."""
    parts = [f"# {_inline(report.title)}"]
    parts += [_inline(line) for line in checks]
    parts += [f"> {_inline(line)}" for line in report.warnings]
    parts += [f"**{_inline(line)}**" for line in report.verdict]
    for section in report.sections:
        parts += _section(section)
    parts.append(_GLOSSARY)
    return "\n\n".join(part for part in parts if part) + "\n"


def tables_to_markdown(tables: Iterable[Table]) -> str:
    return "\n\n".join(part for table in tables for part in _section(table) if part) + "\n"


def _section(section: Section) -> list[str]:
    match section:
        case Table():
            return [_heading(section.title, section.level), _table(section), *map(_inline, footnotes(section))]
        case Cases():
            return [_heading(section.title, 2), *_cases(section)]
        case Text():
            return [_heading(section.title, 2), _quoted(section.text)]
        case Notes():
            return [_heading(section.title, 2), *_notes(section)]
        case Provenance():
            facts = "\n".join(f"- {name}: {_inline(fact)}" for name, fact in section.facts.items())
            return [_heading(section.title, 2), facts]
        case _:
            assert_never(section)


def _heading(title: str, level: int) -> str:
    return f"{'#' * level} {_inline(title)}" if title else ""


def _table(table: Table) -> str:
    lines = [[column.heading for column in table.columns], ["---"] * len(table.columns)]
    for row in (*table.rows, *table.detail_rows):
        lines.append([cell_text(cell, column.shows) for cell, column in zip(row, table.columns, strict=True)])
    return "\n".join(f"| {' | '.join(map(_inline, line))} |" for line in lines)


def _cases(section: Cases) -> list[str]:
    if not section.cases:
        return [section.if_empty]
    parts = []
    for case in section.cases:
        first, *rest = map(_inline, case.heading)
        lines = [" · ".join((f"**{first}**", *rest)), *(f"- {name}: {_inline(text)}" for name, text in case.fields)]
        lines += [f"- `{_inline(case.command)}`"] if case.command else []
        parts.append("\n".join(lines))
    if section.total > len(section.cases):
        parts.append(f"… and {section.total - len(section.cases)} more: `memorybench results RUN --failures`")
    return parts


def _quoted(text: str) -> str:
    """Return a text as a code block, with a fence that the text does not contain."""
    text = sanitize(text)
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"


def _notes(section: Notes) -> list[str]:
    if any(isinstance(line, tuple) for line in section.lines):
        lines = [f"- {': '.join(map(_inline, line))}" if isinstance(line, tuple) else line for line in section.lines]
        return ["\n".join(lines)]
    return [f"> {_inline(str(line))}" if section.warning else _inline(str(line)) for line in section.lines]


def _inline(text: str) -> str:
    """Return a text on one line, with characters escaped that would end a table cell or begin HTML."""
    return re.sub(r"<(?=[a-zA-Z/!?])", "&lt;", " ".join(sanitize(text).split()).replace("|", "\\|"))
