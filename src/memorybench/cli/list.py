"""Lists providers, benchmarks, extractors, stores, agents, models, suites and plug-in metrics, with their origin."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .arguments import add_config_dir, add_json, add_list, split_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memorybench.catalog.entries import Entry
    from memorybench.core.report_sections import Table

_SECTIONS = (
    ("providers", "providers and baselines"),
    ("benchmarks", "benchmarks"),
    ("extractors", "extractors"),
    ("stores", "memory stores"),
    ("agents", "agents"),
    ("models", "models, and prefixes such as openrouter/ that select a server for any model"),
    ("suites", "suites"),
)
"""The flags that select entries, with a description of what each lists."""


def configure(parser: argparse.ArgumentParser) -> None:
    for flag, what in _SECTIONS:
        parser.add_argument(f"--{flag}", action="store_true", help=f"List only {what}")
    add_list(parser, "--tags", metavar="TAG", help="List only entries with one of these tags, such as temporal")
    add_config_dir(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.catalog.catalog import Catalog
    from memorybench.reporting.terminal import console, show_table

    catalog = Catalog(Path(), [Path(place) for place in split_list(args.config_dir)])
    chosen = [flag for flag, _ in _SECTIONS if getattr(args, flag)]
    sections: dict[str, list[dict[str, Any]]] = {}
    for flag, _ in _SECTIONS:
        if flag in (chosen or [name for name, _ in _SECTIONS]):
            kinds = ("provider", "baseline") if flag == "providers" else (flag.removesuffix("s"),)
            sections[flag.upper()] = _suites() if flag == "suites" else [_row(one) for one in catalog.entries(*kinds)]
    if "MODELS" in sections:
        sections["MODELS"] += _prefixes()
    if not chosen:
        sections["METRICS FROM PLUG-INS"] = [_row(entry) for entry in catalog.entries("metric")]
        sections["FILES NOT RECOGNIZED"] = [_row(entry) for entry in catalog.entries("unknown")]
    tags = set(split_list(args.tags))
    shown = {title: [row for row in rows if not tags or tags & set(row["tags"])] for title, rows in sections.items()}
    if args.json:
        print(json.dumps([row for rows in shown.values() for row in rows], indent=2))
        return 0
    out = console()
    for title, rows in shown.items():
        if rows:
            show_table(out, _table(title, rows))
    if not any(shown.values()):
        out.print(f"No entry has the tag {', '.join(sorted(tags))}.")
    return 0


def _table(title: str, entries: Sequence[Mapping[str, Any]]) -> Table:
    from memorybench.core.report_sections import Cell, State, Table, text_column

    rows: list[tuple[Cell, ...]] = []
    for entry in entries:
        tags = f" [{', '.join(entry['tags'])}]" if entry["tags"] else ""
        description: Cell = f"{entry['description']}{tags}"
        if entry["broken"]:
            description = (State(f"INVALID: {entry['broken']}", good=False),)
        rows.append((entry["name"], description, entry["origin"]))
    columns = (text_column("name"), text_column("description", wrap=True), text_column("from", wrap=True))
    return Table(title, columns, tuple(rows))


def _prefixes() -> list[dict[str, Any]]:
    from memorybench.models.presets import PRESETS
    from memorybench.models.rehearsal import PREFIX, RULES

    rows = {
        f"{prefix}/MODEL": f"models at {preset.base_url} ({' or '.join(preset.key_variables) or 'no key'})"
        for prefix, preset in PRESETS.items()
    }
    scripts = {f"{PREFIX}{name}": "a script for trying commands; no server, no key" for name in RULES}
    return [
        {"kind": "model", "name": name, "description": text, "tags": [], "origin": "bundled", "broken": None}
        for name, text in {**rows, **scripts}.items()
    ]


def _suites() -> list[dict[str, Any]]:
    from memorybench.suites.registry import BUILT_IN, suites

    return [
        {
            "kind": "suite",
            "name": suite.name,
            "description": "; ".join(f"{command.name}: {command.help}" for command in suite.commands),
            "tags": [],
            "origin": "bundled" if suite.name in BUILT_IN else "plug-in",
            "broken": None,
        }
        for suite in suites()
    ]


def _row(entry: Entry) -> dict[str, Any]:
    return {
        "kind": entry.kind,
        "name": entry.name,
        "description": entry.description or entry.display_name,
        "tags": list(entry.tags),
        "origin": entry.origin,
        "broken": str(entry.broken) if entry.broken else None,
    }
