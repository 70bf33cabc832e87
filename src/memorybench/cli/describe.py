"""All about one provider, benchmark, extractor, store or agent: what it is, what it needs, whether that is there."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from .shared import add_json, add_list, flat


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a provider, baseline, benchmark, extractor, store or agent")
    kinds = ("provider", "benchmark", "extractor", "store", "agent")
    parser.add_argument("--kind", choices=kinds, help="which, where several are called so")
    add_list(parser, "--config-dir", metavar="DIR", help="more folders with provider and benchmark configs")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.core.report import Table, text_column
    from memorybench.reporting.terminal import console, show_table
    from memorybench.wiring.descriptions import describe

    facts = describe(args.name, Path(), [Path(place) for place in flat(args.config_dir)], args.kind)
    if args.json:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        rows = tuple((name, fact) for name, fact in facts.items() if fact)
        show_table(console(), Table(args.name, (text_column(""), text_column("", wrap=True)), rows))
    return 0
