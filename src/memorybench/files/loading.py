"""Loads a file by its suffix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from memorybench.core.errors import BadInput

from .json_text import load_json
from .located import Document
from .rows import load_csv, load_jsonl
from .yaml_file import load_yaml

_LOADERS: Mapping[str, Callable[[Path | str], Document]] = {
    ".json": load_json,
    ".jsonl": load_jsonl,
    ".ndjson": load_jsonl,
    ".csv": load_csv,
    ".yaml": load_yaml,
    ".yml": load_yaml,
}


def load(path: Path | str) -> Document:
    """Load a file in the format of its suffix, which may be followed by `.gz`; raise BadInput for an unknown suffix.

    The value of a JSONL or CSV file is the list of its rows.
    """
    name = Path(path).name.lower().removesuffix(".gz")
    loader = _LOADERS.get(Path(name).suffix)
    if loader is None:
        raise BadInput(str(path), "unknown file type", expected=f"a name ending in {', '.join(_LOADERS)}")
    return loader(path)
