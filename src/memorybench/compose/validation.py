"""What a file is, and whether it is sound."""

from __future__ import annotations

from pathlib import Path

from memorybench.catalog.files import recognise as recognise_config
from memorybench.catalog.files import unrecognised
from memorybench.datasets.config_reading import read_benchmark
from memorybench.documents.loading import load
from memorybench.documents.located import Document
from memorybench.journal.database import FILE_NAME, check
from memorybench.journal.shelf import Shelf
from memorybench.providers.config_reading import needed_variables, read_provider
from memorybench.vocabulary.errors import BadInput

from .environment import environment

_DATABASES = (".db", ".sqlite", ".sqlite3")
_CONFIGS = (".yaml", ".yml")


def recognise(path: Path) -> str:
    """One line about a sound file; BadInput for any other. Nothing is changed."""
    if path.suffix in _DATABASES:
        return _database(path)
    document = load(path)
    if path.suffix in _CONFIGS:
        return _config(document)
    return f"well-formed, {_size(document.value)}"


def _database(path: Path) -> str:
    if not path.exists():
        raise BadInput(str(path), "there is no such file", remedy="check the path")
    check(path)
    if path.name != FILE_NAME:
        return "results file"
    with Shelf.open(path.parent, thorough=False) as shelf:
        return f"results file, {len(shelf.runs())} runs"


def _config(document: Document) -> str:
    kind = recognise_config(document)
    if kind == "provider":
        provider = read_provider(document)
        missing = [name for name, there in needed_variables(provider, environment()).items() if not there]
        note = f"; set {', '.join(missing)} before you use it" if missing else ""
        return f'provider config "{provider.name}" ({provider.type}){note}'
    if kind == "benchmark":
        benchmark = read_benchmark(document)
        return f'benchmark config "{benchmark.name}" (data: {benchmark.data.type})'
    raise unrecognised(document)


def _size(value: object) -> str:
    if isinstance(value, list):
        return f"{len(value)} items"
    if isinstance(value, dict):
        return f"{len(value)} keys"
    return "one value"
