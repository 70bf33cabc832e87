"""Fetches, lists and checks the data of benchmarks. Nothing else in this program fetches data."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from .shared import add_json, add_list, flat, positive

if TYPE_CHECKING:
    from collections.abc import Callable

    from memorybench.catalog.catalog import Catalog
    from memorybench.datasets.sources import Piece, Source
    from memorybench.http.downloads import Progress
    from memorybench.wiring.data import Listed

_SECONDS_BETWEEN_LINES = 5.0


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    pull = actions.add_parser("pull", help="fetch the data of benchmarks", allow_abbrev=False)
    pull.add_argument("names", metavar="NAME", nargs="+", help="a benchmark")
    listing = actions.add_parser("list", help="what there is, and what is here", allow_abbrev=False)
    add_json(listing)
    verify = actions.add_parser("verify", help="whether the data is still what it was", allow_abbrev=False)
    verify.add_argument("names", metavar="NAME", nargs="*", help="a benchmark (default: all whose data is here)")
    convert = actions.add_parser("convert", help="make a dataset for `audit`", allow_abbrev=False)
    convert.add_argument("benchmark", choices=("locomo", "longmemeval"), help="which format the file has")
    convert.add_argument("file", metavar="FILE", type=Path, help="as the benchmark's authors publish it")
    convert.add_argument("--to", metavar="FILE", type=Path, required=True, help="the dataset to write")
    convert.add_argument("--limit", metavar="N", type=positive, help="longmemeval: at most N conversations")
    for action in (pull, listing, verify):
        add_list(action, "--config-dir", metavar="DIR", help="more folders with benchmark configs")


def run(args: argparse.Namespace) -> int:
    from memorybench.catalog.catalog import Catalog

    if args.action == "convert":
        return _convert(args)
    catalog = Catalog(Path(), [Path(place) for place in flat(args.config_dir)])
    if args.action == "pull":
        return _pull(catalog, flat(args.names))
    if args.action == "verify":
        return _verify(catalog, flat(args.names))
    return _list(catalog, args.json)


_LEFT_OUT = {
    "locomo": "questions of several hops, on time and inference, adversarial ones, and answers of more than six words",
    "longmemeval": "questions to abstain from, of several sessions, on time or preferences, and answers of more than"
    " six words",
}
"""By benchmark: what gives no fact that a turn states."""


def _convert(args: argparse.Namespace) -> int:
    from memorybench.core.errors import BadInput
    from memorybench.datasets.audit_conversion import convert_locomo, convert_longmemeval, written

    if args.to.exists():
        raise BadInput(str(args.to), "is there already", remedy="name another file, or remove it first")
    locomo = args.benchmark == "locomo"
    dataset = convert_locomo(args.file) if locomo else convert_longmemeval(args.file, args.limit)
    args.to.write_text(written(dataset, lines=args.to.suffix in (".jsonl", ".ndjson")), encoding="utf-8")
    facts = sum(len(conversation.facts) for conversation in dataset.conversations)
    print(
        f"{args.to}: {len(dataset.conversations)} conversations, {facts} facts; memaudit validate {args.to} checks it"
    )
    print(f"left out: {_LEFT_OUT[args.benchmark]}")
    return 0


def _pull(catalog: Catalog, names: tuple[str, ...]) -> int:
    from memorybench.wiring.data import pull_all, source

    def tell(wanted: Source) -> None:
        print(f"{wanted.benchmark}: licence {wanted.licence or 'not known: ask its authors'}")

    with _progress() as progress:
        pull_all(catalog, names, tell, progress)
    for name in names:
        for piece in source(catalog.benchmark(name), catalog).pieces:
            pulled = piece.pulled()
            told = "as pinned" if piece.sha256 else "unpinned, recorded for later"
            print(
                f"{piece.file}: {_bytes(pulled.size if pulled else None)}, sha256 {pulled and pulled.sha256} ({told})"
            )
    return 0


def _verify(catalog: Catalog, names: tuple[str, ...]) -> int:
    from memorybench.wiring.data import verified

    sound, looked_at = True, 0
    for source, state in verified(catalog, names):
        looked_at += 1
        sound = sound and state == "present"
        pinned = "pinned" if source.pinned else "unpinned"
        said = {
            "present": f"is what it was ({pinned})",
            "changed": f"HAS CHANGED; remove it, then memorybench data pull {source.benchmark}",
            "missing": f"is not here; memorybench data pull {source.benchmark}",
        }
        print(f"{source.benchmark}: {source.pieces[0].file} {said[state]}")
    if not looked_at:
        print("no pulled dataset is here: there is nothing to verify")
    return 0 if sound else 1


def _list(catalog: Catalog, as_json: bool) -> int:
    from memorybench.wiring.data import listed

    rows = list(listed(catalog))
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        _show(rows)
    return 0


def _show(rows: list[Listed]) -> None:
    """Two lines each: paths are long, and are read and copied whole."""
    from memorybench.text.sanitize import sanitize

    width = max(len(row.name) for row in rows)
    for row in rows:
        here, pinned = "here" if row.present else "not here", "pinned" if row.pinned else "unpinned"
        licence = sanitize(row.licence) or "licence unknown"
        print(f"{row.name:{width}}  {here:8}  {_bytes(row.size):>7}  {pinned:8}  {licence}")
        print(f"{'':{width}}  {sanitize(row.where)}")


@contextmanager
def _progress() -> Iterator[Callable[[Piece], Progress]]:
    """A bar on a terminal; in a pipe a line now and then. On standard error, as the bars of a run are."""
    if not sys.stderr.isatty():
        yield _lines
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=Console(stderr=True, highlight=False)) as bars:

        def begin(piece: Piece) -> Progress:
            task = bars.add_task(piece.file.name, total=None)
            return lambda done, total: bars.update(task, completed=done, total=total)

        yield begin


def _lines(piece: Piece) -> Progress:
    last = time.monotonic()

    def told(done: int, total: int | None) -> None:
        nonlocal last
        if done == total or time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            of = f" of {_bytes(total)} ({done / total:.0%})" if total else ""
            print(f"{piece.file.name}: {_bytes(done)}{of}", file=sys.stderr, flush=True)

    return told


def _bytes(size: float | None) -> str:
    if size is None:
        return "–"
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
