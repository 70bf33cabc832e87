"""What `doctor` found, as a table that ends with what to do."""

from __future__ import annotations

from collections.abc import Sequence

from memorybench.core.records import Record


class Finding(Record):
    area: str
    name: str
    found: bool
    detail: str = ""
    needed: bool = False
    """Nothing works without it."""
    remedy: str = ""


def show(findings: Sequence[Finding]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(box=box.ROUNDED, title="memorybench doctor", title_justify="left")
    for heading in ("", "what", "found", "what to do"):
        table.add_column(heading, overflow="fold")
    area = ""
    for finding in findings:
        if area and finding.area != area:
            table.add_section()
        area = finding.area
        mark = "[green]✓[/]" if finding.found else "[red]✗[/]" if finding.needed else "[yellow]–[/]"
        table.add_row(mark, finding.name, finding.detail, "" if finding.found else finding.remedy)
    console.print(table)
    missing = [finding.name for finding in findings if finding.needed and not finding.found]
    if missing:
        console.print(f"[red]Missing and needed:[/] {', '.join(missing)}")
    else:
        console.print("All that is needed is there. A key is only needed for the models and services you name.")
