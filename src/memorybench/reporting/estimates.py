"""Shows the estimate that `--dry-run` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memorybench.core.report_sections import Column, Money, Table, text_column

from .formatting import money
from .terminal import show_table

if TYPE_CHECKING:
    from rich.console import Console


def show_estimates(out: Console, planned: int, rows: Sequence[Mapping[str, Any]]) -> None:
    columns = (
        *(text_column(heading, wrap=True) for heading in ("benchmark", "provider", "stage")),
        *map(Column, ("calls", "tokens in", "tokens out", "cost")),
    )
    cells = tuple(
        (
            row["benchmark"],
            row["subject"],
            row["stage"],
            row["calls"],
            row["input_tokens"] or None,
            row["output_tokens"] or None,
            "unknown" if row["cost"] is None else Money(row["cost"]),
        )
        for row in rows
    )
    show_table(out, Table("DRY RUN: nothing was called", columns, cells))
    costs = [row["cost"] for row in rows]
    total = "unknown" if None in costs else money(sum(costs))
    out.print(f"{planned} trials planned; models cost about {total}; memory systems charge their own prices")
