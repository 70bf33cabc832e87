"""Reads spans that tracing services export, and converts them to OpenTelemetry's conventions for generative AI.

Langfuse: observations of the blob storage export, of the API and of the user interface.
Phoenix: rows of `get_spans_dataframe` and of the API, with the attributes of OpenInference.
LangSmith: runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from memorybench.core import genai_names as genai
from memorybench.core.errors import BadInput
from memorybench.text.sanitize import preview

from .contents import is_conversation, messages, parsed, query, records, unflatten, written
from .rows import exported_rows

LANGFUSE, PHOENIX, LANGSMITH = "langfuse", "phoenix", "langsmith"
OPENINFERENCE_KIND = "openinference.span.kind"
_RETRIEVERS = frozenset({"RETRIEVER"})
_SPEAKERS = frozenset({"LLM", "GENERATION", "AGENT"})
"""Kinds of spans whose input and output are messages. TOOL is not among them, because a tool may return the results of
a search."""
_UNITS = ((10**17, 1), (10**14, 10**3), (10**11, 10**6), (0, 10**9))
"""For times in nanoseconds, microseconds, milliseconds and seconds: the smallest number that is taken as such a time,
and the number of nanoseconds in the unit."""


class SpanNames(Struct, frozen=True):
    """The names of spans that, according to the user, are searches in a memory or writes to it."""

    searches: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()


class Span(Struct, frozen=True):
    """One recorded span. Of its attributes, only those with the prefix `gen_ai.` or `memorybench.` are kept."""

    trace: str
    id: str
    parent: str
    start: int
    """Start time in nanoseconds since 1970."""
    line: int
    name: str
    is_error: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict)


class Content(Struct, frozen=True):
    """The content of a span as the service recorded it, before it is converted to the conventions."""

    kind: str = ""
    """The kind of the span in upper case, such as RETRIEVER, LLM or TOOL; "" if unknown."""
    input: Any = None
    output: Any = None
    documents: Any = None
    """The documents that a retriever found; None if they were not recorded apart from `output`."""


def operation_of(name: str, attributes: Mapping[str, Any], kind: str, names: SpanNames) -> str:
    """Return the operation of a span, such as `search_memory`; "" if it is unknown.

    The first of these that is a memory operation decides: what the user declared for the span's name, the attribute
    gen_ai.operation.name, the span's name, the span's kind. If none is, the attribute is returned.
    """
    if name in names.searches:
        return genai.SEARCH_MEMORY
    if name in names.writes:
        return genai.UPSERT_MEMORY
    declared = str(attributes.get(genai.OPERATION, ""))
    if declared in genai.MEMORY_OPERATIONS:
        return declared
    if name in genai.MEMORY_OPERATIONS:
        return name
    if kind in _RETRIEVERS and not names.searches:
        return genai.SEARCH_MEMORY
    return declared


def described(span: Span, content: Content, names: SpanNames) -> Span:
    """Return the span with its operation, and with further attributes of the conventions, derived from its content.

    Messages, queries and memories that are already among its attributes are not replaced.
    """
    known = dict(span.attributes)
    operation = operation_of(span.name, known, content.kind, names)
    found: dict[str, Any] = {}
    if operation == genai.SEARCH_MEMORY:
        found[genai.QUERY_TEXT] = query(content.input)
        found[genai.RECORDS] = records(content.documents if content.documents is not None else content.output)
    elif operation in genai.WRITES:
        found[genai.RECORDS] = written(content.output, content.input)
        if is_conversation(content.input):
            found[genai.INPUT_MESSAGES] = messages(content.input, "user")
    elif content.kind in _SPEAKERS or not span.parent:
        found[genai.INPUT_MESSAGES] = messages(content.input, "user")
        found[genai.OUTPUT_MESSAGES] = messages(content.output, "assistant")
    missing = {key: value for key, value in found.items() if value is not None and key not in known}
    attributes = {**known, **missing, genai.OPERATION: operation}
    return replace(span, attributes=attributes)


def exported_spans(path: Path, source: str, names: SpanNames) -> Iterator[Span]:
    """Yield the spans in a file that the service `source` exported, or in a folder of such files."""
    read = _READERS[source]
    for where, line, row in exported_rows(path):
        found = read(row, where, line)
        if found is not None:
            yield described(*found, names)


def openinference(attributes: Mapping[str, Any]) -> Content:
    """Return the content of a span from its attributes, which follow the conventions of OpenInference."""
    nested = unflatten({key: parsed(value) for key, value in attributes.items()})
    llm, retrieval = _object(nested, "llm"), _object(nested, "retrieval")
    kind = _object(_object(nested, "openinference"), "span").get("kind")
    return Content(
        kind=str(kind or "").upper(),
        input=llm.get("input_messages") or _object(nested, "input").get("value"),
        output=llm.get("output_messages") or _object(nested, "output").get("value"),
        documents=retrieval.get("documents"),
    )


def _langfuse(row: Mapping[str, Any], where: str, line: int) -> tuple[Span, Content] | None:
    """Return the span and the content in a row of an export; None if the row is a trace or a score of Langfuse."""
    trace, start = row.get("trace_id") or row.get("traceId"), row.get("start_time") or row.get("startTime")
    if not trace or not start:
        return None
    metadata = parsed(row.get("metadata"))
    given = parsed(metadata.get("attributes", metadata)) if isinstance(metadata, Mapping) else {}
    attributes = given if isinstance(given, Mapping) else {}
    ids = (trace, row.get("id"), row.get("parent_observation_id") or row.get("parentObservationId"))
    is_error = str(row.get("level", "")).upper() == "ERROR"
    span = _span(ids, start, line, row.get("name"), is_error, attributes, where)
    return span, Content(str(row.get("type") or "").upper(), row.get("input"), row.get("output"))


def _phoenix(row: Mapping[str, Any], where: str, line: int) -> tuple[Span, Content]:
    top = unflatten({key: value for key, value in row.items() if not key.startswith("attributes")})
    nested = parsed(row.get("attributes"))
    attributes = {
        **(nested if isinstance(nested, Mapping) else {}),
        **{
            key.removeprefix("attributes."): value
            for key, value in row.items()
            if key.startswith("attributes.") and value not in (None, "")
        },
    }
    context = _object(top, "context")
    ids = (context.get("trace_id"), context.get("span_id"), row.get("parent_id"))
    is_error = str(row.get("status_code", "")).upper() == "ERROR"
    span = _span(ids, row.get("start_time"), line, row.get("name"), is_error, attributes, where)
    content = openinference({OPENINFERENCE_KIND: row.get("span_kind"), **attributes})
    return span, content


def _langsmith(row: Mapping[str, Any], where: str, line: int) -> tuple[Span, Content]:
    above = row.get("parent_run_ids")
    parent = row.get("parent_run_id") or (above[-1] if isinstance(above, list) and above else None)
    ids = (row.get("trace_id") or row.get("id"), row.get("id"), parent)
    metadata = _object(_object(row, "extra"), "metadata")
    span = _span(ids, row.get("start_time"), line, row.get("name"), bool(row.get("error")), metadata, where)
    return span, Content(str(row.get("run_type") or "").upper(), row.get("inputs"), row.get("outputs"))


_READERS: Mapping[str, Callable[[Mapping[str, Any], str, int], tuple[Span, Content] | None]] = {
    LANGFUSE: _langfuse,
    PHOENIX: _phoenix,
    LANGSMITH: _langsmith,
}


def _span(
    ids: tuple[Any, Any, Any],
    start: Any,
    line: int,
    name: Any,
    is_error: bool,
    attributes: Mapping[str, Any],
    where: str,
) -> Span:
    trace, id, parent = (one if one not in (None, "nan", "None") else "" for one in ids)
    if not all(isinstance(one, str | int) for one in (trace, id, parent)) or trace == "" or id == "":
        raise BadInput(
            f"{where}: span",
            f"invalid ids of trace, span and parent: {preview(ids)}",
            expected="the ids of a trace and a span",
            remedy="check --source",
        )
    kept = {key: value for key, value in attributes.items() if key.startswith(("gen_ai.", "memorybench."))}
    return Span(str(trace), str(id), str(parent), _nanoseconds(start, where), line, str(name or ""), is_error, kept)


def _nanoseconds(value: Any, where: str) -> int:
    try:
        if isinstance(value, str) and not value.strip().isdecimal():
            at = datetime.fromisoformat(value.strip())
            seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
            return max(0, round(seconds * 10**6) * 10**3)
        number = int(value)
        found: int = number * next(factor for least, factor in _UNITS if number >= least)
        if isinstance(value, bool) or found >= 2**63:
            raise ValueError
    except (TypeError, ValueError, OverflowError, StopIteration):
        raise BadInput(
            f"{where}: start time", f"invalid time {preview(value)}", expected="an ISO 8601 date and time, or a number"
        ) from None
    return found


def _object(parent: Any, key: str) -> Mapping[str, Any]:
    found = parsed(parent.get(key)) if isinstance(parent, Mapping) else None
    return found if isinstance(found, Mapping) else {}
