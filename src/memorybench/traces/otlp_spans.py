"""Reads spans from files of OTLP JSON, with one batch per line as the OpenTelemetry collector writes, and from exports.

The spans of a trace may be anywhere in the file, children before their parents. So all spans are collected in a
temporary database, and a file of any size takes little memory.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from memorybench.core import genai_names as genai
from memorybench.core.errors import BadInput, JournalError
from memorybench.text.sanitize import preview, printable

from .exported_spans import (
    OPENINFERENCE_KIND,
    Content,
    Span,
    SpanNames,
    described,
    exported_spans,
    openinference,
    operation_of,
)
from .messages import InvalidConversation, messages_in, turns_of
from .span_files import numbered_batches

_JSON_ATTRIBUTES = frozenset({genai.INPUT_MESSAGES, genai.OUTPUT_MESSAGES, genai.RECORDS, genai.EXISTING_MEMORY})
"""Attributes that contain JSON. Most exporters write it as text, which must be parsed."""
_NAMESPACES = ("gen_ai.", "memorybench.")
OTLP = "otlp"
NO_NAMES = SpanNames()
_MAX_DEPTH = 20
_SPAN = "trace, id, parent, start, line, name, operation, has_messages, reply, is_error, attributes"
_SCHEMA = f"""
    PRAGMA cache_size = -8000;
    CREATE TABLE spans ({_SPAN}, PRIMARY KEY (trace, id)) WITHOUT ROWID;
    CREATE INDEX messages ON spans (trace, start, id) WHERE has_messages;
    CREATE INDEX replies ON spans (trace, parent, start, id) WHERE reply <> '';
    CREATE INDEX operations ON spans (operation, start, trace, id);
    CREATE TABLE writes (at INTEGER, trace TEXT, source TEXT, start INTEGER, id TEXT);
"""
_LINE = _SPAN.split(", ").index("line")
_INSERT = f"INSERT OR IGNORE INTO spans ({_SPAN}) VALUES (?,?,?,?,?,?,?,?,?,?,?)"  # noqa: S608  ours


class StoredSpan(Span, frozen=True):
    """A span that is stored in a SpanTable."""

    operation: str = ""
    reply: str | None = None
    """The text of `gen_ai.output.messages`; None if the span has no such text, as for a call of a tool."""

    @property
    def at(self) -> datetime:
        return datetime.fromtimestamp(self.start / 1e9, UTC)


class SpanTable:
    """The spans of a file, in a temporary database. A span that was exported twice is stored once."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def writes_by_conversation(
        self, operations: Collection[str] = genai.WRITES
    ) -> Iterator[tuple[StoredSpan | None, list[StoredSpan]]]:
        """Yield the pair (source, writes) for each conversation from which memories were written, oldest first.

        `source` is the span that has the messages of the conversation, None if there is no such span; `writes` are the
        spans of the given operations that belong to the conversation.
        """
        database = self._database
        database.execute("DELETE FROM writes")
        marks = ",".join("?" * len(operations))
        found = self._select(f"operation IN ({marks})", *sorted(operations))
        for span in found:
            source = self.conversation_of(span)
            row = (source.start, source.id) if source is not None else (span.start, "")
            database.execute("INSERT INTO writes VALUES (?,?,?,?,?)", (row[0], span.trace, row[1], span.start, span.id))
        rows = database.execute("SELECT trace, source, id FROM writes ORDER BY at, trace, source, start, id")
        for (trace, source_id), group in groupby(rows, key=lambda row: row[:2]):
            written = (self._span(trace, id) for _, _, id in group)
            yield self._span(trace, source_id), [one for one in written if one is not None]

    def conversation_of(self, span: StoredSpan) -> StoredSpan | None:
        """Return the span that has the messages of the conversation that `span` belongs to; None if there is none.

        It is `span` itself if it has messages; else its nearest ancestor with messages; else the last span with
        messages in its trace that did not begin after `span`.
        """
        nearest: StoredSpan | None = span
        seen: set[str] = set()
        while nearest is not None and nearest.id not in seen:
            if genai.INPUT_MESSAGES in nearest.attributes:
                return nearest
            seen.add(nearest.id)
            nearest = self._span(span.trace, nearest.parent)
        condition = "trace = ? AND has_messages AND start <= ? ORDER BY start DESC, id DESC LIMIT 1"
        return next(self._select(condition, span.trace, span.start), None)

    def searches(self) -> Iterator[StoredSpan]:
        """Yield the searches in a memory, oldest first."""
        return self._select("operation = ? ORDER BY start, trace, id", genai.SEARCH_MEMORY)

    def reply_after(self, span: StoredSpan) -> StoredSpan | None:
        """Return the span with the reply that the agent gave after `span`; None if there is none.

        This is the parent of `span` if it has a reply, or else the first of the parent's children that has a reply and
        did not begin before `span`. If there is none, the parent's own parent is examined in the same way, and so on.
        """
        level, seen = span, {span.id}
        while True:
            around = self._span(span.trace, level.parent) if level.parent else None
            if around is not None and around.reply is not None:
                return around
            condition = "trace = ? AND parent = ? AND reply <> '' AND start >= ? ORDER BY start, id LIMIT 1"
            beside = next(self._select(condition, span.trace, level.parent, span.start), None)
            if beside is not None or around is None or around.id in seen:
                return beside
            seen.add(around.id)
            level = around

    def _span(self, trace: str, id: str) -> StoredSpan | None:
        return next(self._select("trace = ? AND id = ?", trace, id), None)

    def _select(self, condition: str, *values: object) -> Iterator[StoredSpan]:
        sql = f"SELECT {_SPAN} FROM spans WHERE {condition}"  # noqa: S608  ours
        for trace, id, parent, start, line, name, operation, _, reply, is_error, text in self._database.execute(
            sql, values
        ):
            yield StoredSpan(
                trace, id, parent, start, line, name, bool(is_error), json.loads(text), operation, reply or None
            )


