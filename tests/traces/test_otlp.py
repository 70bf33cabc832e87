"""Extractions from files of OTLP JSON, as the collector's file exporter writes them."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.extraction import Trace, UnusableTrace
from memorybench.traces.otlp import OtlpTraces
from memorybench.traces.paths import OF_FILES, TracePaths
from tests.doubles.refusals import refused

from .opening import read_all

SECOND = 10**9


def any_value(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case list():
            return {"arrayValue": {"values": [any_value(one) for one in value]}}
        case _:
            return {"kvlistValue": {"values": [{"key": key, "value": any_value(one)} for key, one in value.items()]}}


def span(id: str, parent: str = "", *, trace: str = "t1", at: int = 0, error: bool = False, **named: Any) -> Any:
    """A span; `input_messages` becomes gen_ai.input.messages, and `memory_records` gen_ai.memory.records."""
    return {
        "traceId": trace,
        "spanId": id,
        "parentSpanId": parent,
        "name": "a span",
        "startTimeUnixNano": str(at * SECOND),
        "status": {"code": 2} if error else {},
        "attributes": [
            {"key": f"gen_ai.{name.replace('_', '.', 1 + (name == 'memory_record_count'))}", "value": any_value(value)}
            for name, value in named.items()
        ],
    }


def user(text: str) -> list[Any]:
    return [{"role": "user", "parts": [{"type": "text", "content": text}]}]


def write(id: str, parent: str = "", *texts: str, operation: str = "create_memory", **more: Any) -> Any:
    records = json.dumps([{"content": text} for text in texts])
    return span(id, parent, operation_name=operation, memory_records=records, **more)


def batch(*spans: Any) -> Any:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "agent"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "x"}, "spans": list(spans)}]}]}


def read(path: Path, *batches: Any, own: dict[str, str | None] | None = None, **options: Any) -> list[Trace]:
    path.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in batches))
    return asyncio.run(read_all(OtlpTraces(path, TracePaths.of(OF_FILES, own or {}), **options)))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "spans.jsonl"


def test_all_writes_of_a_conversation_are_one_extraction(file: Path) -> None:
    """Children are exported before the agent's span, in other batches."""
    agent = span("a", operation_name="invoke_agent", input_messages=json.dumps(user("I sell bikes in Bergen.")))
    tool = span("b", "a", at=1)
    [trace] = read(
        file,
        batch(write("c", "b", "sells bikes", at=2)),
        batch(write("d", "b", "lives in Bergen", at=3, operation="upsert_memory"), tool),
        batch(agent),
    )
    assert (trace.id, trace.output) == ("t1/a", ["sells bikes", "lives in Bergen"])
    assert [(turn.role, turn.content) for turn in trace.conversation] == [("user", "I sell bikes in Bergen.")]
    assert trace.at == datetime.fromtimestamp(2, UTC)


def test_a_span_with_its_own_messages_is_its_own_extraction(file: Path) -> None:
    own = [write(name, "root", name, input_messages=json.dumps(user(f"I am {name}"))) for name in ("ann", "bob")]
    traces = read(file, batch(*own, span("root", input_messages=json.dumps(user("someone else")))))
    assert {(trace.conversation[0].content, trace.output) for trace in traces} == {
        ("I am ann", "ann"),
        ("I am bob", "bob"),
    }


def test_a_write_beside_a_chat_belongs_to_the_last_one_before_it(file: Path) -> None:
    chats = [span(f"c{n}", at=n, input_messages=json.dumps(user(f"turn {n}"))) for n in (1, 5, 9)]
    [trace] = read(file, batch(*chats, write("w", "", "fact", at=6)))
    assert trace.conversation[0].content == "turn 5"


