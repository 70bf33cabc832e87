"""Writes report files into a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from memorybench.core.report_sections import Report
from memorybench.files.writing import write_file

from .json_document import to_json
from .markdown import to_markdown

FORMATS: Mapping[str, tuple[str, Callable[[Report], str]]] = {
    "json": ("report.json", to_json),
    "markdown": ("report.md", to_markdown),
}
"""File name and renderer by the name of the format."""


def write_reports(report: Report, folder: Path, formats: Iterable[str] = FORMATS) -> list[Path]:
    """Write a file for each format and return their paths."""
    files = []
    for name in formats:
        file_name, render = FORMATS[name]
        write_file(folder / file_name, render(report))
        files.append(folder / file_name)
    return files