@contextmanager
def open_spans(path: Path, source: str = OTLP, names: SpanNames = NO_NAMES) -> Iterator[SpanTable]:
    """Read a file in the format of `source`, or a folder of such files, and yield the table of its spans.

    Raise BadInput, with the line number, if a file is invalid.
    """
    with closing(sqlite3.connect("")) as database:  # a file without a name, deleted when it is closed
        database.executescript(_SCHEMA)
        spans = _otlp_spans(path, names) if source == OTLP else exported_spans(path, source, names)
        try:
            others = sum(_insert(database, columns) for columns in map(_columns, spans))
        except sqlite3.Error as error:  # the disk of temporary files is full
            raise JournalError(
                f"{path}: cannot collect the spans in a temporary file: {error}; free some disk space"
            ) from None
        if others:
            text = "the ids of another span and another content; the first of each counts"
            number = "1 span has" if others == 1 else f"{others:,} spans have"
            print(f"{printable(str(path))}: {number} {text}", file=sys.stderr)
        yield SpanTable(database)


def _insert(database: sqlite3.Connection, columns: tuple[Any, ...]) -> bool:
    """Store a span, unless a span with the same ids is stored already.

    Return True if the stored span has other content, and False otherwise.
    """
    if database.execute(_INSERT, columns).rowcount:
        return False
    stored = database.execute(f"SELECT {_SPAN} FROM spans WHERE trace = ? AND id = ?", columns[:2])  # noqa: S608  ours
    return any(_content(row) != _content(columns) for row in stored)


