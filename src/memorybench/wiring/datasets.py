"""Opens the dataset of a benchmark config."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from memorybench.core.errors import BadInput
from memorybench.datasets.config_reading import GROUP, WITHOUT_FILES
from memorybench.files.entry_points import built_in_points
from memorybench.files.reading import check_confined
from memorybench.journal.rows import Fingerprint

from .renaming import rename_dataset

_LARGEST_WITHOUT_INDEX = 64 * 2**20
"""Bytes of a data file that is parsed again to show a conversation of it."""

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memorybench.catalog.catalog import Catalog
    from memorybench.core.questions import Dataset
    from memorybench.datasets.config import BenchmarkConfig


def open_dataset(
    config: BenchmarkConfig, catalog: Catalog, *, file: Path | None = None, cache: Path | None = None
) -> Dataset:
    """Read the data of a benchmark from this machine; nothing is downloaded.

    `file` replaces the file or folder that the config names; `cache` replaces the default folder of downloads.
    """
    data = config.data
    if data.type in WITHOUT_FILES:
        if file is not None:
            raise BadInput("--data-file", f"not supported: the data of {config.name} is {data.type}")
        is_plugin = data.type == "plugin"
        point = catalog.plugin("benchmark", data.path) if is_plugin else built_in_points(GROUP)[data.path]
        dataset = cast("Dataset", point.load()())
        if data.sha256 not in (None, dataset.fingerprint):
            problem = f"the checksum differs: sha256 {dataset.fingerprint}"
            raise BadInput(f'benchmark "{config.name}"', problem, expected=data.sha256 or "")
        return rename_dataset(dataset, config.name)
    from memorybench.datasets.sources import local_source, verify_files

    from .data import cache_folder, source

    located = local_source(config, file) if file is not None else source(config, catalog, cache)
    files = [piece.file for piece in located.pieces]
    if config.needles is not None:
        from memorybench.datasets.nolima import open_needles

        return open_needles(config, files[0], files[1:], verify_files(located))
    from memorybench.datasets.mapped import open_mapped

    indexes = (cache or cache_folder()) / "indexes"
    return open_mapped(config, files, lambda: verify_files(located, indexes), indexes)


def reopen_dataset(
    config: BenchmarkConfig, catalog: Catalog, recorded: Fingerprint, *, file: Path | None, folders: Sequence[Path]
) -> Dataset:
    """Open the data of a run again, to show it; raise BadInput if it is not here, or has changed since.

    Files must be in the cache or below one of `folders`, and are parsed only if their fingerprint is the recorded one.
    Nothing is downloaded, and no plug-in is loaded.
    """
    where = f'benchmark "{config.name}"'
    if config.data.type == "plugin" or config.needles is not None:
        raise BadInput(where, "its conversations are made by code, which does not run for a page")
    changed = BadInput(where, "the data or its config changed since the run", expected="the recorded fingerprint")
    if config.data.type in WITHOUT_FILES:
        dataset = open_dataset(config, catalog)
        if Fingerprint.of(dataset.fingerprint).digest != recorded.digest:
            raise changed
        return dataset
    from memorybench.datasets.mapped import fingerprint_of, index_of, open_mapped
    from memorybench.datasets.sources import LARGEST, local_source, missing, verify_files

    from .data import cache_folder, source

    cache = cache_folder()
    located = local_source(config, file) if file is not None else source(config, catalog, cache)
    if not located.present:
        raise missing(located)
    files = [piece.file for piece in located.pieces]
    index = index_of(config, files, cache / "indexes")
    indexes = cache / "indexes" if index is not None and index.exists() else None
    for one in files:
        check_confined(one, [*folders, cache], LARGEST if indexes is not None else _LARGEST_WITHOUT_INDEX)
    checksum = verify_files(located, indexes)
    if Fingerprint.of(fingerprint_of(config, checksum)).digest != recorded.digest:
        raise changed
    return open_mapped(config, files, lambda: checksum, indexes, cached=1)
