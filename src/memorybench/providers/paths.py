"""Paths that a config names."""

from __future__ import annotations

from pathlib import Path

from memorybench.core.errors import BadInput
from memorybench.text.sanitize import preview


def named_file(path: str, config_file: Path | None, where: str) -> Path:
    """The file that a config means: seen from the config's own folder, else from the working folder."""
    folders = [config_file.parent, Path()] if config_file else [Path()]
    for folder in folders:
        if (folder / path).is_file():
            return (folder / path).resolve()
    looked = " or ".join(str(folder.resolve()) for folder in folders)
    raise BadInput(where, f"there is no file {preview(path)}", expected=f"a path from {looked}", remedy="check it")
