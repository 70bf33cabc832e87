"""Reads extractions from OpenTelemetry traces: conversations, each with the memories that were written from it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.core.extraction import Trace
from memorybench.core.genai_names import EXISTING_MEMORY, INPUT_MESSAGES, OUTPUT_MESSAGES, RECORDS, WRITES
from memorybench.core.trials import Subject

from .exported_spans import SpanNames
from .messages import messages_in
from .otlp_spans import NO_NAMES, OTLP, StoredSpan, open_spans
from .paths import TracePaths


class OtlpTraces(Struct, frozen=True):
    """Reads extractions from a file of OTLP JSON, or from a file that a tracing service exported.

    A span that writes memories belongs to the conversation in its own `gen_ai.input.messages`, in those of the nearest
    span that contains it, or in those of the last span of its trace that began before it. All writes that belong to one
    conversation are one extraction.
    """

    path: Path
    paths: TracePaths
    source: str = OTLP
    names: SpanNames = NO_NAMES
    since: datetime | None = None
    limit: int | None = None

    @property
    def subject(self) -> Subject:
        settings = {"source": self.source, "paths": self.paths.texts}
        return Subject(role="traces", name=self.path.name, settings=settings)

    async def traces(self) -> AsyncIterator[Trace]:
        count, found = 0, False
        with open_spans(self.path, self.source, self.names) as table:
            for source, writes in table.writes_by_conversation():
                found = True
                if self.since is not None and writes[0].at < self.since:
                    continue
                if count == self.limit:
                    return
                count += 1
                yield self.paths.trace(extraction_row(source, writes), f"{self.path}:{writes[0].line}")
        if not found:
            raise BadInput(
                str(self.path),
                "no span writes memories",
                expected=f"spans with gen_ai.operation.name: {', '.join(sorted(WRITES))}",
            )


def extraction_row(source: StoredSpan | None, writes: Sequence[StoredSpan]) -> dict[str, Any]:
    """Return an extraction as an object with the same keys as a line of a JSONL file of traces.

    `source` is the span with the messages of the conversation, `writes` are the spans that wrote memories from it.
    """
    first = writes[0]
    existing = [span.attributes[EXISTING_MEMORY] for span in writes if EXISTING_MEMORY in span.attributes]
    return {
        "id": f"{first.trace}/{source.id if source is not None else first.id}",
        "conversation": messages_in(source.attributes, INPUT_MESSAGES, OUTPUT_MESSAGES) if source is not None else None,
        "existing_memory": existing[0] if existing else None,
        "output": _written(writes),
        "start_time": first.at.isoformat(),
        "attributes": first.attributes,
        "error": "the write failed" if all(span.is_error for span in writes) else None,
    }


def _written(spans: Sequence[StoredSpan]) -> Any:
    """Return the contents of the memories that the successful writes stored; None if they are unknown.

    A single content is returned itself, several contents as a list.
    """
    contents: list[Any] = []
    for span in spans:
        records = span.attributes.get(RECORDS)
        if not span.is_error and span.operation in WRITES and isinstance(records, list):
            contents += [record["content"] for record in records if isinstance(record, Mapping) and "content" in record]
    if not contents:
        stored = (span for span in spans if span.operation in WRITES)
        return [] if any(isinstance(span.attributes.get(RECORDS), list) for span in stored) else None
    return contents[0] if len(contents) == 1 else contents
