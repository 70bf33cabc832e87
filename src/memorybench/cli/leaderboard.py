"""Builds a static page from verified bundles."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from memorybench.core.errors import BadInput
from memorybench.text.sanitize import preview
from memorybench.text.spelling import unknown_name

from .arguments import add_config_dir, add_json, add_list, split_list
from .verify import benchmarks_of, config_texts, open_available_data, read_keys


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path, help="Read the bundles of this folder")
    parser.add_argument(
        "--output", metavar="DIR", type=Path, required=True, help="Write the page into this folder (required)"
    )
    add_list(
        parser,
        "--data",
        metavar="NAME=PATH",
        help="Check questions and retrieval of benchmark NAME with this copy of its data",
    )
    add_list(
        parser, "--key", metavar="FILE", help="Refuse bundles without a signature by one of these public key files"
    )
    add_config_dir(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.bundles.leaderboard import PAGE, build_leaderboard
    from memorybench.suites.html_report import check_installed
    from memorybench.wiring.live import LiveWiring

    check_installed("leaderboard")
    given, wiring = split_list(args.data), LiveWiring(split_list(args.config_dir))
    _check_data(given, args.folder, wiring.catalog.names("benchmark"))
    found = build_leaderboard(
        args.folder,
        args.output,
        lambda path: open_available_data(path, given, wiring, is_strict=False),
        read_keys(args.key),
        config_texts(wiring),
    )
    page = args.output / PAGE
    if args.json:
        document = {
            "page": str(page),
            "verified": found.bundles,
            "refused": [{"file": one.name, "reason": one.reason} for one in found.refused],
            "tables": [
                {"benchmark": board.title, "entries": [entry.subject for entry in board.entries]}
                for board in found.boards
            ],
        }
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        print(f"{page}: {found.bundles} verified, {len(found.refused)} refused")
        for one in found.refused:
            print(f"  refused {one.name}: {one.reason}")
    return 0


def _check_data(given: Sequence[str], folder: Path, benchmarks: Iterable[str]) -> None:
    """Raise BadInput if --data names a missing file, or a benchmark that is neither in a bundle nor in `benchmarks`.

    This is checked first, because later errors about data are reported as reasons to refuse a bundle.
    """
    known = set(benchmarks)
    for bundle in folder.glob("*.mbz") if given else ():
        with suppress(BadInput):  # the page lists it as refused
            known.update(benchmarks_of(bundle)[0])
    for text in given:
        name, equals, value = text.partition("=")
        path = Path(value if equals else name)
        if not path.exists():
            raise BadInput("--data", f"{path}: file not found", expected="NAME=PATH", remedy="check the path")
        if equals and name not in known:
            raise unknown_name("--data", f"unknown benchmark {preview(name)}", name, known)
