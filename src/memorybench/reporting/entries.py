"""What can be named, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memorybench.text.sanitize import sanitize

if TYPE_CHECKING:
    from rich.console import Console


def show_entries(out: Console, title: str, entries: Sequence[Mapping[str, Any]]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.ROUNDED, title=title, title_justify="left", title_style="bold")
    table.add_column("name", no_wrap=True)
    table.add_column("what it is", ratio=1, overflow="fold")
    table.add_column("from", overflow="fold")
    for entry in entries:
        if entry["broken"]:
            table.add_row(
                sanitize(entry["name"]), f"BROKEN: {sanitize(entry['broken'])}", sanitize(entry["origin"]), style="red"
            )
        else:
            tags = f" [{', '.join(entry['tags'])}]" if entry["tags"] else ""
            table.add_row(entry["name"], f"{sanitize(entry['description'])}{sanitize(tags)}", sanitize(entry["origin"]))
    out.print(table)


def show_facts(out: Console, title: str, facts: Mapping[str, str]) -> None:
    """One thing, all about it."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.ROUNDED, title=title, title_justify="left", title_style="bold", show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, fact in facts.items():
        if fact:
            table.add_row(name, sanitize(fact))
    out.print(table)
