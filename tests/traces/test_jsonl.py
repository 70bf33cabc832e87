"""Traces from a JSONL file, and the line in each error."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.errors import BadInput
from memorybench.core.extraction import Trace, UnusableTrace
from memorybench.traces.jsonl import JsonlTraces
from memorybench.traces.paths import OF_FILES, TracePaths

from .opening import read_all

GOOD = {"id": "a", "conversation": "I sell bikes.", "existing_memory": {"shop": []}, "output": {"shop": ["bikes"]}}


def read(path: Path, *lines: Any, own: dict[str, str | None] | None = None, limit: int | None = None) -> list[Trace]:
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return asyncio.run(read_all(JsonlTraces(path, TracePaths.of(OF_FILES, own or {}), limit=limit)))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "traces.jsonl"


def test_a_plain_line_and_an_exported_run_give_the_same_trace(file: Path) -> None:
    run = {
        "id": "b",
        "inputs": {"conversation": GOOD["conversation"], "existing_memory": GOOD["existing_memory"]},
        "outputs": {"output": GOOD["output"]},
    }
    plain, exported = read(file, GOOD, run)
    assert plain.model_copy(update={"id": "b"}) == exported


def test_paths_of_the_user_replace_the_defaults(file: Path) -> None:
    line = {"key": 7, "chat": [{"text": {"role": "user", "content": "Hi"}}], "before": "x", "after": ["y"]}
    own: dict[str, str | None] = {
        "id": "key",
        "conversation": "$.chat[*].text",
        "existing": "$.before",
        "output": "$.after",
    }
    [trace] = read(file, line, own=own)
    assert (trace.id, trace.conversation[0].content, trace.existing, trace.output) == ("7", "Hi", "x", ["y"])


def test_limit_is_the_maximum_number_of_traces(file: Path) -> None:
    assert [trace.id for trace in read(file, GOOD, {**GOOD, "id": "b"}, {**GOOD, "id": "c"}, limit=2)] == ["a", "b"]


INVALID: dict[str, tuple[Any, str]] = {
    "not JSON": ("{'id': 'b'}", ":2"),
    "truncated": ('{"id": "b", "conv', ":2"),
    "a list": ([GOOD], ":2"),
    "a duplicate key": ('{"id": "b", "id": "c"}', ":2: id"),
    "NaN": ('{"id": "b", "output": NaN}', ":2: output"),
    "missing id": ({**GOOD, "id": None}, ":2: $.id"),
    "an empty id": ({**GOOD, "id": " "}, ":2: $.id"),
    "an id that is a list": ({**GOOD, "id": []}, ":2: $.id"),
    "a duplicate id": (GOOD, ":2"),
    "a conversation that is a number": ({**GOOD, "id": "b", "conversation": 7}, ":2: $.conversation"),
    "a blank conversation": ({**GOOD, "id": "b", "conversation": " "}, ":2: $.conversation"),
    "a message without role": ({**GOOD, "id": "b", "conversation": [{"content": "x"}]}, ":2: $.conversation"),
    "a message without content": ({**GOOD, "id": "b", "conversation": [{"role": "user"}]}, ":2: $.conversation"),
    "content that is a number": (
        {**GOOD, "id": "b", "conversation": [{"role": "user", "content": 7}]},
        ":2: $.conversation",
    ),
    "a part that is a number": (
        {**GOOD, "id": "b", "conversation": [{"role": "user", "content": [7]}]},
        ":2: $.conversation",
    ),
    "an invalid date": ({**GOOD, "id": "b", "start_time": "yesterday"}, ":2: start_time"),
}


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_line_raises_an_error_with_its_place(name: str, file: Path) -> None:
    line, place = INVALID[name]
    with pytest.raises(BadInput) as raised:
        read(file, GOOD, line)
    assert raised.value.where.startswith(f"{file}{place}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("field", "word"), [("conversation", "conversation"), ("output", "output")])
def test_a_line_without_conversation_or_output_is_unusable(field: str, word: str, file: Path) -> None:
    incomplete = {name: value for name, value in GOOD.items() if name != field}
    good, unusable = read(file, GOOD, {**incomplete, "id": "b"})
    assert not isinstance(good, UnusableTrace)
    assert isinstance(unusable, UnusableTrace)
    assert unusable.problem.startswith(f"{file}:2: $.{field} | ")
    assert f": no {word} found" in unusable.problem


def test_a_missing_existing_memory_is_empty(file: Path) -> None:
    [trace] = read(file, {name: value for name, value in GOOD.items() if name != "existing_memory"})
    assert trace.existing is None
    assert not isinstance(trace, UnusableTrace)


def test_a_path_to_existing_memory_that_the_user_set_must_match(file: Path) -> None:
    own: dict[str, str | None] = {"existing": "$.memory"}
    missing, empty = read(file, GOOD, {**GOOD, "id": "b", "memory": None}, own=own)
    assert isinstance(missing, UnusableTrace)
    assert missing.missing == "--existing-path"
    assert not isinstance(empty, UnusableTrace)


def test_an_invalid_path_is_an_error_with_its_option() -> None:
    with pytest.raises(BadInput) as raised:
        TracePaths.of(OF_FILES, {"output": "$.["})
    assert raised.value.where == "--output-path"


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        asyncio.run(read_all(JsonlTraces(tmp_path / "none.jsonl", TracePaths.of(OF_FILES))))
