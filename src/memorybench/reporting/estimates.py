"""What a run would take, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memorybench.text.sanitize import sanitize

from . import figures

if TYPE_CHECKING:
    from rich.console import Console


def show_estimates(out: Console, planned: int, rows: Sequence[Mapping[str, Any]]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.ROUNDED, title="DRY RUN: nothing was done", title_justify="left", title_style="bold")
    for heading in ("benchmark", "arm", "stage"):
        table.add_column(heading, overflow="fold")
    for heading in ("calls", "tokens in", "tokens out", "cost"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            sanitize(row["benchmark"]),
            sanitize(row["arm"]),
            row["stage"],
            f"{row['calls']:,}",
            *(f"{row[name]:,}" if row[name] else figures.ABSENT for name in ("input_tokens", "output_tokens")),
            _dollars(row["cost"]),
        )
    out.print(table)
    costs = [row["cost"] for row in rows]
    total = None if None in costs else sum(costs)
    out.print(f"{planned} trials planned; models about {_dollars(total)}; memory systems charge by their own prices")


def _dollars(cost: float | None) -> str:
    if cost is None:
        return "unknown"
    return f"${cost:,.4f}" if cost else "$0"