def _content(columns: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the columns of a span without its line number, which differs between two exports of the same span."""
    return columns[:_LINE] + columns[_LINE + 1 :]


def _otlp_spans(path: Path, names: SpanNames) -> Iterator[Span]:
    for file, number, batch in numbered_batches(path):
        where = f"{file}:{number}"
        for scope in _scopes(batch, where):
            for span in _objects(scope, "spans", where):
                yield _read(span, where, number, names)


def remove_invalid(batch: Any, where: str) -> tuple[int, list[str]]:
    """Remove invalid spans from `batch`; return the number of spans left, and the problem of each removed span.

    Raise BadInput if `batch` is not a batch of OTLP JSON.
    """
    count, problems = 0, []
    for scope in _scopes(batch, where):
        spans = []
        for span in _objects(scope, "spans", where):
            try:
                _columns(_read(span, where, 0, NO_NAMES))
            except BadInput as error:
                problems.append(str(error))
            else:
                spans.append(span)
        scope["spans"] = spans
        count += len(spans)
    return count, problems


def _scopes(batch: Any, where: str) -> Iterator[dict[str, Any]]:
    if not isinstance(batch, dict) or not isinstance(batch.get("resourceSpans", []), list):
        raise BadInput(
            where, f"invalid batch {preview(batch)}", expected='OTLP JSON: an object with "resourceSpans" per line'
        )
    for resource in _objects(batch, "resourceSpans", where):
        yield from _objects(resource, "scopeSpans", where)


def _read(span: Mapping[str, Any], where: str, line: int, names: SpanNames) -> Span:
    ids = [span.get(name, "") for name in ("traceId", "spanId", "parentSpanId")]
    if not all(isinstance(id, str) for id in ids) or not ids[0] or not ids[1]:
        raise BadInput(f"{where}: span", f"invalid ids {preview(ids)}", expected="traceId and spanId as text")
    given = _objects(span, "attributes", where)
    pairs = [(pair["key"], pair.get("value")) for pair in given if isinstance(pair.get("key"), str)]
    is_openinference = any(key == OPENINFERENCE_KIND for key, _ in pairs)
    values = {key: _value(value, where) for key, value in pairs if is_openinference or key.startswith(_NAMESPACES)}
    attributes = {key: value for key, value in values.items() if key.startswith(_NAMESPACES)}
    status = span.get("status")
    is_error = isinstance(status, dict) and status.get("code") in (2, "STATUS_CODE_ERROR")
    name = str(span.get("name", ""))
    read = Span(ids[0], ids[1], ids[2], _nanoseconds(span, where), line, name, is_error, attributes)
    if is_openinference:
        return described(read, openinference(values), names)
    tool = str(attributes.get(genai.TOOL_NAME, ""))
    if tool in names.searches | names.writes or name in names.searches | names.writes:
        named = tool if tool in names.searches | names.writes else name
        content = Content(input=attributes.get(genai.TOOL_ARGUMENTS), output=attributes.get(genai.TOOL_RESULT))
        return described(replace(read, name=named), content, names)
    return replace(read, attributes={**attributes, genai.OPERATION: operation_of("", attributes, "", names)})


def _columns(span: Span) -> tuple[Any, ...]:
    values = ((key, _attribute(key, value)) for key, value in span.attributes.items())
    attributes = {key: value for key, value in values if value is not None or key == genai.EXISTING_MEMORY}
    return (
        span.trace,
        span.id,
        span.parent,
        span.start,
        span.line,
        span.name,
        str(attributes.get(genai.OPERATION, "")),
        genai.INPUT_MESSAGES in attributes,
        _reply(attributes),
        span.is_error,
        json.dumps(attributes),
    )


def _reply(attributes: Mapping[str, Any]) -> str:
    try:
        return "\n".join(turn.content for turn in turns_of(messages_in(attributes, genai.OUTPUT_MESSAGES)))
    except InvalidConversation:
        return ""


def _nanoseconds(span: Mapping[str, Any], where: str) -> int:
    value = span.get("startTimeUnixNano", 0)
    try:
        nanoseconds = int(value)
    except (TypeError, ValueError):
        nanoseconds = -1
    if isinstance(value, bool) or not 0 <= nanoseconds < 2**63:
        raise BadInput(
            f"{where}: startTimeUnixNano", f"invalid time {preview(value)}", expected="nanoseconds since 1970"
        )
    return nanoseconds


def _objects(parent: Mapping[str, Any], key: str, where: str) -> Iterator[dict[str, Any]]:
    values = parent.get(key)
    if values is None:
        return iter(())
    if not isinstance(values, list) or not all(isinstance(one, dict) for one in values):
        raise BadInput(f"{where}: {key}", f"invalid value {preview(values)}", expected="a list of objects")
    return iter(values)


def _value(value: Any, where: str, depth: int = 0) -> Any:
    """Return the plain value of an attribute. In OTLP JSON, it is in an object such as `{"stringValue": …}`."""
    if depth > _MAX_DEPTH:
        raise BadInput(
            f"{where}: attributes", "the value is nested too deeply", expected=f"at most {_MAX_DEPTH} levels"
        )
    match value:
        case None | {} if not value:
            return None
        case {"stringValue": str(text)}:
            return text
        case {"boolValue": bool(flag)}:
            return flag
        case {"intValue": int(number) | str(number)}:
            return _number(int, number, where)
        case {"doubleValue": int(number) | float(number) | str(number)}:
            return _number(float, number, where)
        case {"bytesValue": str(text)}:
            return text
        case {"arrayValue": dict(inner)}:
            return [_value(one, where, depth + 1) for one in _objects(inner, "values", where)]
        case {"kvlistValue": dict(inner)}:
            pairs = _objects(inner, "values", where)
            return {str(pair.get("key", "")): _value(pair.get("value"), where, depth + 1) for pair in pairs}
    raise BadInput(
        f"{where}: attributes",
        f"invalid value {preview(value)}",
        expected='a value as in OTLP JSON, such as {"stringValue": …}',
    )


def _number(kind: type[int] | type[float], value: Any, where: str) -> float:
    try:
        return kind(value)
    except ValueError:
        raise BadInput(f"{where}: attributes", f"invalid number {preview(value)}", expected="a number") from None


def _attribute(key: str, value: Any) -> Any:
    """Return the value of an attribute; if the attribute contains JSON as a text, parse the text.

    Return None if the JSON is invalid or has lone surrogates, which cannot be stored as UTF-8.
    """
    if key not in _JSON_ATTRIBUTES or not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
        json.dumps(parsed, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return parsed
