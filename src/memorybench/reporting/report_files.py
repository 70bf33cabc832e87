"""Writes report files into a folder, and the summary of a GitHub workflow step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from memorybench.core.errors import BadInput
from memorybench.core.report_sections import Report
from memorybench.files.writing import write_file

from .json_document import to_json
from .markdown import to_markdown

_LONGEST_SUMMARY = 1024 * 1024
"""The most bytes of a summary. GitHub does not show a longer summary at all."""
_CUT = "\n\n> The report is shortened: GitHub shows at most 1 MiB. The whole report is report.md in the run's folder.\n"


def append_summary(path: Path, markdown: str, redact: Callable[[str], str]) -> None:
    """Append Markdown to the summary of a workflow step: as many whole lines as fit GitHub's limit, without secrets."""
    try:
        used = path.stat().st_size if path.is_file() else 0
        text = _fitting(redact(markdown) + "\n", _LONGEST_SUMMARY - used)
        with path.open("a", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        raise BadInput(
            str(path),
            f"the file cannot be written ({error.strerror}); the results of the run are saved",
            remedy="name another file",
        ) from error


def _fitting(text: str, room: int) -> str:
    encoded = text.encode("utf-8", "backslashreplace")
    if len(encoded) <= room:
        return encoded.decode()
    kept = encoded[: max(0, room - len(_CUT.encode()))].rpartition(b"\n")[0]
    return kept.decode() + _CUT if kept else ""


FORMATS: Mapping[str, tuple[str, Callable[[Report], str]]] = {
    "json": ("report.json", to_json),
    "markdown": ("report.md", to_markdown),
}
"""The name of the report file of each format, and the function that renders it."""
HTML_FILE = "report.html"


def write_reports(
    report: Report, folder: Path, formats: Iterable[str] = FORMATS, html: str | None = None
) -> list[Path]:
    """Write a report file per format and, if given, `html` to report.html; return the paths."""
    files = []
    for name in formats:
        file_name, render = FORMATS[name]
        write_file(folder / file_name, render(report))
        files.append(folder / file_name)
    if html is not None:
        write_file(folder / HTML_FILE, html)
        files.append(folder / HTML_FILE)
    return files
