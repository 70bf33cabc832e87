"""Describes one provider, benchmark, extractor, store or agent: what it is, what it uses, and whether that is set."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from .arguments import add_config_dir, add_json, split_list


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="Describe this provider, benchmark, extractor, store or agent")
    kinds = ("provider", "benchmark", "extractor", "store", "agent")
    parser.add_argument("--kind", choices=kinds, help="Choose the kind where a name is used twice")
    add_config_dir(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.core.report_sections import Table, text_column
    from memorybench.reporting.terminal import console, show_table
    from memorybench.wiring.descriptions import describe

    description = describe(args.name, Path(), [Path(place) for place in split_list(args.config_dir)], args.kind)
    if args.json:
        print(json.dumps(description.plain(), indent=2, ensure_ascii=False))
    else:
        columns = (text_column(""), text_column("", wrap=True))
        show_table(console(), Table(args.name, columns, tuple(description.rows())))
    return 0
