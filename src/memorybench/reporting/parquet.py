"""Exports one row per trial as Parquet, with a type for each column. Needs the extra `parquet`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.files.writing import replacing

from .export import Kind, Layout

_ROWS_PER_GROUP = 5000


def write_parquet(rows: Iterable[dict[str, Any]], columns: Layout, path: Path) -> int:
    """Write rows in groups, so that a long run needs little memory; return how many there were."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise BadInput(
            "--format parquet", "pyarrow is not installed", remedy="pip install 'memorybench[parquet]'"
        ) from error
    types = {
        "text": pyarrow.string(),
        "number": pyarrow.float64(),
        "integer": pyarrow.int64(),
        "time": pyarrow.timestamp("ms", tz="UTC"),
        "list": pyarrow.list_(pyarrow.string()),
        "lists": pyarrow.list_(pyarrow.list_(pyarrow.string())),
        "numbers": pyarrow.list_(pyarrow.float64()),
    }
    schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.kinds.items()])
    written, remaining = 0, iter(rows)
    with replacing(path) as file, parquet.ParquetWriter(file.buffer, schema) as writer:
        while group := list(islice(remaining, _ROWS_PER_GROUP)):
            values = {name: [_value(row[name], kind) for row in group] for name, kind in columns.kinds.items()}
            writer.write_table(pyarrow.table(values, schema=schema))
            written += len(group)
    return written


def _value(value: Any, kind: Kind) -> Any:
    if kind == "time" and value is not None:
        return datetime.fromisoformat(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value
