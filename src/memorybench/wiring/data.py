"""The data of benchmarks: what is here, what can be fetched, and whether it is still what it was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memorybench.catalog.catalog import Catalog
from memorybench.core.errors import BadInput
from memorybench.datasets.config import BenchmarkConfig
from memorybench.datasets.sources import HUB, Piece, Source, State, pull, source_of, state

from .environment import environment, redactor

if TYPE_CHECKING:
    from memorybench.http.downloads import Progress

_WITHOUT_FILES = ("bundled", "plugin")
_CACHE, _HUB = "MEMORYBENCH_DATA", "HF_ENDPOINT"


@dataclass(frozen=True, slots=True)
class Listed:
    """What `data list` tells of one benchmark."""

    name: str
    licence: str
    size: int | None
    where: str
    """The file or folder, there or not; for data without files, who brings it."""
    pinned: bool
    present: bool


def cache_folder() -> Path:
    """`$MEMORYBENCH_DATA`, else `~/.cache/memorybench/datasets`."""
    told = environment().get(_CACHE)
    return Path(told) if told else Path.home() / ".cache" / "memorybench" / "datasets"


def source(config: BenchmarkConfig, catalog: Catalog, cache: Path | None = None) -> Source:
    """The files of a benchmark, with what its config takes from the environment."""
    file = catalog.chosen("benchmark", config.name).file
    told = catalog.benchmark(config.name, environment())
    hub = (environment().get(_HUB) or HUB).rstrip("/")
    beside = None if file is None else file.parent
    return source_of(told, beside=beside, cache=cache or cache_folder(), hub=hub)


def listed(catalog: Catalog) -> Iterator[Listed]:
    for entry in catalog.entries("benchmark"):
        if entry.broken is None:
            yield _listed(catalog.benchmark(entry.name), catalog)


def _listed(config: BenchmarkConfig, catalog: Catalog) -> Listed:
    if config.data.type in _WITHOUT_FILES:
        where = "in this package" if config.data.type == "bundled" else "with its plug-in"
        return Listed(config.name, config.data.licence, None, where, pinned=True, present=True)
    try:
        found = source(config, catalog)
    except BadInput as bad:  # a variable that is not set hinders one entry, not the list
        return Listed(config.name, config.data.licence, None, str(bad), pinned=False, present=False)
    return Listed(config.name, found.licence, found.size, _where(found), found.pinned, found.present)


def _where(found: Source) -> str:
    first, *others = found.pieces
    return f"{first.file} and {len(others)} more" if others else str(first.file)


def pull_all(
    catalog: Catalog,
    names: Sequence[str],
    tell: Callable[[Source], None],
    progress: Callable[[Piece], Progress],
) -> None:
    """Fetches the data of these benchmarks. `tell` is called before each, with its licence."""
    wanted = [_with_files(catalog, name) for name in dict.fromkeys(names)]
    for one in wanted:
        tell(one)
        asyncio.run(pull(one, redactor(), progress))


def _with_files(catalog: Catalog, name: str) -> Source:
    config = catalog.benchmark(name)
    if config.data.type in _WITHOUT_FILES:
        raise BadInput(f'benchmark "{name}"', f"its data is {config.data.type}: there is nothing to pull")
    found = source(config, catalog)
    if not found.remote:
        raise BadInput(f'benchmark "{name}"', f"its data is your own, at {found.pieces[0].file}: nothing to pull")
    return found


def verified(catalog: Catalog, names: Sequence[str]) -> Iterator[tuple[Source, State]]:
    """Those named, or all whose files are here. Every byte is read."""
    for name in names or [entry.name for entry in catalog.entries("benchmark") if entry.broken is None]:
        config = catalog.benchmark(name)
        if config.data.type in _WITHOUT_FILES:
            continue
        found = source(config, catalog)
        if names or found.present:
            yield found, state(found)
