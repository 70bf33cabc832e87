"""Writes a commented starting file and checks it. Never replaces an existing file."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memorybench.wiring.starters import Probed

_KINDS = ("provider", "benchmark", "scenario", "extractor")
_NEXT = {
    "provider": "memorybench eval --providers {name} bm25 --limit 5",
    "benchmark": "memorybench eval --benchmarks {name} --providers bm25",
    "scenario": "memorybench hygiene run {name}",
    "extractor": "memorybench extraction run --extractor {name} --limit 1",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kind", metavar="KIND", choices=_KINDS, help="Choose provider, benchmark, scenario or extractor"
    )
    parser.add_argument(
        "name",
        metavar="NAME",
        help="Name it, such as my-memory, and write KINDs/configs/NAME.yaml (scenario: scenarios/NAME.json)",
    )
    parser.add_argument(
        "--probe", metavar="URL", help="Fill in a provider config from the OpenAPI description of this running server"
    )


def run(args: argparse.Namespace) -> int:
    from memorybench.core.errors import BadInput
    from memorybench.reporting.typed_commands import as_typed
    from memorybench.wiring.starters import probe, starting_files, write_starting_files

    from .validate import describe_file

    if args.probe is not None and args.kind != "provider":
        raise BadInput("--probe", f"has no effect when you create a {args.kind}", remedy="remove it")
    files = starting_files(args.kind, args.name, Path())
    probed = asyncio.run(probe(args.probe)) if args.probe is not None else None
    write_starting_files(args.kind, args.name, files, probed)
    for file in files:
        print(f"wrote {file}")
    if probed is not None:
        _show(probed)
    print(f"checked: {describe_file(files[0])}")
    print(as_typed(f"next: read {files[0]}, then {_NEXT[args.kind].format(name=args.name)}"))
    return 0


def _show(probed: Probed) -> None:
    health = f"answers at {probed.health}" if probed.health else "answers, but at no usual health route"
    print(f"{probed.url} {health}")
    if probed.guesses is not None:
        found = {"add": probed.guesses.add, "search": probed.guesses.search, "clear": probed.guesses.clear}
        for what, request in found.items():
            if request is not None:
                print(f"{what}: {request.method} {request.path}")
    for line in probed.missing:
        print(f"to change: {line}")
