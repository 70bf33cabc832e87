"""Checks what is installed and which keys are set, and says how to get what is missing."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memorybench.wiring.health import Finding

from .arguments import add_json


def configure(parser: argparse.ArgumentParser) -> None:
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.wiring.health import examine

    findings = examine()
    if args.json:
        print(json.dumps([finding.model_dump() for finding in findings], indent=2))
    else:
        _show(findings)
    return 0 if all(finding.found or not finding.needed for finding in findings) else 1


def _show(findings: Sequence[Finding]) -> None:
    from memorybench.core.report_sections import Cell, State, Table, text_column
    from memorybench.reporting.terminal import console, show_table

    out = console()
    columns = (text_column("name"), text_column("found", wrap=True), text_column("what to do", wrap=True))
    for area, found in groupby(findings, key=lambda finding: finding.area):
        rows: list[tuple[Cell, ...]] = []
        for one in found:
            required = one.found or one.needed
            name: Cell = (State(one.name, good=one.found),) if required else f"– {one.name}"
            rows.append((name, one.detail, "" if one.found else one.remedy))
        show_table(out, Table(area, columns, tuple(rows)))
    missing = [finding.name for finding in findings if finding.needed and not finding.found]
    if missing:
        out.print(f"Required and missing: {', '.join(missing)}", style="red")
    else:
        out.print("Everything required is installed. API keys are needed only for the models and services you use.")
