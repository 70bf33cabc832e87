"""Prints the script that completes verbs, flags and names in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memorybench.catalog.entries import Kind

SHELLS = ("bash", "zsh", "fish")
_NAMES: Mapping[str, tuple[Kind, ...]] = {
    "providers": ("provider", "baseline"),
    "provider": ("provider", "baseline"),
    "benchmarks": ("benchmark",),
    "benchmark": ("benchmark",),
    "extractor": ("extractor",),
    "store": ("store",),
    "agent": ("agent",),
    "names": ("benchmark",),  # of `data pull`
    "name": ("provider", "baseline", "benchmark", "extractor", "store", "agent"),  # of `describe`
}
"""The kinds of catalog entries that an argument names, by the argument's `dest`."""
_FOLDERS, _FILES = ("DIR", "FOLDER"), ("FILE", "PATH", "CASES", "DATASET")
"""Metavars of arguments that are completed as paths."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "shell", metavar="SHELL", choices=SHELLS, help=f"Print the script for this shell: {', '.join(SHELLS)}"
    )
    parser.add_argument(
        "--program",
        choices=("memorybench", "memaudit"),
        default="memorybench",
        help="Complete the commands of this program (default: memorybench)",
    )


def run(args: argparse.Namespace) -> int:
    import shtab

    from memorybench.catalog.catalog import Catalog

    from .main import whole_parser

    catalog = Catalog(Path(), [])
    names = {dest: [entry.name for entry in catalog.entries(*kinds)] for dest, kinds in _NAMES.items()}
    parser = whole_parser(args.program)
    for action in _actions(parser):
        _add_completions(action, names, shtab.FILE, shtab.DIR)
    print(shtab.complete(parser, args.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)
        else:
            yield action


def _add_completions(
    action: argparse.Action, names: Mapping[str, list[str]], file: Mapping[str, Any], folder: Mapping[str, Any]
) -> None:
    """Add the possible values of an argument, for completion only: this parser never parses a command line."""
    if action.choices is None and action.metavar == "NAME" and names.get(action.dest):
        action.choices = names[action.dest]
    elif action.metavar in _FOLDERS:
        action.complete = folder  # type: ignore[attr-defined]  # shtab reads it
    elif action.metavar in _FILES:
        action.complete = file  # type: ignore[attr-defined]
