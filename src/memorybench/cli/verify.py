"""Recomputes what a bundle claims, and says what that proves."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .arguments import add_json, add_list, split_list

if TYPE_CHECKING:
    from memorybench.bundles.claims import Verification
    from memorybench.bundles.signing import PublicKey
    from memorybench.core.questions import Dataset


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="Check this bundle")
    add_list(parser, "--data", metavar="NAME=PATH", help="Use these data files to check questions and retrieval")
    add_list(parser, "--key", metavar="FILE", help="Require a signature by one of these public keys")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from memorybench.bundles.verification import verify_bundle

    found = verify_bundle(args.file, at_hand(args.file, split_list(args.data)), read_keys(split_list(args.key)))
    if args.json:
        print(json.dumps(found.document(), indent=2, ensure_ascii=False))
    else:
        _show(found)
    return 0 if found.is_consistent else 1


def at_hand(file: Path, given: Sequence[str], *, is_strict: bool = True) -> dict[str, Dataset]:
    """Open the data that is available: what ships with memorybench, and the files that the user names.

    With `is_strict`, a name that is not a benchmark of the bundle is an error.
    """
    from memorybench.bundles.archive import open_archive
    from memorybench.bundles.contents import Rows
    from memorybench.core.errors import BadInput
    from memorybench.text.spelling import suggestion
    from memorybench.wiring.live import LiveWiring

    with open_archive(file) as archive:
        run = Rows.in_archive(archive).run()
    names = [name.removeprefix("benchmark ") for name in run.fingerprints if name.startswith("benchmark ")]
    files: dict[str, Path] = {}
    for text in given:
        name, separator, path = text.partition("=")
        if not separator and len(names) == 1:
            name, path = names[0], text
        if name not in names and not is_strict:
            continue
        if name not in names:
            expected = " or ".join(f"{one}=PATH" for one in names) or "no data: the run has no benchmark"
            raise BadInput("--data", f"unknown benchmark {name!r}", expected=expected, remedy=suggestion(name, names))
        files[name] = Path(path)
    wiring = LiveWiring()
    datasets = {}
    for name in names:
        known = name in wiring.catalog.names("benchmark")
        if not known and name in files:
            raise BadInput("--data", f'benchmark "{name}" is not known here', remedy="memorybench list --benchmarks")
        if known:
            config = wiring.benchmark(name)
            if name in files or config.data.type == "bundled":
                datasets[name] = wiring.dataset(config, files.get(name))
    return datasets


def read_keys(files: Sequence[str]) -> list[PublicKey]:
    if not files:
        return []
    from memorybench.bundles.signing import PublicKey, check_installed

    check_installed()
    return [PublicKey.read(Path(file)) for file in files]


def _show(found: Verification) -> None:
    from memorybench.bundles.claims import LEVELS
    from memorybench.core.report_sections import Table, text_column
    from memorybench.reporting.terminal import console, show_table

    out = console()
    columns = (text_column("level"), text_column("what"), text_column("n"), text_column("how", wrap=True))
    ordered = sorted(found.claims, key=lambda one: list(LEVELS).index(one.level))
    rows = tuple((one.level, one.name, "" if one.n is None else f"{one.n:,}", one.text) for one in ordered)
    show_table(out, Table(f"RUN {found.run_id}" if found.run_id else "BUNDLE", columns, rows))
    for one in found.contradicted:
        for example in one.examples:
            out.print(f"  ✗ {one.name}: {example}", markup=False, highlight=False)
        if one.n and one.n > len(one.examples):
            out.print(f"  … and {one.n - len(one.examples)} more")
    for level, meaning in LEVELS.items():
        if any(one.level == level for one in found.claims):
            out.print(f"{level}: {meaning}")
    out.print(f"root {found.root}")
    verdict = "Nothing in this bundle is contradicted." if found.is_consistent else "This bundle contradicts itself."
    out.print(verdict)
