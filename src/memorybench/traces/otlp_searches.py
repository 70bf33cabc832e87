"""Searches in a memory from OpenTelemetry traces: what was found, and what the agent said afterwards."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.core.genai_names import OUTPUT_MESSAGES, QUERY_TEXT, RECORD_COUNT, RECORDS, SEARCH_MEMORY, STORE_ID
from memorybench.core.operations import MemorySearch
from memorybench.core.trials import Subject

from .messages import InvalidConversation, turns_of
from .otlp import messages_of
from .otlp_spans import OtlpSpan, SpanTable, open_spans
from .span_files import span_files

_BLOCK = 2**20


class OtlpSearches:
    """The searches in a file of OTLP JSON. The file is read again for each iteration."""

    def __init__(self, path: Path, *, since: datetime | None = None, limit: int | None = None) -> None:
        self.subject = Subject(role="traces", name=path.name, settings={"source": "otlp"})
        self._path = path
        self._since = since
        self._limit = limit

    @property
    def since(self) -> str | None:
        return self._since.isoformat() if self._since is not None else None

    def __iter__(self) -> Iterator[MemorySearch]:
        with open_spans(self._path) as table:
            for span in self._selected(table):
                yield _search(span, table.reply_after(span))

    def count(self) -> int:
        """Return the number of searches; raise BadInput if there is none."""
        with open_spans(self._path) as table:
            found = sum(1 for _ in self._selected(table))
        if not found:
            expected = f"gen_ai.operation.name {SEARCH_MEMORY}"
            raise BadInput(str(self._path), "no span searches a memory", expected=expected, remedy="check --since")
        return found

    def digest(self) -> str:
        """Return a digest of the file, or of the files of the folder."""
        found = hashlib.sha256()
        for path in span_files(self._path):
            with path.open("rb") as file:
                while block := file.read(_BLOCK):
                    found.update(block)
        return found.hexdigest()

    def _selected(self, table: SpanTable) -> Iterator[OtlpSpan]:
        count = 0
        for span in table.searches():
            if self._since is not None and span.at < self._since:
                continue
            if count == self._limit:
                return
            count += 1
            yield span


def _search(span: OtlpSpan, reply: OtlpSpan | None) -> MemorySearch:
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
        reply=_reply(reply) if reply is not None else None,
        is_error=span.is_error,
        at=span.at,
    )


def _text(record: Any) -> str:
    content = record.get("content", record) if isinstance(record, Mapping) else record
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _reply(span: OtlpSpan) -> str | None:
    try:
        return "\n".join(turn.content for turn in turns_of(messages_of(span, OUTPUT_MESSAGES)))
    except InvalidConversation:
        return None
