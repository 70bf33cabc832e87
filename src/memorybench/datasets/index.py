"""The index of a large data file: its questions and the place of each item, so that the next run need not parse it.

Indexes are files in the cache folder and can be deleted at any time. An index is used only if the fingerprint in it,
which covers the content of the data file and the config, is that of the dataset to open.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from memorybench import __version__
from memorybench.core.questions import Question
from memorybench.core.records import Record, digest

from .items import Span

SMALLEST = 4 * 2**20
"""Size in bytes of the smallest data file that gets an index."""


class Index(Record):
    fingerprint: str
    questions: tuple[Question, ...]
    notes: tuple[str, ...]
    spans: Mapping[str, Span]
    """By haystack: the place of its item in the data file."""


def index_file(folder: Path, data: Path, config: str) -> Path | None:
    """Return the path of the index of a data file, whether it exists or not.

    It is None for a small file, which has none, and for a file that cannot be read.

    `config` is a digest of the benchmark config.
    """
    try:
        status = data.stat()
    except OSError:
        return None
    if status.st_size < SMALLEST:
        return None
    data_file = digest([str(data.resolve()), config, __version__])
    return folder / f"{data_file}-{status.st_size}-{status.st_mtime_ns}.json"


def load_index(file: Path, fingerprint: str) -> Index | None:
    try:
        index = Index.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None
    return index if index.fingerprint == fingerprint else None


def save_index(file: Path, index: Index) -> None:
    """Write the index, and delete those of earlier versions of the data file. Ignore a cache that cannot be written."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.touch(mode=0o600)  # it contains questions and answers of the user's data
        draft.write_text(index.model_dump_json(), encoding="utf-8")
        draft.replace(file)
        for other in file.parent.glob(f"{file.name.partition('-')[0]}-*.json"):
            if other != file:
                other.unlink(missing_ok=True)
    except (OSError, UnicodeEncodeError):
        with suppress(OSError):
            draft.unlink()
