"""Checks a config, a dataset or a results file, and changes nothing."""

from __future__ import annotations

import argparse
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="YAML, JSON, JSONL, CSV (also .gz) or .db")


def run(args: argparse.Namespace) -> int:
    from memorybench.core.errors import BadInput
    from memorybench.wiring.validation import recognise

    refused = 0
    for path in args.files:
        try:
            print(f"{path}: {recognise(path)}")
        except BadInput as error:
            if len(args.files) == 1:
                raise
            refused = 2
            print(error)
    return refused
