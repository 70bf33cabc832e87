"""From a benchmark config to a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from memorybench.datasets.config import BenchmarkConfig
from memorybench.vocabulary.errors import BadInput
from memorybench.vocabulary.questions import Dataset

if TYPE_CHECKING:
    from memorybench.catalog.catalog import Catalog


def open_dataset(config: BenchmarkConfig, catalog: Catalog) -> Dataset:
    data = config.data
    if data.type == "bundled" and data.path == "starter":
        from memorybench.datasets.starter import Starter

        return Starter()
    if data.type == "plugin":
        return cast("Dataset", catalog.plugin("benchmark", data.path).load()())
    raise BadInput(f'benchmark "{config.name}"', f"data of type {data.type} can not be read yet")
