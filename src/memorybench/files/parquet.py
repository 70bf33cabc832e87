"""Reads the rows of Parquet files, with pyarrow from the extra `parquet`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.files.located import Document
from memorybench.files.reading import LARGEST

_ROWS = 64
"""Number of rows that are decoded at once; few, because one row may be a conversation of a million tokens."""


BinaryValues = dict[Path, Counter[str]]
"""The number of binary values in each column, by file."""


def stream_parquet(path: Path, binary: BinaryValues | None = None) -> Iterator[Document]:
    """Yield each row as JSON data. Its line number is the number of the row.

    Dates become ISO 8601 texts, and NaN null. Binary values, such as images, become null and are counted in `binary`.
    """
    skipped: Counter[str] = Counter()
    if binary is not None:
        binary[path] = skipped  # a second reading counts anew
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise BadInput(
            str(path), "pyarrow, which reads Parquet, is not installed", remedy="pip install 'memorybench[parquet]'"
        ) from None
    try:
        with parquet.ParquetFile(path) as file:
            metadata = file.metadata
            size = sum(metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups))
            if size > LARGEST:
                raise BadInput(str(path), f"unpacks to more than {LARGEST} bytes", remedy="split it into several files")
            number = 0
            for batch in file.iter_batches(batch_size=_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    plain = {str(column): _plain(value, str(column), skipped) for column, value in row.items()}
                    yield Document(str(path), plain, lambda _, number=number: number)  # type: ignore[misc]
    except FileNotFoundError:
        raise BadInput(str(path), "file not found", remedy="check the path") from None
    except (pyarrow.ArrowException, OSError) as error:
        raise BadInput(
            str(path), f"is not a valid Parquet file: {str(error).splitlines()[0]}", remedy="download the file again"
        ) from None
    if not number:
        raise BadInput(str(path), "has no rows", remedy="check that it was written or downloaded completely")


def _number(value: Decimal) -> int | float | str | None:
    """Return a decimal as a JSON number, or as text if a number would lose digits; None if it is not finite."""
    if not value.is_finite():
        return None
    if value == value.to_integral_value():
        return int(value)  # 10.00 becomes 10: as a gold answer, 10.0 would not match an answer that says 10
    return float(value) if Decimal(str(float(value))) == value else str(value)


def _plain(value: Any, column: str, skipped: Counter[str]) -> Any:
    match value:
        case dict():
            return {str(key): _plain(inner, column, skipped) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner, column, skipped) for inner in value]
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return _number(value)
        case float() if math.isnan(value):
            return None
        case str() | bool() | int() | float() | None:
            return value
    skipped[column] += 1
    return None
