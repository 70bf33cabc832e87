"""Prints the JSON Schema of a config file, so that editors complete keys and mark mistakes."""

from __future__ import annotations

import argparse
import json


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kind", choices=("provider", "benchmark", "extractor", "store", "agent"), help="of which kind of file"
    )


def run(args: argparse.Namespace) -> int:
    from memorybench.catalog.schemas import json_schema

    print(json.dumps(json_schema(args.kind), indent=2))
    return 0