def test_values_with_structure_and_replies_are_read(file: Path) -> None:
    said = [{"role": "user", "parts": [{"type": "text", "content": "Hi"}, {"type": "tool_call", "id": "x"}]}]
    answered = [{"role": "assistant", "parts": [{"type": "text", "content": "Hello"}], "finish_reason": "stop"}]
    records = [{"id": "m1", "content": {"city": ["Bergen"]}, "score": 0.5}]
    [trace] = read(
        file,
        batch(
            span(
                "w",
                operation_name="update_memory",
                input_messages=said,
                output_messages=answered,
                memory_records=records,
            )
        ),
    )
    assert [(turn.role, turn.content) for turn in trace.conversation] == [("user", "Hi"), ("assistant", "Hello")]
    assert trace.output == {"city": ["Bergen"]}


def test_a_span_that_was_exported_twice_counts_once(file: Path) -> None:
    one = batch(write("w", "", "fact", input_messages=json.dumps(user("Hi"))))
    [trace] = read(file, one, one)
    assert trace.output == "fact"


def test_failed_writes_stored_nothing(file: Path) -> None:
    agent = span("a", input_messages=json.dumps(user("Hi")))
    [trace] = read(file, batch(agent, write("b", "a", "kept"), write("c", "a", "lost", error=True)))
    assert trace.output == "kept"


@pytest.mark.parametrize(
    ("spans", "missing"),
    [
        ([span("a", input_messages=json.dumps(user("Hi"))), span("w", "a", operation_name="upsert_memory")], "output"),
        ([write("w", "", "fact")], "conversation"),
        ([write("w", "gone", "fact")], "conversation"),
        ([write("w", "w", "its own parent")], "conversation"),
    ],
)
def test_a_trace_without_content_cannot_be_judged(file: Path, spans: list[Any], missing: str) -> None:
    [trace] = read(file, batch(*spans))
    assert isinstance(trace, UnusableTrace)
    assert trace.missing == f"--{missing}-path"


def test_limits_and_paths_of_the_user(file: Path) -> None:
    days = [
        write(f"w{n}", "", f"fact {n}", trace=f"t{n}", at=n, input_messages=json.dumps(user("Hi"))) for n in (3, 1, 2)
    ]
    assert [trace.output for trace in read(file, batch(*days))] == ["fact 1", "fact 2", "fact 3"]
    assert [trace.output for trace in read(file, batch(*days), limit=2)] == ["fact 1", "fact 2"]
    late = datetime.fromtimestamp(2, UTC)
    assert [trace.output for trace in read(file, batch(*days), since=late)] == ["fact 2", "fact 3"]
    [own] = read(file, batch(days[0]), own={"output": "$.attributes['gen_ai.memory.records'][0]"})
    assert own.output == {"content": "fact 3"}


@pytest.mark.parametrize("records", ['[{"content": "\\ud800"}]', "no JSON", "[" * 10_000, "7"])
def test_records_that_cannot_be_read_are_not_judged(file: Path, records: str) -> None:
    odd = span("w", operation_name="upsert_memory", input_messages=json.dumps(user("Hi")), memory_records=records)
    odd["attributes"].append({"key": "gen_ai.x", "value": {"doubleValue": "NaN"}})
    [trace] = read(file, batch(odd))
    assert isinstance(trace, UnusableTrace)


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        '{"resourceSpans": 7}',
        '{"resourceSpans": [7]}',
        '{"resourceSpans": [{"scopeSpans": {}}]}',
        json.dumps(batch({"traceId": 7, "spanId": "x"})),
        json.dumps(batch({"traceId": "t"})),
        json.dumps(batch({**span("w"), "startTimeUnixNano": "soon"})),
        json.dumps(batch({**span("w"), "startTimeUnixNano": -1})),
        json.dumps(batch({**span("w"), "attributes": [{"key": "gen_ai.x", "value": {"intValue": "many"}}]})),
        json.dumps(batch({**span("w"), "attributes": [{"key": "gen_ai.x", "value": {"stringValue": 7}}]})),
        "{]",
    ],
)
def test_an_invalid_line_is_named(file: Path, line: str) -> None:
    error = refused(read, file, batch(write("w", "", "fact", input_messages="Hi")), line)
    assert error.where.startswith(f"{file}:2")


def test_a_file_without_writes_is_refused(file: Path) -> None:
    error = refused(read, file, batch(span("a", operation_name="search_memory")))
    assert error.where == str(file)
