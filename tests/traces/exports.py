"""The same turns of an agent as each service exports them: searches, writes and replies, labelled by hand."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
_IDS = UUID("00000000-0000-5000-8000-000000000000")


@dataclass(frozen=True)
class Turn:
    """What the user said, what a search found, what the agent replied, and what it wrote."""

    number: int
    said: str = ""
    found: Sequence[str] | None = None
    reply: str = "No idea."
    wrote: Sequence[str] | None = None
    error: bool = False
    day: int = 0

    @property
    def at(self) -> datetime:
        return START + timedelta(days=self.day, minutes=self.number)

    def id(self, name: str) -> str:
        return str(uuid5(_IDS, f"{self.number}/{name}"))


def later(turn: Turn, seconds: int) -> datetime:
    return turn.at + timedelta(seconds=seconds)


def langfuse(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Rows of the blob storage export: snake case, times without a zone, contents as JSON in texts."""

    def row(turn: Turn, name: str, kind: str, parent: str, after: int, **more: Any) -> dict[str, Any]:
        at = later(turn, after)
        return {
            "id": turn.id(name),
            "trace_id": turn.id("trace"),
            "parent_observation_id": turn.id(parent) if parent else None,
            "type": kind,
            "name": name,
            "start_time": at.strftime("%Y-%m-%d %H:%M:%S.%f"),
            "end_time": at.strftime("%Y-%m-%d %H:%M:%S.%f"),
            "level": "DEFAULT",
            "input": None,
            "output": None,
            "metadata": {},
            **more,
        }

    rows = []
    for turn in turns:
        rows.append(row(turn, "agent", "AGENT", "", 0, input=json.dumps([{"role": "user", "content": turn.said}])))
        if turn.found is not None:
            level = "ERROR" if turn.error else "DEFAULT"
            found = json.dumps([{"page_content": text} for text in turn.found])
            rows.append(row(turn, "tool", "TOOL", "agent", 1, input="{}", output=found))
            query = json.dumps({"query": f"query {turn.number}"})
            rows.append(row(turn, "recall", "RETRIEVER", "tool", 1, input=query, output=found, level=level))
        rows.append(
            row(turn, "chat", "GENERATION", "agent", 2, output=json.dumps({"role": "assistant", "content": turn.reply}))
        )
        if turn.wrote is not None:
            stored = json.dumps({"results": [{"memory": text, "event": "ADD"} for text in turn.wrote]})
            rows.append(row(turn, "remember", "SPAN", "agent", 3, output=stored))
    return rows


