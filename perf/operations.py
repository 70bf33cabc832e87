"""`online` over a day of spans: memory that does not grow with their number, and the time per span.

No model is called: what a judge costs is measured by `online`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perf.measuring import Line, Setup, Usage, at_most, run_command

_SPANS_OF_A_TURN = 5
_START = 1_772_323_200 * 10**9
_DAY = 86_400 * 10**9


def measure(setup: Setup) -> Iterator[Line]:
    few, many = setup.spans // 10, setup.spans
    small, large = (setup.run(measure_day, str(count), count) for count in (few, many))
    yield Line(f"CPU per span of a day of {many:,}", large.cpu / many * 1e3, "ms")
    yield Line(f"  memory at {few:,} spans", small.megabytes, "MB")
    yield at_most(f"  memory at {many:,} spans", large.megabytes, round(small.megabytes * 1.2), "MB")


def measure_day(folder: Path, count: int) -> Usage:
    folder.mkdir()
    with (folder / "spans.jsonl").open("w") as file:
        for number in range(max(1, count // _SPANS_OF_A_TURN)):
            at = _START + number * _DAY * _SPANS_OF_A_TURN // count
            file.write(json.dumps(_turn(number, at)) + "\n")
    arguments = ("online", str(folder / "spans.jsonl"), "--output", str(folder / "results"))
    return run_command(folder, arguments, {})


def _turn(number: int, at: int) -> dict[str, Any]:
    """A batch with one turn of an agent: it searches its memory, replies, and writes a memory."""
    said = [{"role": "user", "content": f"This is turn {number}. " + "Some words of a talk. " * 20}]
    replied = [{"role": "assistant", "content": f"You like tea {number}."}]
    found = [{"content": f"likes tea {number}"}, {"content": "has a dog"}]
    spans = [
        _span(number, "chat", at, {"gen_ai.operation.name": "chat", "gen_ai.output.messages": replied}),
        _span(
            number,
            "search",
            at,
            {
                "gen_ai.operation.name": "search_memory",
                "gen_ai.memory.query.text": "drinks",
                "gen_ai.memory.records": found,
            },
        ),
        _span(number, "tool", at, {"gen_ai.operation.name": "execute_tool"}),
        _span(number, "write", at, {"gen_ai.operation.name": "create_memory", "gen_ai.memory.records": found[:1]}),
        _span(number, "agent", at, {"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": said}),
    ]
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def _span(number: int, name: str, at: int, attributes: dict[str, Any]) -> dict[str, Any]:
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in attributes.items()}
    return {
        "traceId": f"{number:032x}",
        "spanId": name,
        "parentSpanId": "" if name == "agent" else "agent",
        "name": name,
        "startTimeUnixNano": str(at),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in texts.items()],
    }
