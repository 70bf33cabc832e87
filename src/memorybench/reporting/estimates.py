"""Shows the estimate that `--dry-run` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memorybench.core.report_sections import Column, Table, columns_and_rows, text_column

from .formatting import about
from .terminal import show_table

if TYPE_CHECKING:
    from rich.console import Console


_AMOUNTS = {"reused": "reused", "tokens in": "input_tokens", "tokens out": "output_tokens"}
"""By heading: the key of a column that is shown if it has any value; a narrow terminal shows only the first ones."""


def show_estimates(out: Console, planned: int, rows: Sequence[Mapping[str, Any]]) -> None:
    columns, cells = columns_and_rows(
        rows,
        (text_column("benchmark", wrap=True), lambda row: row["benchmark"]),
        (text_column("provider", wrap=True), lambda row: row["subject"]),
        (text_column("stage", wrap=True), lambda row: row["stage"]),
        (Column("calls"), lambda row: row["calls"]),
        *(
            (Column(heading, priority=place), lambda row, key=key: row[key] or None)
            for place, (heading, key) in enumerate(_AMOUNTS.items(), 1)
            if any(row[key] for row in rows)
        ),
        (Column("cost"), lambda row: "?" if row["cost"] is None else about(row["cost"])),
    )
    show_table(out, Table("DRY RUN: nothing was called", columns, cells))
    unknown = unknown_costs(rows)
    more = f" + ? (unknown prices: {', '.join(unknown)})" if unknown else ""
    out.print(f"{planned} trials planned; cost about {about(sum(row['cost'] or 0 for row in rows))}{more}")


def unknown_costs(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names `subject: stage` of the rows whose cost is unknown."""
    return list(dict.fromkeys(f"{row['subject']}: {row['stage']}" for row in rows if row["cost"] is None))
