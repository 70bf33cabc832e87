"""Finds a file that a config names."""

from __future__ import annotations

from pathlib import Path

from memorybench.core.errors import BadInput
from memorybench.text.sanitize import preview


def find_file(path: str, config_file: Path | None, where: str) -> Path:
    """Return the full path of a file. `path` is relative to the folder of the config, or else to the working folder.

    Raise BadInput if there is no such file in either.
    """
    folders = [config_file.parent, Path()] if config_file else [Path()]
    for folder in folders:
        if (folder / path).is_file():
            return (folder / path).resolve()
    searched = " or ".join(str(folder.resolve()) for folder in folders)
    raise BadInput(where, f"file not found: {preview(path)}", expected=f"a path relative to {searched}")
