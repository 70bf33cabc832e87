"""Opens the dataset of a benchmark config."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from memorybench.core.errors import BadInput
from memorybench.datasets.config_reading import GROUP, WITHOUT_FILES
from memorybench.files.entry_points import built_in_points

from .renaming import rename_dataset

if TYPE_CHECKING:
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
