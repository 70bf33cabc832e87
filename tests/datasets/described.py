"""Datasets of a few lines, described by a config of a few lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memorybench.catalog import catalog as catalogue
from memorybench.datasets.config import BenchmarkConfig
from memorybench.datasets.config_reading import read_benchmark
from memorybench.datasets.locating import local_source
from memorybench.datasets.mapped import MappedDataset, open_mapped
from memorybench.files.located import Document
from memorybench.files.yaml_file import load_yaml

BUNDLED = Path(catalogue.__file__).parent / "benchmarks"
SHARED = Path(__file__).parents[2] / "../shared/data"
NO_SHARED = "the benchmark data is not beside this checkout (../shared/data)"

SCHEMA: dict[str, Any] = {
    "itemId": "id",
    "question": "question",
    "answer": "answer",
    "context": {"field": "sessions", "itemSchema": {"content": "text", "role": "role"}},
}


def item(**changed: Any) -> dict[str, Any]:
    return {
        "id": "q1",
        "question": "Which colour?",
        "answer": "green",
        "sessions": [[{"role": "user", "text": "The fence is green."}]],
    } | changed


def config(schema: dict[str, Any] | None = None, **sections: Any) -> BenchmarkConfig:
    value = {
        "name": "sample",
        "data": {"type": "local", "path": "sample.json"},
        "schema": SCHEMA | (schema or {}),
        "evaluation": {"method": "exact-match"},
    }
    return read_benchmark(Document("sample.yaml", value | sections))


def written(folder: Path, items: Any, name: str = "sample.json") -> Path:
    """One line a key, so that complaints can name lines."""
    file = folder / name
    file.write_text(items if isinstance(items, str) else json.dumps(items, indent=1), encoding="utf-8")
    return file


def opened(folder: Path, items: Any, schema: dict[str, Any] | None = None, **sections: Any) -> MappedDataset:
    described = config(schema, **sections)
    return open_mapped(described, local_source(described, written(folder, items)), lambda: "checksum")


def bundled(name: str) -> BenchmarkConfig:
    return read_benchmark(load_yaml(BUNDLED / f"{name}.yaml"))
