"""Opens the dataset of a benchmark config."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from memorybench.core.errors import BadInput
from memorybench.datasets.data_checks import GROUP
from memorybench.datasets.schema_checks import WITHOUT_FILES
from memorybench.files.entry_points import built_in_points
from memorybench.files.reading import check_confined
from memorybench.journal.rows import Fingerprint
from memorybench.text.sanitize import preview

from .renaming import rename_dataset

_LARGEST_WITHOUT_INDEX = 64 * 2**20
"""In bytes. To show a conversation, a larger data file is read only if it has an index."""

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memorybench.catalog.catalog import Catalog
    from memorybench.core.questions import Dataset
    from memorybench.datasets.config import BenchmarkConfig
    from memorybench.datasets.sources import Source


def open_dataset(config: BenchmarkConfig, catalog: Catalog, *, file: Path | None = None) -> Dataset:
    """Open the data of a benchmark on this machine; nothing is downloaded.

    `file` replaces the file or folder that the config names.
    """
    data = config.data
    if data.type in WITHOUT_FILES:
        if file is not None:
            raise BadInput(
                f'benchmark "{config.name}"',
                f"its data is {data.type} and not read from a file, so no path can be given",
                remedy=f"leave out {config.name}={file}",
            )
        is_plugin = data.type == "plugin"
        point = catalog.plugin("benchmark", data.path) if is_plugin else built_in_points(GROUP)[data.path]
        dataset = cast("Dataset", point.load()())
        if data.sha256 not in (None, dataset.fingerprint):
            raise BadInput(
                f'benchmark "{config.name}"',
                f"its data has the SHA-256 checksum {dataset.fingerprint}",
                expected=str(data.sha256),
            )
        return rename_dataset(dataset, config.name)
    from memorybench.datasets.locating import local_source, unpacked_source
    from memorybench.datasets.sources import verify_files

    from .data import cache_folder, source

    located = local_source(config, file) if file is not None else source(config, catalog)
    files = located.item_files
    if config.needles is not None:
        from memorybench.datasets.nolima import open_needles

        return open_needles(config, files[0], files[1:], verify_files(located))
    if config.cues is not None:
        from memorybench.datasets.locomo_plus import open_cues

        return open_cues(config, files[0], files[1], verify_files(located))
    from memorybench.datasets.mapped import open_mapped

    cache = cache_folder()
    indexes = cache / "indexes"
    unpacked = unpacked_source(config, located, cache)
    checksum = partial(verify_files, located, indexes)
    return open_mapped(config, unpacked, checksum, indexes)


def preview_file(file: Path, samples: int, data_files: Mapping[str, str]) -> dict[str, Any]:
    """Read a benchmark config from a file and return a preview of its data, as `preview_benchmark` does."""
    from memorybench.datasets.config_reading import read_benchmark
    from memorybench.datasets.locating import source_of
    from memorybench.files.yaml_file import load_yaml

    from .data import cache_folder
    from .environment import environment

    config = read_benchmark(load_yaml(file), environment())
    _check_mapped(config)
    located = _given_source(config, data_files) or source_of(config, beside=file.parent, cache=cache_folder())
    return preview_data(config, located, samples)


def preview_benchmark(
    config: BenchmarkConfig, catalog: Catalog, samples: int, data_files: Mapping[str, str]
) -> dict[str, Any]:
    """Return a preview of the data of a benchmark in the catalog; see `preview_data`.

    `data_files` maps the name of the benchmark to a file or folder that replaces the one in its config.
    """
    from .data import source

    _check_mapped(config)
    return preview_data(config, _given_source(config, data_files) or source(config, catalog), samples)


def _given_source(config: BenchmarkConfig, data_files: Mapping[str, str]) -> Source | None:
    from memorybench.datasets.locating import local_source

    for name, path in data_files.items():
        if name != config.name:
            raise BadInput(
                "--data-file",
                f"{preview(name)} is not the name of the benchmark that is read",
                expected=f"{config.name}={path}",
            )
        return local_source(config, Path(path))
    return None


def _check_mapped(config: BenchmarkConfig) -> None:
    if config.mapping is None and config.cues is None:
        kind = "made by code from several files" if config.is_built else config.data.type
        raise BadInput(
            f'benchmark "{config.name}"',
            f"its data is {kind}, and cannot be previewed",
            expected="data that a schema maps",
        )


def preview_data(config: BenchmarkConfig, located: Source, samples: int = 3) -> dict[str, Any]:
    """Read all data of a benchmark; return counts, `samples` examples and what was left out, as JSON values."""
    from memorybench.datasets.locating import unpacked_source
    from memorybench.datasets.mapped import open_mapped
    from memorybench.datasets.sources import missing, verify_files
    from memorybench.datasets.survey import Survey, summarize

    from .data import cache_folder

    if not located.present and located.remote:  # its address may hold variables, which nobody allowed to show
        raise BadInput(
            f'benchmark "{config.name}"',
            "the data is not on this machine",
            remedy=f"run `memorybench data pull {config.name}`",
        )
    if not located.present:
        raise missing(located)
    survey = Survey.of(config)
    if config.cues is not None:
        from memorybench.datasets.locomo_plus import open_cues

        cues, conversations = located.item_files
        built = open_cues(config, cues, conversations, verify_files(located))
        survey.add_histories(built.questions, built.haystack)
        return summarize(config, built, survey, samples)
    unpacked = unpacked_source(config, located, cache_folder())
    survey.skipped_files = unpacked.skipped
    dataset = open_mapped(config, unpacked, lambda: verify_files(located), survey=survey)
    return summarize(config, dataset, survey, samples)


def reopen_dataset(
    config: BenchmarkConfig, catalog: Catalog, recorded: Fingerprint, *, file: Path | None, folders: Sequence[Path]
) -> Dataset:
    """Open the data of a recorded run, to show it. Raise BadInput if the data is missing or has changed since the run.

    Files must be in the cache or below one of `folders`, and are parsed only if their fingerprint is the recorded one.
    Nothing is downloaded, and no plug-in is loaded.
    """
    where = f'benchmark "{config.name}"'
    if config.data.type == "plugin" or config.is_built:
        raise BadInput(where, "its conversations cannot be shown: code makes them, and the viewer does not run code")
    changed = BadInput(
        where, "the data or its config was changed since the run", expected="the fingerprint that the run recorded"
    )
    if config.data.type in WITHOUT_FILES:
        dataset = open_dataset(config, catalog)
        if Fingerprint.of(dataset.fingerprint).digest != recorded.digest:
            raise changed
        return dataset
    from memorybench.datasets.fingerprints import fingerprint_of
    from memorybench.datasets.locating import local_source, unpacked_source
    from memorybench.datasets.mapped import index_of, open_mapped
    from memorybench.datasets.pulling import LARGEST
    from memorybench.datasets.sources import missing, verify_files

    from .data import cache_folder, source

    cache = cache_folder()
    located = local_source(config, file) if file is not None else source(config, catalog)
    if not located.present:
        raise missing(located)
    index = index_of(config, located.item_files, cache / "indexes")
    indexes = cache / "indexes" if index is not None and index.exists() else None
    for piece in located.pieces:
        check_confined(piece.file, [*folders, cache], LARGEST if indexes is not None else _LARGEST_WITHOUT_INDEX)
    checksum = verify_files(located, indexes)
    if Fingerprint.of(fingerprint_of(config, checksum)).digest != recorded.digest:
        raise changed
    unpacked = unpacked_source(config, located, cache)
    return open_mapped(config, unpacked, lambda: checksum, indexes, cached=1)