def phoenix(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Rows of `get_spans_dataframe`: one column per attribute of OpenInference."""

    def row(turn: Turn, name: str, kind: str, parent: str, after: int, **more: Any) -> dict[str, Any]:
        return {
            "name": name,
            "span_kind": kind,
            "parent_id": turn.id(parent) if parent else None,
            "start_time": later(turn, after).isoformat(),
            "end_time": later(turn, after).isoformat(),
            "status_code": "OK",
            "status_message": "",
            "context.span_id": turn.id(name),
            "context.trace_id": turn.id("trace"),
            **{f"attributes.{key}": value for key, value in more.items() if key not in ("status_code",)},
            **({"status_code": more["status_code"]} if "status_code" in more else {}),
        }

    rows = []
    for turn in turns:
        said = [{"message.role": "user", "message.content": turn.said}]
        rows.append(row(turn, "agent", "AGENT", "", 0, **{"llm.input_messages": said}))
        if turn.found is not None:
            documents = [{"document.content": text, "document.score": 0.5} for text in turn.found]
            rows.append(row(turn, "tool", "TOOL", "agent", 1, **{"output.value": " ".join(turn.found)}))
            search = {"input.value": f"query {turn.number}", "retrieval.documents": documents}
            status = "ERROR" if turn.error else "OK"
            rows.append(row(turn, "recall", "RETRIEVER", "tool", 1, **search, status_code=status))
        reply = [
            {
                "message.role": "assistant",
                "message.contents": [{"message_content.type": "text", "message_content.text": turn.reply}],
            }
        ]
        rows.append(row(turn, "chat", "LLM", "agent", 2, **{"llm.output_messages": reply}))
        if turn.wrote is not None:
            rows.append(row(turn, "remember", "TOOL", "agent", 3, **{"output.value": json.dumps(list(turn.wrote))}))
    return rows


def phoenix_api(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Spans of Phoenix's REST API: nested ids, and flat attributes whose names have places in lists."""

    def flat(prefix: str, value: Any) -> dict[str, Any]:
        if isinstance(value, dict):
            items = value.items()
        elif isinstance(value, list):
            items = {str(place): one for place, one in enumerate(value)}.items()
        else:
            return {prefix: value}
        return {key: one for name, inner in items for key, one in flat(f"{prefix}.{name}", inner).items()}

    rows = []
    for row in phoenix(turns):
        attributes = {}
        for key, value in row.items():
            if key.startswith("attributes."):
                attributes |= flat(key.removeprefix("attributes."), value)
        plain = {key: value for key, value in row.items() if not key.startswith(("attributes.", "context."))}
        context = {"span_id": row["context.span_id"], "trace_id": row["context.trace_id"]}
        rows.append({**plain, "context": context, "attributes": attributes})
    return rows


def langsmith(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Runs as LangChain records them."""

    def row(turn: Turn, name: str, kind: str, parents: Sequence[str], after: int, **more: Any) -> dict[str, Any]:
        return {
            "id": turn.id(name),
            "trace_id": turn.id("agent"),
            "parent_run_ids": [turn.id(parent) for parent in parents],
            "name": name,
            "run_type": kind,
            "start_time": later(turn, after).replace(tzinfo=None).isoformat(),
            "error": None,
            "inputs": {},
            "outputs": {},
            **more,
        }

    rows = []
    for turn in turns:
        rows.append(row(turn, "agent", "chain", (), 0, inputs={"messages": [["human", turn.said]]}))
        if turn.found is not None:
            documents = {"documents": [{"page_content": text, "metadata": {}} for text in turn.found]}
            error = "TimeoutError()" if turn.error else None
            inputs = {"query": f"query {turn.number}"}
            rows.append(row(turn, "tool", "tool", ("agent",), 1, outputs={"output": " ".join(turn.found)}))
            rows.append(
                row(turn, "recall", "retriever", ("agent", "tool"), 1, inputs=inputs, outputs=documents, error=error)
            )
        message = {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", "AIMessage"],
            "kwargs": {"content": turn.reply, "type": "ai"},
        }
        generations = {"generations": [[{"text": turn.reply, "message": message}]]}
        rows.append(row(turn, "chat", "llm", ("agent",), 2, outputs=generations))
        if turn.wrote is not None:
            rows.append(row(turn, "remember", "tool", ("agent",), 3, outputs={"output": list(turn.wrote)}))
    return rows


def as_jsonl(rows: Sequence[dict[str, Any]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def as_json(rows: Sequence[dict[str, Any]]) -> bytes:
    return json.dumps(rows, indent=1).encode()


def as_reply(rows: Sequence[dict[str, Any]]) -> bytes:
    """The reply of an API with one page."""
    return json.dumps({"data": rows, "next_cursor": None}).encode()


def as_csv(rows: Sequence[dict[str, Any]]) -> bytes:
    """As pandas writes it: nested values as Python literals, missing ones empty."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names)
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in row.items()} for row in rows)
    return text.getvalue().encode()


def as_parquet(rows: Sequence[dict[str, Any]]) -> bytes:
    import pyarrow
    from pyarrow import parquet

    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = [{name: None if row.get(name) == {} else row.get(name) for name in names} for row in rows]
    table = pyarrow.Table.from_pylist(columns)
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(table, sink)
    return sink.getvalue().to_pybytes()
