"""What a file is, and whether it is sound."""

from __future__ import annotations

from pathlib import Path

from memorybench.documents.loading import load
from memorybench.journal.database import check
from memorybench.journal.shelf import Shelf


def recognise(path: Path) -> str:
    """One line about a sound file; BadInput for any other. Nothing is changed."""
    if path.suffix in (".db", ".sqlite"):
        check(path)
        with Shelf.open(path.parent, thorough=False) as shelf:
            return f"results file, {len(shelf.runs())} runs"
    document = load(path)
    return f"well-formed, {_size(document.value)}"


def _size(value: object) -> str:
    if isinstance(value, list):
        return f"{len(value)} items"
    if isinstance(value, dict):
        return f"{len(value)} keys"
    return "one value"
