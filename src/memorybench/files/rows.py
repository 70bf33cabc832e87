"""JSONL and CSV files as streams: each row is a Document with its line number."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.text.sanitize import preview

from .json_text import decode
from .located import Document, Place
from .reading import LONGEST_LINE, read_lines


def numbered_jsonl(path: Path | str) -> Iterator[tuple[int, Any]]:
    """Yield (line number, value) of each row. Blank lines are skipped."""
    name = str(path)
    for number, line in read_lines(Path(path)):
        if line and not line.isspace():
            yield number, decode_line(line, name, number)


def stream_csv(path: Path | str) -> Iterator[Document]:
    """Yield each row as a mapping from column name to text. The line of a multi-line row is its first line."""
    # the default limit of 128 KiB per cell is less than one long conversation
    csv.field_size_limit(LONGEST_LINE)
    rows = _csv_rows(Path(path))
    number, cells = next(rows, (1, [""]))
    header = _header(cells, f"{path}:{number}")
    for number, cells in rows:
        if len(cells) != len(header):
            raise BadInput(
                f"{path}:{number}",
                f"the row has {len(cells)} cells, but the header has {len(header)}",
                expected="one cell for each column",
                remedy="quote cells that contain commas or line ends",
            )
        yield row_document(path, dict(zip(header, cells, strict=True)), number)


def load_jsonl(path: Path | str) -> Document:
    return _collect(path, (row_document(path, value, number) for number, value in numbered_jsonl(path)))


def load_csv(path: Path | str) -> Document:
    return _collect(path, stream_csv(path))


def row_document(path: Path | str, value: Any, line: int) -> Document:
    """Return a value as a Document whose places all have the same line."""
    return Document(str(path), value, lambda _: line)


def _collect(path: Path | str, rows: Iterable[Document]) -> Document:
    values, lines = [], []
    for row in rows:
        values.append(row.value)
        lines.append(row.line())

    def line_of(place: Place) -> int | None:
        index = place[0] if place else None
        return lines[index] if isinstance(index, int) and index < len(lines) else None

    return Document(str(path), values, line_of, are_rows=True)


def decode_line(line: str, path: str, number: int) -> Any:
    """Return the value of one line of a JSONL file."""
    try:
        return decode(line, path, number)
    except BadInput as bad:
        if line.endswith("\n"):
            raise
        # only the last line can lack a line end: a writer or a download was interrupted
        raise BadInput(
            bad.where,
            f"the last line is invalid, perhaps incomplete: {bad.problem}",
            expected="one JSON value",
            remedy="complete or remove the line",
        ) from None


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield each row that is not blank, with the line on which it begins."""
    reader = csv.reader((line for _, line in read_lines(path)), strict=True)
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise BadInput(
                f"{path}:{number}", f"invalid CSV: {error}", remedy="quote the cell and double the quotes in it"
            ) from None
        if cells and not (len(cells) == 1 and cells[0].isspace()):
            yield number, cells


def _header(cells: list[str], where: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    for column, name in enumerate(names, 1):
        if not name:
            raise BadInput(
                where,
                f"column {column} has no name",
                expected="a first line that names every column",
                remedy="add the header",
            )
        if name in names[: column - 1]:
            raise BadInput(where, f"two columns have the name {preview(name)}", remedy="rename one of the two")
    return names
