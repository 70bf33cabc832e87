"""Spans from a file of OTLP JSON, as the file exporter of the OpenTelemetry collector writes it: one batch per line.

The spans of a trace are spread over the file, children before parents. They are collected in a temporary database, so
that a file of any size takes little memory.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from memorybench.core.errors import BadInput, JournalError
from memorybench.core.genai_names import (
    EXISTING_MEMORY,
    INPUT_MESSAGES,
    OPERATION,
    OUTPUT_MESSAGES,
    RECORDS,
    SEARCH_MEMORY,
    WRITES,
)
from memorybench.text.sanitize import preview

from .span_files import numbered_batches

_JSON_ATTRIBUTES = frozenset({INPUT_MESSAGES, OUTPUT_MESSAGES, RECORDS, EXISTING_MEMORY})
"""Attributes whose value is JSON; most exporters write it as a text."""
_NAMESPACES = ("gen_ai.", "memorybench.")
_MAX_DEPTH = 20
_SPAN = "trace, id, parent, start, line, name, operation, has_messages, has_reply, is_error, attributes"
_SCHEMA = f"""
    PRAGMA cache_size = -8000;
    CREATE TABLE spans ({_SPAN}, PRIMARY KEY (trace, id)) WITHOUT ROWID;
    CREATE INDEX messages ON spans (trace, start, id) WHERE has_messages;
    CREATE INDEX replies ON spans (trace, parent, start, id) WHERE has_reply;
    CREATE INDEX operations ON spans (operation, start, trace, id);
    CREATE TABLE writes (at INTEGER, trace TEXT, source TEXT, start INTEGER, id TEXT);
"""
_INSERT = f"INSERT OR IGNORE INTO spans ({_SPAN}) VALUES (?,?,?,?,?,?,?,?,?,?,?)"  # noqa: S608  ours


@dataclass(frozen=True, slots=True)
class OtlpSpan:
    trace: str
    id: str
    parent: str
    start: int
    """Nanoseconds since 1970."""
    line: int
    name: str
    operation: str = ""
    is_error: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Those of the conventions for generative AI and of memorybench."""

    @property
    def at(self) -> datetime:
        return datetime.fromtimestamp(self.start / 1e9, UTC)


