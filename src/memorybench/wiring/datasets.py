"""From a benchmark config to a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from memorybench.core.errors import BadInput
from memorybench.core.questions import Dataset
from memorybench.datasets.config import BenchmarkConfig

from .renaming import rename_dataset

if TYPE_CHECKING:
    from memorybench.catalog.catalog import Catalog


def open_dataset(
    config: BenchmarkConfig, catalog: Catalog, *, file: Path | None = None, cache: Path | None = None
) -> Dataset:
    """Reads the data of a benchmark from this machine; nothing is downloaded.

    `file` replaces the file or folder that the config names; `cache` is the folder of downloads, if not the usual one.
    """
    data = config.data
    if data.type in ("bundled", "plugin"):
        if file is not None:
            raise BadInput("--data-file", f"not supported: the data of {config.name} is {data.type}")
        return _open_without_file(config, catalog)
    from memorybench.datasets.sources import checked, given

    from .data import source

    found = given(config, file) if file is not None else source(config, catalog, cache)
    checksum = checked(found)
    files = [piece.file for piece in found.pieces]
    if config.needles is not None:
        from memorybench.datasets.nolima import open_needles

        return open_needles(config, files[0], files[1:], checksum)
    from memorybench.datasets.mapped import open_mapped

    return open_mapped(config, files[0], checksum)


def _open_without_file(config: BenchmarkConfig, catalog: Catalog) -> Dataset:
    if config.data.type == "plugin":
        dataset = cast("Dataset", catalog.plugin("benchmark", config.data.path).load()())
    else:
        from memorybench.datasets.starter import Starter

        dataset = Starter()
    pinned = config.data.sha256
    if pinned is not None and pinned != dataset.fingerprint:
        raise BadInput(f'benchmark "{config.name}"', f"its data is {dataset.fingerprint}", expected=pinned)
    return rename_dataset(dataset, config.name)
