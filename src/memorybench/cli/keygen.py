"""Makes a pair of keys to sign bundles with."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from .arguments import add_json


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", type=Path, help="Write the private key here, the public one to FILE.pub"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.bundles.signing import check_installed, make_keys

    check_installed()
    key = make_keys(args.file)
    if args.json:
        print(json.dumps({"private_key": str(args.file), "public_key": f"{args.file}.pub", "key_id": key}, indent=2))
    else:
        print(f"Private key: {args.file} (keep it secret)")
        print(f"Public key:  {args.file}.pub (give it to those who check your bundles)")
        print(f"Key id:      {key}")
    return 0