class SpanTable:
    """The spans of a file, in a temporary database. A span that was exported twice is in it once."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def writes_by_conversation(self) -> Iterator[tuple[OtlpSpan | None, list[OtlpSpan]]]:
        """Yield each conversation, as the span that has its messages, with the spans that wrote memories from it.

        Oldest first. None: no span of the trace has messages.
        """
        database = self._database
        database.execute("DELETE FROM writes")
        marks = ",".join("?" * len(WRITES))
        found = self._select(f"operation IN ({marks})", *sorted(WRITES))
        for span in found:
            source = self.conversation_of(span)
            row = (source.start, source.id) if source is not None else (span.start, "")
            database.execute("INSERT INTO writes VALUES (?,?,?,?,?)", (row[0], span.trace, row[1], span.start, span.id))
        rows = database.execute("SELECT trace, source, id FROM writes ORDER BY at, trace, source, start, id")
        for (trace, source_id), group in groupby(rows, key=lambda row: row[:2]):
            written = (self._span(trace, id) for _, _, id in group)
            yield self._span(trace, source_id), [one for one in written if one is not None]

    def conversation_of(self, span: OtlpSpan) -> OtlpSpan | None:
        """Return the span whose messages led to this one.

        It is the span itself, the nearest span around it, or the last of its trace that began before it.
        """
        nearest: OtlpSpan | None = span
        seen: set[str] = set()
        while nearest is not None and nearest.id not in seen:
            if INPUT_MESSAGES in nearest.attributes:
                return nearest
            seen.add(nearest.id)
            nearest = self._span(span.trace, nearest.parent)
        condition = "trace = ? AND has_messages AND start <= ? ORDER BY start DESC, id DESC LIMIT 1"
        return next(self._select(condition, span.trace, span.start), None)

    def searches(self) -> Iterator[OtlpSpan]:
        """Yield the searches in a memory, oldest first."""
        return self._select("operation = ? ORDER BY start, trace, id", SEARCH_MEMORY)

    def reply_after(self, span: OtlpSpan) -> OtlpSpan | None:
        """Return the span with what was said after this one.

        It is the nearest span around it that has a reply, or the first later one beside it, or beside a span around it.
        """
        level, seen = span, {span.id}
        while True:
            around = self._span(span.trace, level.parent) if level.parent else None
            if around is not None and OUTPUT_MESSAGES in around.attributes:
                return around
            condition = "trace = ? AND parent = ? AND has_reply AND start >= ? ORDER BY start, id LIMIT 1"
            beside = next(self._select(condition, span.trace, level.parent, span.start), None)
            if beside is not None or around is None or around.id in seen:
                return beside
            seen.add(around.id)
            level = around

    def _span(self, trace: str, id: str) -> OtlpSpan | None:
        return next(self._select("trace = ? AND id = ?", trace, id), None)

    def _select(self, condition: str, *values: object) -> Iterator[OtlpSpan]:
        sql = f"SELECT {_SPAN} FROM spans WHERE {condition}"  # noqa: S608  ours
        for trace, id, parent, start, line, name, operation, _, _, is_error, text in self._database.execute(
            sql, values
        ):
            yield OtlpSpan(trace, id, parent, start, line, name, operation, bool(is_error), json.loads(text))


@contextmanager
def open_spans(path: Path) -> Iterator[SpanTable]:
    """Read a file of OTLP JSON, or a folder of them; raise BadInput with the line if it is invalid."""
    with closing(sqlite3.connect("")) as database:  # a file without a name, deleted when it is closed
        database.executescript(_SCHEMA)
        try:
            for file, number, batch in numbered_batches(path):
                database.executemany(_INSERT, _rows(batch, f"{file}:{number}", number))
        except sqlite3.Error as error:  # the disk of temporary files is full
            raise JournalError(f"{path}: cannot collect the spans in a temporary file: {error}") from None
        yield SpanTable(database)


def remove_invalid(batch: Any, where: str) -> tuple[int, list[str]]:
    """Remove the spans that cannot be read; return how many are left, and a problem for each that was removed.

    Raise BadInput if this is not a batch.
    """
    count, problems = 0, []
    for scope in _scopes(batch, where):
        spans = []
        for span in _objects(scope, "spans", where):
            try:
                _row(span, where, 0)
            except BadInput as error:
                problems.append(str(error))
            else:
                spans.append(span)
        scope["spans"] = spans
        count += len(spans)
    return count, problems


def _rows(batch: Any, where: str, line: int) -> Iterator[tuple[Any, ...]]:
    for scope in _scopes(batch, where):
        for span in _objects(scope, "spans", where):
            yield _row(span, where, line)


def _scopes(batch: Any, where: str) -> Iterator[dict[str, Any]]:
    if not isinstance(batch, dict) or not isinstance(batch.get("resourceSpans", []), list):
        expected = 'OTLP JSON: an object with "resourceSpans" per line'
        raise BadInput(where, f"invalid batch {preview(batch)}", expected=expected)
    for resource in _objects(batch, "resourceSpans", where):
        yield from _objects(resource, "scopeSpans", where)


def _row(span: Mapping[str, Any], where: str, line: int) -> tuple[Any, ...]:
    ids = [span.get(name, "") for name in ("traceId", "spanId", "parentSpanId")]
    if not all(isinstance(id, str) for id in ids) or not ids[0] or not ids[1]:
        raise BadInput(f"{where}: span", f"invalid ids {preview(ids)}", expected="traceId and spanId as text")
    pairs = (
        (str(pair["key"]), pair.get("value"))
        for pair in _objects(span, "attributes", where)
        if isinstance(pair.get("key"), str) and pair["key"].startswith(_NAMESPACES)
    )
    values = ((key, _attribute(key, _value(value, where))) for key, value in pairs)
    attributes = {key: value for key, value in values if value is not None or key == EXISTING_MEMORY}
    status = span.get("status")
    is_error = isinstance(status, dict) and status.get("code") in (2, "STATUS_CODE_ERROR")
    return (
        *ids,
        _nanoseconds(span, where),
        line,
        str(span.get("name", "")),
        str(attributes.get(OPERATION, "")),
        INPUT_MESSAGES in attributes,
        OUTPUT_MESSAGES in attributes,
        is_error,
        json.dumps(attributes),
    )


def _nanoseconds(span: Mapping[str, Any], where: str) -> int:
    value = span.get("startTimeUnixNano", 0)
    try:
        nanoseconds = int(value)
    except (TypeError, ValueError):
        nanoseconds = -1
    if isinstance(value, bool) or not 0 <= nanoseconds < 2**63:
        expected = "nanoseconds since 1970"
        raise BadInput(f"{where}: startTimeUnixNano", f"invalid time {preview(value)}", expected=expected)
    return nanoseconds


def _objects(parent: Mapping[str, Any], key: str, where: str) -> Iterator[dict[str, Any]]:
    values = parent.get(key)
    if values is None:
        return iter(())
    if not isinstance(values, list) or not all(isinstance(one, dict) for one in values):
        raise BadInput(f"{where}: {key}", f"invalid value {preview(values)}", expected="a list of objects")
    return iter(values)


def _value(value: Any, where: str, depth: int = 0) -> Any:
    """Return the value of an attribute, which OTLP wraps in an object that names its type."""
    if depth > _MAX_DEPTH:
        raise BadInput(f"{where}: attributes", "nested too deeply", expected=f"at most {_MAX_DEPTH} levels")
    match value:
        case None | {} if not value:
            return None
        case {"stringValue": str(text)}:
            return text
        case {"boolValue": bool(flag)}:
            return flag
        case {"intValue": int(number) | str(number)}:
            with _invalid_number(where, number):
                return int(number)
        case {"doubleValue": int(number) | float(number) | str(number)}:
            with _invalid_number(where, number):
                return float(number)
        case {"bytesValue": str(text)}:
            return text
        case {"arrayValue": dict(inner)}:
            return [_value(one, where, depth + 1) for one in _objects(inner, "values", where)]
        case {"kvlistValue": dict(inner)}:
            pairs = _objects(inner, "values", where)
            return {str(pair.get("key", "")): _value(pair.get("value"), where, depth + 1) for pair in pairs}
    raise BadInput(f"{where}: attributes", f"invalid value {preview(value)}", expected="a value of OTLP JSON")


@contextmanager
def _invalid_number(where: str, value: Any) -> Iterator[None]:
    try:
        yield
    except ValueError:
        raise BadInput(f"{where}: attributes", f"invalid number {preview(value)}", expected="a number") from None


def _attribute(key: str, value: Any) -> Any:
    """Parse a value that is JSON; None if it is not, or has lone surrogates, which no file of ours can store."""
    if key not in _JSON_ATTRIBUTES or not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
        json.dumps(parsed, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return parsed
