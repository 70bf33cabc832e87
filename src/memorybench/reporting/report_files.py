"""Writes report files into a run's folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from memorybench.core.report_sections import Report

from .json_document import to_json
from .markdown import to_markdown

FORMATS: Mapping[str, tuple[str, Callable[[Report], str]]] = {
    "json": ("report.json", to_json),
    "markdown": ("report.md", to_markdown),
}
"""File name and renderer by the name of the format."""


def write_reports(report: Report, folder: Path, formats: Iterable[str] = FORMATS) -> None:
    """Writes each format to a draft first: a reader never sees half a file."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in formats:
        file_name, render = FORMATS[name]
        draft = folder / f".{file_name}"
        draft.write_text(render(report), encoding="utf-8")
        draft.replace(folder / file_name)
