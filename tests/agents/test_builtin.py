"""Our own agent over a scripted model, with a real store behind the recorder."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from memorybench.agents.config import AgentConfig
from memorybench.agents.config_reading import read_agent
from memorybench.core.agents import AgentReply, ToolCall
from memorybench.core.conversation import Turn
from memorybench.core.errors import ServiceError
from memorybench.core.spending import Spending, Tally
from memorybench.files.yaml_file import load_yaml
from memorybench.models.replying import closed
from memorybench.secrets.redaction import Redactor
from tests.agents.scripted import workplace
from tests.doubles.scripted_model import Script, ScriptedModel

pytest.importorskip("mcp")

from memorybench.agents.builtin import BuiltinAgent, InvalidAction, action_schema, read_action
from memorybench.mcp.client import Tool
from memorybench.mcp.http import open_mcp_http

BUILTIN = Path(__file__).parents[2] / "src/memorybench/catalog/agents/builtin.yaml"
EACH = Spending(calls=1, input_tokens=10, output_tokens=2, cost=0.5)


def bundled() -> AgentConfig:
    return read_agent(load_yaml(BUILTIN))


def action(tool: str | None = None, answer: str = "", **arguments: Any) -> str:
    return json.dumps({"action": {"answer": answer} if tool is None else {"tool": tool, "arguments": arguments}})


def turn(root: Path, script: Script, *, max_turns: int = 5) -> tuple[AgentReply, list[ToolCall]]:
    async def once() -> tuple[AgentReply, list[ToolCall]]:
        model = ScriptedModel(script, spent=EACH)
        agent = BuiltinAgent(bundled(), model, Redactor([]))
        async with workplace(root) as (place, served):
            reply = await agent.turn("I drink tea", place, session=1, max_turns=max_turns)
            return reply, list(served.calls)

    return asyncio.run(once())


def test_the_agent_calls_tools_until_it_answers(tmp_path: Path) -> None:
    with Tally() as tally:
        reply, calls = turn(
            tmp_path,
            [action("remember", content="The user drinks tea"), action("recall", query="tea"), action(answer="Noted.")],
        )
    assert (reply.text, reply.ended, reply.tool_calls) == ("Noted.", "answered", ("remember", "recall"))
    assert [call.operation for call in calls] == ["remember", "recall"]
    assert calls[1].texts == ("The user drinks tea",)
    assert reply.spent == tally.spent == EACH + EACH + EACH
    assert [json.loads(line)["role"] for line in reply.transcript.splitlines()] == [
        "system", "user", "assistant", "user", "assistant", "user", "assistant",
    ]  # fmt: skip


def test_the_prompt_shows_the_tools_the_files_and_each_result(tmp_path: Path) -> None:
    seen: list[Sequence[Turn]] = []
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "notes.md").write_text("Deploys are on Friday")

    def script(turns: Sequence[Turn]) -> str:
        seen.append(tuple(turns))
        return action("remember", content="Tea") if len(seen) == 1 else action(answer="ok")

    turn(tmp_path, script)
    assert "- remember: Stores a fact" in seen[0][0].content
    assert "notes.md:\nDeploys are on Friday" in seen[0][0].content
    assert seen[0][1].content == "I drink tea"
    assert seen[1][-1].content == 'Result of remember: {"id": "1"}'


def test_the_agent_continues_after_a_refusal_and_a_failed_call(tmp_path: Path) -> None:
    heard: list[str] = []
    key = "sk-proj-" + "a1B2" * 10

    def script(turns: Sequence[Turn]) -> str:
        heard.append(turns[-1].content)
        said = [action("remember", content=f"key {key}"), action("fly"), action("forget", id="9"), action(answer="ok")]
        return said[len(heard) - 1]

    reply, calls = turn(tmp_path, script)
    assert reply.ended == "answered"
    assert "refused: " in heard[1]
    assert "unknown tool 'fly'" in heard[2]
    assert "unknown fact id 9" in heard[3]
    assert [call.operation for call in calls] == ["remember", None, "forget"]


def test_the_agent_stops_after_max_turns(tmp_path: Path) -> None:
    reply, calls = turn(tmp_path, lambda _: action("list"), max_turns=3)
    assert (reply.ended, reply.text, len(calls)) == ("max_turns", "", 3)


def test_an_invalid_reply_is_retried_once(tmp_path: Path) -> None:
    reply, calls = turn(tmp_path, ["I will remember that!", action("list"), "{}", action(answer="ok")])
    assert (reply.text, len(calls)) == ("ok", 1)


def test_two_unreadable_replies_in_a_row_fail_the_agent(tmp_path: Path) -> None:
    with Tally() as tally, pytest.raises(ServiceError, match="no JSON object"):
        turn(tmp_path, ["I will", "remember that"])
    assert tally.spent.calls == 2, "what it cost is charged all the same"


def test_a_model_that_fails_fails_the_agent(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="out of order"):
        turn(tmp_path, [ServiceError("out of order")])


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "recall", "arguments": {"query": "tea"}, "answer": ""}',
        '{"tool": "recall", "arguments": "{\\"query\\": \\"tea\\"}"}',
        'Let me look. {"action": {"tool": "recall", "arguments": {"query": "tea", "limit": null}}}',
        '```json\n{"tool": "recall", "arguments": {"query": "tea"}}\n```',
    ],
)
def test_arguments_may_be_an_object_or_its_text(text: str) -> None:
    assert read_action(text).arguments == {"query": "tea"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"tool": 3}',
        '{"tool": "recall", "arguments": "tea"}',
        '{"tool": null, "answer": " "}',
        '{"a": 1}',
        "{" * 10**6,  # a search that tries every bracket takes hours
    ],
)
def test_an_invalid_action_is_rejected(text: str) -> None:
    with pytest.raises(InvalidAction):
        read_action(text)


def test_the_schema_allows_only_valid_actions(tmp_path: Path) -> None:
    async def offered() -> Sequence[Tool]:
        async with (
            workplace(tmp_path) as (place, _),
            open_mcp_http(place.server_url, {}, Redactor([])) as client,
        ):
            return await client.list_tools()

    schema = closed(action_schema(asyncio.run(offered())))
    jsonschema.Draft202012Validator.check_schema(schema)
    valid = jsonschema.Draft202012Validator(schema).is_valid
    assert valid({"action": {"answer": "hello"}})
    assert valid({"action": {"tool": "recall", "arguments": {"query": "tea", "limit": None}}})
    assert valid({"action": {"tool": "list", "arguments": {}}})
    assert not valid({"action": {"tool": "fly", "arguments": {}}})
    assert not valid({"action": {"tool": "recall", "arguments": {"limit": 3}}})
    assert not valid({"tool": "list", "arguments": {}})


def test_arguments_that_strict_schemas_do_not_support_are_text() -> None:
    free = Tool("write", "", {"type": "object", "properties": {"meta": {"type": "object"}}})
    nested = Tool("add", "", {"type": "object", "properties": {"all": {"type": "array", "items": {"type": "string"}}}})
    [first, second, _] = action_schema([free, nested])["properties"]["action"]["anyOf"]
    assert first["properties"]["arguments"]["type"] == "string"
    assert second["properties"]["arguments"]["type"] == "object"
