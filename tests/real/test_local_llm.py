from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from memorybench.core.contracts import Completion
from memorybench.core.conversation import Turn
from memorybench.models.opening import open_model
from memorybench.models.presets import Options, resolve
from memorybench.secrets.redaction import Redactor

pytest_plugins = ("tests.real.local_llm",)
pytestmark = pytest.mark.real

QUESTION = [Turn(role="system", content="Answer briefly."), Turn(role="user", content="What is the capital of France?")]


def ask(
    url: str, times: int = 1, schema: Mapping[str, Any] | None = None, max_tokens: int = 24
) -> Sequence[Completion]:
    async def each() -> list[Completion]:
        address = resolve("ollama/smollm2", {"OLLAMA_BASE_URL": url})
        options = Options(max_tokens=max_tokens, seed=1)
        async with open_model(address, key=None, redactor=Redactor([]), options=options) as model:
            return [await model.complete(QUESTION, schema=schema) for _ in range(times)]

    return asyncio.run(each())


def test_a_completion_at_temperature_0_is_the_same_twice(local_llm: str) -> None:
    first, second = ask(local_llm, times=2)
    assert first.text
    assert first.text == second.text


def test_usage_and_version_are_reported(local_llm: str) -> None:
    [got] = ask(local_llm)
    assert got.model == "smollm2"
    assert got.spent.calls == 1
    assert got.spent.input_tokens > len(QUESTION)
    assert 0 < got.spent.output_tokens <= 24
    assert got.spent.cost == 0.0


def test_a_truncated_reply_is_marked(local_llm: str) -> None:
    [got] = ask(local_llm, max_tokens=2)
    assert (got.finish, got.spent.output_tokens) == ("length", 2)


def test_a_schema_is_followed(local_llm: str) -> None:
    schema = {
        "type": "object",
        "properties": {"correct": {"type": "boolean"}, "grade": {"enum": ["good", "bad"]}},
    }
    [got] = ask(local_llm, schema=schema, max_tokens=60)
    verdict = json.loads(got.text)
    assert got.finish == "stop"
    assert set(verdict) == {"correct", "grade"}
    assert isinstance(verdict["correct"], bool)
    assert verdict["grade"] in ("good", "bad")
