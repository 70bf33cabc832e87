"""Fetches, lists and checks the data of benchmarks. Nothing else in this program fetches data."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .shared import add_json, add_list, flat

if TYPE_CHECKING:
    from collections.abc import Callable

    from memorybench.catalog.catalog import Catalog
    from memorybench.datasets.sources import Piece, Source
    from memorybench.wire.downloads import Progress

_SECONDS_BETWEEN_LINES = 5.0


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    pull = actions.add_parser("pull", help="fetch the data of benchmarks", allow_abbrev=False)
    pull.add_argument("names", metavar="NAME", nargs="+", help="a benchmark")
    listing = actions.add_parser("list", help="what there is, and what is here", allow_abbrev=False)
    add_json(listing)
    verify = actions.add_parser("verify", help="whether the data is still what it was", allow_abbrev=False)
    verify.add_argument("names", metavar="NAME", nargs="*", help="a benchmark (default: all whose data is here)")
    for action in (pull, listing, verify):
        add_list(action, "--config-dir", metavar="DIR", help="more folders with benchmark configs")


def run(args: argparse.Namespace) -> int:
    from memorybench.catalog.catalog import Catalog

    catalog = Catalog(Path(), [Path(place) for place in flat(args.config_dir)])
    if args.action == "pull":
        return _pull(catalog, flat(args.names))
    if args.action == "verify":
        return _verify(catalog, flat(args.names))
    return _list(catalog, args.json)


def _pull(catalog: Catalog, names: tuple[str, ...]) -> int:
    from memorybench.compose.data import pull_all, source

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
    from memorybench.compose.data import verified

    sound = True
    for source, state in verified(catalog, names):
        sound = sound and state == "present"
        pinned = "pinned" if source.pinned else "unpinned"
        said = {
            "present": f"is what it was ({pinned})",
            "changed": f"HAS CHANGED; remove it, then memorybench data pull {source.benchmark}",
            "missing": f"is not here; memorybench data pull {source.benchmark}",
        }
        print(f"{source.benchmark}: {source.pieces[0].file} {said[state]}")
    return 0 if sound else 1


def _list(catalog: Catalog, as_json: bool) -> int:
    from memorybench.compose.data import listed

    rows = [
        {
            "name": one.name,
            "licence": one.licence,
            "size": one.size,
            "where": one.where,
            "pinned": one.pinned,
            "present": one.present,
        }
        for one in listed(catalog)
    ]
    if as_json:
        print(json.dumps(rows, indent=2))
        return 0
    _show(rows)
    return 0


def _show(rows: list[dict[str, object]]) -> None:
    from rich import box
    from rich.table import Table

    from memorybench.documents.foreign import clean
    from memorybench.reporting.terminal import console

    table = Table(box=box.ROUNDED, title="DATA", title_justify="left", title_style="bold")
    for column in ("name", "licence", "size", "checksum", "here"):
        table.add_column(column, no_wrap=column == "name", overflow="fold")
    table.add_column("where", overflow="fold", ratio=1)
    for row in rows:
        size = row["size"] if isinstance(row["size"], int) else None
        table.add_row(
            clean(str(row["name"])),
            clean(str(row["licence"])),
            _bytes(size),
            "pinned" if row["pinned"] else "unpinned",
            "yes" if row["present"] else "no",
            clean(str(row["where"])),
        )
    console().print(table)


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
        return "?"
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
