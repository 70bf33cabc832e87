"""Collects the memory searches and memory writes in recorded spans, and stores them in files of the run.

With the files, the operations need not fit into RAM, and a resumed run measures the same operations, even if new ones
have been recorded meanwhile.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.core.extraction import Trace, UnusableTrace
from memorybench.core.genai_names import DELETE_MEMORY, QUERY_TEXT, RECORD_COUNT, RECORDS, STORE_ID, WRITES
from memorybench.core.operations import MemorySearch, MemoryWrite
from memorybench.core.records import Record
from memorybench.core.trials import Subject

from .exported_spans import SpanNames
from .otlp import extraction_row
from .otlp_spans import NO_NAMES, OTLP, SpanTable, StoredSpan, open_spans
from .paths import OF_FILES, TracePaths
from .spool import RecordFile, private_draft

SEARCHES, WRITTEN = "searches", "writes"
KINDS = (SEARCHES, WRITTEN)
_SUFFIX = ".jsonl"
_BLOCK = 2**20


class OperationFiles(Struct, frozen=True):
    """The files with the operations of a run: searches and writes."""

    subject: Subject
    searches: RecordFile[MemorySearch]
    writes: RecordFile[MemoryWrite]

    def digest(self) -> str:
        found = hashlib.sha256()
        for path in (self.searches.path, self.writes.path):
            with path.open("rb") as file:
                while block := file.read(_BLOCK):
                    found.update(block)
        return found.hexdigest()

    def remove(self) -> None:
        for path in (self.searches.path, self.writes.path):
            path.unlink()


class Selection(Struct, frozen=True):
    """Which operations are measured, and which span names the user has declared to be operations."""

    kinds: tuple[str, ...] = KINDS
    since: datetime | None = None
    """Only operations that began at this time or later are measured; None: no limit."""
    limit: int | None = None
    """Maximum number of operations of each kind, oldest first; None: no limit."""
    names: SpanNames = NO_NAMES


def is_collected(folder: Path) -> bool:
    return (folder / f"{SEARCHES}{_SUFFIX}").exists()  # it is created last


def collect(
    path: Path,
    folder: Path,
    subject: Subject,
    selection: Selection,
    *,
    source: str = OTLP,
    redact: Callable[[str], str] = str,
) -> OperationFiles:
    """Collect the operations in the spans of `path` into files in `folder`, and return these files.

    If the files exist already, they are returned as they are. Raise BadInput if there are no operations.
    """
    searches, writes = (folder / f"{kind}{_SUFFIX}" for kind in KINDS)
    if not is_collected(folder):
        try:
            with open_spans(path, source, selection.names) as table:
                sizes = [
                    _write(writes, _writes(table, selection, path) if WRITTEN in selection.kinds else (), redact),
                    _write(searches, _searches(table, selection) if SEARCHES in selection.kinds else (), redact),
                ]
            if not any(sizes):
                raise BadInput(
                    str(path),
                    "no span searches or writes a memory",
                    expected=f"spans with gen_ai.operation.name: {', '.join(('search_memory', *sorted(WRITES)))}",
                    remedy="check --source and --since, or name the spans with --search-name and --write-name",
                )
        except BaseException:
            for file in (searches, writes):
                file.unlink(missing_ok=True)
            raise
    return OperationFiles(
        subject,
        RecordFile.open(searches, MemorySearch.model_validate_json),
        RecordFile.open(writes, MemoryWrite.model_validate_json),
    )


def _searches(table: SpanTable, selection: Selection) -> Iterator[MemorySearch]:
    since = selection.since
    found = (span for span in table.searches() if since is None or span.at >= since)
    for span in islice(found, selection.limit):
        yield _memory_search(span, table.reply_after(span))


def _memory_search(span: StoredSpan, reply: StoredSpan | None) -> MemorySearch:
    attributes = span.attributes
    records, count = attributes.get(RECORDS), attributes.get(RECORD_COUNT)
    texts = tuple(map(_text, records)) if isinstance(records, list) else None
    known = count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None
    return MemorySearch(
        id=f"{span.trace}/{span.id}",
        trace=span.trace,
        store=str(attributes.get(STORE_ID, "")),
        query=str(attributes.get(QUERY_TEXT, "")),
        records=texts,
        count=len(texts) if texts is not None else known,
        reply=reply.reply if reply is not None else None,
        is_error=span.is_error,
        at=span.at,
    )


def _text(record: Any) -> str:
    content = record.get("content", record) if isinstance(record, Mapping) else record
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _writes(table: SpanTable, selection: Selection, path: Path) -> Iterator[MemoryWrite]:
    since, paths = selection.since, TracePaths.of(OF_FILES)
    groups = table.writes_by_conversation(WRITES | {DELETE_MEMORY})
    found = ((source, writes) for source, writes in groups if since is None or writes[0].at >= since)
    for source, writes in islice(found, selection.limit):
        yield _memory_write(source, writes, paths, f"{path}:{writes[0].line}")


def _memory_write(source: StoredSpan | None, writes: list[StoredSpan], paths: TracePaths, where: str) -> MemoryWrite:
    first, row = writes[0], extraction_row(source, writes)
    try:
        extraction: Trace | None = paths.trace(row, where)
        problem = extraction.problem if isinstance(extraction, UnusableTrace) else ""
    except BadInput as error:  # a finished trace cannot be corrected
        extraction, problem = None, str(error)
    stored = [span for span in writes if span.operation in WRITES and not span.is_error]
    counts = [len(records) for span in stored if isinstance(records := span.attributes.get(RECORDS), list)]
    return MemoryWrite(
        id=str(row["id"]),
        trace=first.trace,
        store=str(first.attributes.get(STORE_ID, "")),
        extraction=None if problem else extraction,
        problem=problem,
        count=sum(counts) if len(counts) == len(stored) else None,
        is_error=any(span.is_error for span in writes),
        at=first.at,
    )


def _write(path: Path, records: Iterable[Record], redact: Callable[[str], str]) -> int:
    """Write the records to a file, one per line, with secrets removed by `redact`; return their number."""
    size = 0
    with private_draft(path, "memory operations") as file:
        for record in records:
            file.write(f"{redact(record.model_dump_json())}\n".encode())
            size += 1
    return size
