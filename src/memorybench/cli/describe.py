"""Describes one provider, benchmark, extractor, store, agent or model: what it is and what it uses."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .arguments import add_config_dir, add_json, split_list

if TYPE_CHECKING:
    from memorybench.wiring.descriptions import Description


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="Describe this entry or suite (`memorybench list` shows all)")
    kinds = ("provider", "benchmark", "extractor", "store", "agent", "model", "suite")
    parser.add_argument("--kind", choices=kinds, help="Choose the kind, if entries of several kinds have this name")
    parser.add_argument("--yaml", action="store_true", help="Print its config, to copy and edit")
    add_config_dir(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.core.report_sections import Table, Text, text_column
    from memorybench.reporting.terminal import console, show_table, show_text
    from memorybench.reporting.typed_commands import as_typed
    from memorybench.wiring.descriptions import card_text, describe

    extra = [Path(place) for place in split_list(args.config_dir)]
    if args.yaml:
        sys.stdout.write(card_text(args.name, Path(), extra, args.kind))
        return 0
    suite = _suite(args.name) if args.kind in (None, "suite") else None
    description = suite or describe(args.name, Path(), extra, args.kind)
    if args.json:
        print(json.dumps(description.plain(), indent=2, ensure_ascii=False))
    else:
        columns = (text_column(""), text_column("", wrap=True))
        rows = tuple((name, as_typed(text)) for name, text in description.rows())
        show_table(console(), Table(args.name, columns, rows))
        if description.settings:
            titles = (text_column("setting"), text_column("value", wrap=True), text_column("meaning", wrap=True))
            show_table(console(), Table("Settings", titles, tuple(description.setting_rows())))
        for title, text in description.prompts.items():
            show_text(console(), Text(title.capitalize(), text))
    return 0


def _suite(name: str) -> Description | None:
    """Return the description of the suite with this name or verb; None if no suite has it."""
    from memorybench.core.uses import Uses
    from memorybench.suites.registry import suites
    from memorybench.wiring.descriptions import Description

    for suite in suites():
        commands = {command.name: command.help for command in suite.commands}
        if name == suite.name or name in {command.split()[0] for command in commands}:
            uses = {f"memorybench {command}": help for command, help in commands.items()}
            facts = {"kind": "suite", **uses, "more": f"memorybench {next(iter(commands))} --help"}
            return Description(facts, Uses(), ())
    return None
