"""Which providers, benchmarks, extractors, stores, agents and plug-in metrics there are, and where each comes from."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .shared import add_json, add_list, flat

if TYPE_CHECKING:
    from memorybench.catalog.entries import Entry
    from memorybench.core.report import Table


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--providers", action="store_true", help="only providers and baselines")
    parser.add_argument("--benchmarks", action="store_true", help="only benchmarks")
    parser.add_argument("--extractors", action="store_true", help="only extractors")
    parser.add_argument("--stores", action="store_true", help="only memory stores")
    parser.add_argument("--agents", action="store_true", help="only agents")
    add_list(parser, "--tags", metavar="TAG", help="only entries with one of these tags")
    add_list(parser, "--config-dir", metavar="DIR", help="more folders with provider and benchmark configs")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.catalog.catalog import Catalog
    from memorybench.reporting.terminal import console, show_table

    catalog = Catalog(Path(), [Path(place) for place in flat(args.config_dir)])
    everything = not (args.providers or args.benchmarks or args.extractors or args.stores or args.agents)
    sections = []
    if args.providers or everything:
        sections.append(("PROVIDERS", catalog.entries("provider", "baseline")))
    if args.benchmarks or everything:
        sections.append(("BENCHMARKS", catalog.entries("benchmark")))
    if args.extractors or everything:
        sections.append(("EXTRACTORS", catalog.entries("extractor")))
    if args.stores or everything:
        sections.append(("STORES", catalog.entries("store")))
    if args.agents or everything:
        sections.append(("AGENTS", catalog.entries("agent")))
    if everything:
        sections.append(("METRICS FROM PLUG-INS", catalog.entries("metric")))
        sections.append(("FILES NOT UNDERSTOOD", catalog.entries("unknown")))
    tags = set(flat(args.tags))
    shown = [(title, [e for e in entries if not tags or tags & set(e.tags)]) for title, entries in sections]
    if args.json:
        print(json.dumps([_plain(entry) for _, entries in shown for entry in entries], indent=2))
        return 0
    out = console()
    for title, entries in shown:
        if entries:
            show_table(out, _table(title, entries))
    if not any(entries for _, entries in shown):
        out.print(f"Nothing has the tag {', '.join(sorted(tags))}.")
    return 0


def _table(title: str, entries: Sequence[Entry]) -> Table:
    from memorybench.core.report import Cell, State, Table, text_column

    rows: list[tuple[Cell, ...]] = []
    for entry in entries:
        tags = f" [{', '.join(entry.tags)}]" if entry.tags else ""
        description: Cell = f"{entry.description or entry.display_name}{tags}"
        if entry.broken:
            description = (State(f"INVALID: {entry.broken}", good=False),)
        rows.append((entry.name, description, entry.origin))
    columns = (text_column("name"), text_column("description", wrap=True), text_column("from", wrap=True))
    return Table(title, columns, tuple(rows))


def _plain(entry: Entry) -> dict[str, object]:
    return {
        "kind": entry.kind,
        "name": entry.name,
        "description": entry.description or entry.display_name,
        "tags": list(entry.tags),
        "origin": entry.origin,
        "broken": str(entry.broken) if entry.broken else None,
    }
