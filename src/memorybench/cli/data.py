"""Pulls, lists, verifies, previews and converts benchmark data. Nothing else in this program downloads data."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from memorybench.text.quantities import quantity

from .arguments import (
    add_action,
    add_config_dir,
    add_consent,
    add_json,
    given_consent,
    named_files,
    positive,
    split_list,
    zero_or_more,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from memorybench.catalog.catalog import Catalog
    from memorybench.core.uses import Consent
    from memorybench.datasets.sources import Piece, Source
    from memorybench.http.downloads import Progress
    from memorybench.wiring.data import DataStatus

_SECONDS_BETWEEN_LINES = 5.0


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    pull = add_action(actions, "pull", "download the data of benchmarks")
    pull.add_argument("names", metavar="NAME", nargs="+", help="Pull this benchmark; `memorybench data list` shows all")
    add_consent(pull)
    listing = add_action(actions, "list", "list datasets and whether they are present")
    add_json(listing)
    verify = add_action(actions, "verify", "check that the data is unchanged")
    verify.add_argument("names", metavar="NAME", nargs="*", help="Verify this benchmark (default: all present)")
    preview = add_action(actions, "preview", "show what is read from the data of a benchmark")
    preview.add_argument("name", metavar="NAME|FILE", help="Preview this benchmark, or the one in this config file")
    preview.add_argument(
        "--data-file", metavar="NAME=PATH", action="append", help="Read the data of benchmark NAME from this copy"
    )
    preview.add_argument("--samples", metavar="N", type=zero_or_more, default=3, help="Show N questions (default: 3)")
    add_json(preview)
    convert = add_action(actions, "convert", "convert a benchmark to an audit dataset")
    convert.add_argument("benchmark", choices=("locomo", "longmemeval"), help="Read the format of this benchmark")
    convert.add_argument("file", metavar="FILE", type=Path, help="Convert this file, as its authors publish it")
    convert.add_argument(
        "--to",
        metavar="FILE",
        type=Path,
        required=True,
        help="Write the dataset to this .json or .jsonl file (required)",
    )
    convert.add_argument(
        "--limit", metavar="N", type=positive, help="With longmemeval: convert at most N conversations (default: all)"
    )
    for action in (pull, listing, verify, preview):
        add_config_dir(action)


def run(args: argparse.Namespace) -> int:
    from memorybench.catalog.catalog import Catalog
    from memorybench.wiring.credentials import learn_secrets

    if args.action == "convert":
        return _convert(args)
    catalog = Catalog(Path(), [Path(place) for place in split_list(args.config_dir)], learn_secrets)
    if args.action == "pull":
        return _pull(catalog, split_list(args.names), given_consent(args))
    if args.action == "preview":
        return _preview(catalog, args)
    if args.action == "verify":
        return _verify(catalog, split_list(args.names))
    return _list(catalog, args.json)


_LEFT_OUT = {
    "locomo": "questions of several hops, on time and inference, adversarial ones, and answers of more than six words",
    "longmemeval": "questions to abstain from, of several sessions, on time or preferences, and answers of more than"
    " six words",
}
"""By benchmark: the questions that `data convert` leaves out, for its output."""


def _convert(args: argparse.Namespace) -> int:
    from memorybench.core.errors import BadInput
    from memorybench.datasets.audit_conversion import convert_locomo, convert_longmemeval, dataset_json
    from memorybench.files.writing import replacing

    if args.to.is_file():
        raise BadInput(str(args.to), "the file already exists", remedy="name another file, or remove it first")
    if not args.to.parent.is_dir():
        raise BadInput(str(args.to), "folder not found", remedy="name a file in an existing folder")
    locomo = args.benchmark == "locomo"
    if locomo and args.limit is not None:
        raise BadInput(
            "--limit", "not supported for locomo, which has only 10 conversations", remedy="leave --limit out"
        )
    dataset = convert_locomo(args.file) if locomo else convert_longmemeval(args.file, args.limit)
    with replacing(args.to) as file:
        file.write(dataset_json(dataset, lines=args.to.suffix in (".jsonl", ".ndjson")))
    conversations = quantity(len(dataset.conversations), "conversation")
    print(f"{args.to}: {conversations}, {quantity(dataset.fact_count, 'fact')}")
    print(f"memaudit validate {args.to} checks it")
    print(f"left out: {_LEFT_OUT[args.benchmark]}")
    return 0


def _pull(catalog: Catalog, names: tuple[str, ...], consent: Consent) -> int:
    from memorybench.wiring.data import pull_all
    from memorybench.wiring.data import source as source_of

    def tell(source: Source) -> None:
        print(f"{source.benchmark}: licence {source.licence or 'unknown: ask its authors'}")

    with _progress() as progress:
        pull_all(catalog, names, consent, tell, progress)
    for name in names:
        for piece in source_of(catalog.benchmark(name), catalog).pieces:
            pulled = piece.read_record()
            pin = "as pinned" if piece.sha256 else "unpinned, recorded for later"
            print(f"{piece.file}: {_bytes(pulled.size if pulled else None)}, sha256 {pulled and pulled.sha256} ({pin})")
    return 0


def _preview(catalog: Catalog, args: argparse.Namespace) -> int:
    from memorybench.datasets.survey import summary_lines
    from memorybench.wiring.datasets import preview_benchmark, preview_file

    file, data_files = Path(args.name), named_files(args.data_file or (), "--data-file")
    if file.suffix in (".yaml", ".yml"):
        summary = preview_file(file, args.samples, data_files)
    else:
        summary = preview_benchmark(catalog.benchmark(args.name), catalog, args.samples, data_files)
    if args.json:
        print(json.dumps(summary, indent=2, ensure_ascii=False))
        return 0
    print(summary["benchmark"])
    for line in summary_lines(summary):
        print(f"  {line}")
    return 0


def _verify(catalog: Catalog, names: tuple[str, ...]) -> int:
    from memorybench.reporting.typed_commands import as_typed
    from memorybench.wiring.data import verify

    unchanged, verified_count = True, 0
    for source, state in verify(catalog, names):
        verified_count += 1
        unchanged = unchanged and state == "present"
        pinned = "pinned" if source.pinned else "unpinned"
        texts = {
            "present": f"is unchanged ({pinned})",
            "changed": f"HAS CHANGED; remove it, then memorybench data pull {source.benchmark}",
            "missing": f"is missing; memorybench data pull {source.benchmark}",
        }
        print(as_typed(f"{source.benchmark}: {source.pieces[0].file} {texts[state]}"))
    if not verified_count:
        print("no pulled dataset is present; nothing to verify")
    return 0 if unchanged else 1


def _list(catalog: Catalog, as_json: bool) -> int:
    from memorybench.wiring.data import data_status

    rows = list(data_status(catalog))
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        _show(rows)
    return 0


def _show(rows: list[DataStatus]) -> None:
    """Print two lines per dataset; the second one is its path, which may be long."""
    from memorybench.text.sanitize import sanitize

    width = max(len(row.name) for row in rows)
    for row in rows:
        presence, pinned = "present" if row.present else "missing", "pinned" if row.pinned else "unpinned"
        licence = sanitize(row.licence) or "licence unknown"
        print(f"{row.name:{width}}  {presence:8}  {_bytes(row.size):>7}  {pinned:8}  {licence}")
        print(f"{'':{width}}  {sanitize(row.where)}")


@contextmanager
def _progress() -> Iterator[Callable[[Piece], Progress]]:
    """Yield a function that shows the progress of a file on standard error: a bar on a terminal, else lines."""
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

    def show(done: int, total: int | None) -> None:
        nonlocal last
        if done == total or time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            of = f" of {_bytes(total)} ({done / total:.0%})" if total else ""
            print(f"{piece.file.name}: {_bytes(done)}{of}", file=sys.stderr, flush=True)

    return show


def _bytes(size: float | None) -> str:
    if size is None:
        return "–"
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
