"""Finds, downloads and verifies the data files of benchmarks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from memorybench.catalog.catalog import Catalog
from memorybench.core.errors import BadInput
from memorybench.core.uses import Consent
from memorybench.datasets.config import HUB, BenchmarkConfig
from memorybench.datasets.locating import source_of
from memorybench.datasets.pulling import pull
from memorybench.datasets.schema_checks import WITHOUT_FILES
from memorybench.datasets.sources import Piece, Source, State, state

from .consent import check_variables
from .environment import environment, redactor

if TYPE_CHECKING:
    from memorybench.http.downloads import Progress


class DataStatus(Struct, frozen=True):
    """A row of `data list`."""

    name: str
    licence: str
    size: int | None
    where: str
    """The path of the data, whether it exists or not; for data without files, where it comes from."""
    pinned: bool
    present: bool


def cache_folder() -> Path:
    """Return the folder of downloads and indexes: $MEMORYBENCH_DATA, by default ~/.cache/memorybench/datasets."""
    variable = environment().get("MEMORYBENCH_DATA")
    return Path(variable) if variable else Path.home() / ".cache" / "memorybench" / "datasets"


def source(config: BenchmarkConfig, catalog: Catalog) -> Source:
    """Return the data files of a benchmark: where they are and where they are downloaded from."""
    file = catalog.chosen("benchmark", config.name).file
    return source_of(
        catalog.benchmark(config.name, environment()),
        beside=None if file is None else file.parent,
        cache=cache_folder(),
        hub=(environment().get("HF_ENDPOINT") or HUB).rstrip("/"),
    )


def data_status(catalog: Catalog) -> Iterator[DataStatus]:
    for config in _benchmarks(catalog):
        licence = config.data.licence
        if config.data.type in WITHOUT_FILES:
            where = "in this package" if config.data.type == "bundled" else "in its plug-in"
            yield DataStatus(config.name, licence, None, where, pinned=True, present=True)
            continue
        try:
            files = source(config, catalog)
        except BadInput as bad:  # a variable that is not set must not hide the other rows
            yield DataStatus(config.name, licence, None, str(bad), pinned=False, present=False)
            continue
        first, *others = files.pieces
        where = f"{first.file} and {len(others)} more" if others else str(first.file)
        yield DataStatus(config.name, files.licence, files.size, where, files.pinned, files.present)


def _benchmarks(catalog: Catalog, names: Sequence[str] = ()) -> Iterator[BenchmarkConfig]:
    for name in names or [entry.name for entry in catalog.entries("benchmark") if entry.broken is None]:
        yield catalog.benchmark(name)


def pull_all(
    catalog: Catalog,
    names: Sequence[str],
    consent: Consent,
    announce: Callable[[Source], None],
    progress: Callable[[Piece], Progress],
) -> None:
    """Download the data of these benchmarks. Call `announce` before each download and `progress` per file.

    Raise BadInput before the first download if one of them has nothing to download, such as a local file.
    """
    sources = []
    for config in _benchmarks(catalog, list(dict.fromkeys(names))):
        where = f'benchmark "{config.name}"'
        check_variables(catalog, catalog.chosen("benchmark", config.name), consent)
        if config.data.type in WITHOUT_FILES:
            raise BadInput(where, f"nothing to download: its data is {config.data.type}, not a file")
        files = source(config, catalog)
        if not files.remote:
            raise BadInput(where, f"nothing to download: its data is the local file {files.pieces[0].file}")
        sources.append(files)
    for files in sources:
        announce(files)
        asyncio.run(pull(files, redactor(), progress))


def verify(catalog: Catalog, names: Sequence[str]) -> Iterator[tuple[Source, State]]:
    """Yield the data files of each named benchmark with their state; without names, of all whose data is present."""
    for config in _benchmarks(catalog, names):
        if config.data.type not in WITHOUT_FILES:
            files = source(config, catalog)
            if names or files.present:
                yield files, state(files)
