"""Renders tables of a report as LaTeX, for papers. They need the packages booktabs and amssymb."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memorybench.core.report_sections import Table
from memorybench.text.sanitize import sanitize

from .formatting import cell_text, footnotes

_ESCAPES = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "–": "--",
    "…": r"\dots{}",
    "×": r"$\times$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "✓": r"$\checkmark$",
    "✗": r"$\times$",
}
"""Replacements for characters that LaTeX reads as commands, and for those that its usual fonts lack."""


def to_latex(tables: Iterable[Table]) -> str:
    """Return one LaTeX `table` environment per table, with caption and label."""
    return "\n\n".join(_table(table) for table in tables) + "\n"


def _table(table: Table) -> str:
    headings = [_escape(column.heading) for column in table.columns]
    rows = [
        [_escape(cell_text(cell, column.shows)) for cell, column in zip(row, table.columns, strict=True)]
        for row in (*table.rows, *table.detail_rows)
    ]
    label = re.sub(r"[^a-z0-9]+", "-", table.title.lower()).strip("-")
    return "\n".join(
        [
            r"\begin{table}[t]",
            r"\centering",
            rf"\caption{{{_escape(table.title)}}}",
            rf"\label{{tab:{label}}}",
            rf"\begin{{tabular}}{{{''.join(column.align[0] for column in table.columns)}}}",
            r"\toprule",
            *([_line(headings), r"\midrule"] if any(headings) else []),
            *map(_line, rows),
            r"\bottomrule",
            r"\end{tabular}",
            *(rf"\par\smallskip\footnotesize {_escape(note)}" for note in footnotes(table)),
            r"\end{table}",
        ]
    )


def _line(cells: Iterable[str]) -> str:
    # braces: a `[` at the beginning of a row would be read as an option of the previous `\\`
    return " & ".join(f"{{{cell}}}" if cell.startswith("[") else cell for cell in cells) + r" \\"


def _escape(text: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in " ".join(sanitize(text).split()))
