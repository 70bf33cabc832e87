"""Command-line agents as real processes that speak MCP to the recorder."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from memorybench.agents.command import HOME_FOLDERS, check_agent_program
from memorybench.agents.config_reading import read_agent
from memorybench.agents.output import AgentOutput
from memorybench.core.agents import AgentReply, ToolCall
from memorybench.core.errors import ServiceError
from memorybench.core.spending import Spending, Tally
from memorybench.files.yaml_file import load_yaml
from memorybench.processes.programs import ProgramTimeout
from tests.agents.scripted import PROGRAM, agent, config, workplace
from tests.doubles.refusals import refused

CATALOG = Path(__file__).parents[2] / "src/memorybench/catalog/agents"
SECRET = "sk-plum-kettle-7741"


def turn(
    root: Path, behaviour: str, prompt: str = "Remember: Ana likes tea", *, session: int = 1, **keys: Any
) -> tuple[AgentReply, list[ToolCall]]:
    async def once() -> tuple[AgentReply, list[ToolCall]]:
        async with workplace(root, session) as (place, served):
            reply = await agent(behaviour, **keys).turn(prompt, place, session=session, max_turns=5)
            return reply, list(served.calls)

    return asyncio.run(once())


def test_calls_are_recorded_and_the_answer_is_read(tmp_path: Path) -> None:
    with Tally() as tally:
        reply, calls = turn(tmp_path, "tidy")
    assert reply.text == "done"
    assert reply.ended == "answered"
    assert reply.tool_calls == ("recall", "remember")
    assert reply.spent == Spending(calls=1, input_tokens=120, output_tokens=7, cost=0.002)
    assert tally.spent == reply.spent
    assert "Warning: this line is no JSON" in reply.transcript
    assert [(call.operation, call.error) for call in calls] == [("recall", None), ("remember", None)]


@pytest.mark.slow
def test_an_agent_may_reach_the_memory_by_a_program_instead_of_a_url(tmp_path: Path) -> None:
    words = [sys.executable, str(PROGRAM), "tidy", "${prompt}", "--command"]
    by_program = [*words, "${serverProgram}", "-P", "-m", "memorybench.mcp.bridge", "${serverUrl}"]
    _, calls = turn(tmp_path, "tidy", command=by_program)
    assert [call.tool for call in calls] == ["recall", "remember"]


@pytest.mark.parametrize(
    ("behaviour", "complaint"),
    [
        ("silent", "agent scripted: "),
        ("crashing", "agent scripted: .*status 3.*the model is not there"),
        ("failing", "agent scripted: .*no credit"),
    ],
)
def test_a_dead_agent_is_an_error(tmp_path: Path, behaviour: str, complaint: str) -> None:
    with pytest.raises(ServiceError, match=complaint):
        turn(tmp_path, behaviour)


def test_an_agent_that_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="agent scripted: "):
        turn(tmp_path, "x", command=[str(tmp_path / "no-such-program"), "${prompt}"])


@pytest.mark.slow
def test_an_agent_that_does_not_exit_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(ProgramTimeout):
        turn(tmp_path, "hanging", timeout=300)


def test_an_agent_that_ran_out_of_turns_is_judged_by_its_calls(tmp_path: Path) -> None:
    reply, _ = turn(tmp_path, "stopped")
    assert reply.ended == "max_turns"


def test_output_in_an_unexpected_format_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="agent scripted: "):
        turn(tmp_path, "idle", output={"format": "json", "text": "$.text"})


SAID: dict[str, dict[str, str]] = {
    "hermes": {"text": "%s"},
    "claude-code": {"type": "result", "subtype": "success", "result": "%s"},
    "cursor-agent": {"type": "result", "subtype": "success", "result": "%s"},
    "codex": {"type": "error", "message": "unexpected status 401 Unauthorized: %s"},
}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("hermes", "Invalid API key"),
        ("hermes", "Error: 401 Unauthorized"),
        ("hermes", "❌ API call failed after 3 retries: HTTP 403"),
        ("claude-code", "Invalid API key · Please run /login"),
        ("claude-code", "API Error: 401 unauthorized"),
        ("cursor-agent", "Error: 401 Unauthorized"),
        ("codex", "check your key"),
    ],
)
def test_an_error_message_in_place_of_an_answer_fails_a_bundled_agent(name: str, why: str) -> None:
    assert why.lstrip("❌ ") in _failure(name, why)


@pytest.mark.parametrize("name", [name for name in SAID if name != "codex"])
def test_an_answer_that_mentions_errors_is_not_a_failure(name: str) -> None:
    answer = "Use curl -f.\n\n- 401 Unauthorized: the key is wrong\n- Error: invalid API key\n"
    assert _failure(name, answer) == ""


def _failure(name: str, said: str) -> str:
    config = read_agent(load_yaml(CATALOG / f"{name}.yaml"), {})
    document = {key: value.replace("%s", said) for key, value in SAID[name].items()}
    printed = document["text"] if config.output.format == "text" else json.dumps(document)
    return AgentOutput(config.output, printed, name).failure


def test_an_agent_that_exits_with_0_and_prints_an_error_fails(tmp_path: Path) -> None:
    """As Hermes does without a key, as far as its config can tell."""
    output = read_agent(load_yaml(CATALOG / "hermes.yaml"), {}).output.model_dump(exclude_none=True)
    command = [sys.executable, "-c", "print('Error: HTTP 401: invalid api key')", "${prompt}"]
    with pytest.raises(ServiceError, match="HTTP 401"):
        turn(tmp_path, "x", command=command, output=output)


def test_text_is_read_by_patterns(tmp_path: Path) -> None:
    output = {"text": r'"text": "(\w+)"', "inputTokens": r'"in": (\d+)', "toolCalls": r'"tool": "(\w+)"'}
    reply, _ = turn(tmp_path, "tidy", output=output)
    assert (reply.text, reply.spent.input_tokens, reply.tool_calls) == ("done", 120, ("recall", "remember"))
    assert reply.spent.cost is None, "what it does not say is unknown"


def test_the_agent_has_a_separate_home_and_a_reduced_environment(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "MY_KEY": "k-17", "OTHER_KEY": SECRET}

    async def look() -> dict[str, Any]:
        async with workplace(tmp_path) as (place, _):
            told = place.model_copy(update={"environment": {"TOLD": "yes"}})
            looking = agent(
                "looking",
                environment,
                passEnv=["MY_KEY", "NOT_SET"],
                env={"CONFIG": "${home}/config.json"},
                files={"${home}/config.json": "${mcpConfig}", "${folder}/notes/a.txt": "session ${session}"},
                stdin="${prompt}!",
            )
            reply = await looking.turn("hello", told, session=1, max_turns=5)
            return {"url": place.server_url, **json.loads(reply.text)}

    seen = asyncio.run(look())
    written = json.loads(Path(seen["env"]["CONFIG"]).read_text())
    assert written["mcpServers"]["memory"]["url"] == seen["url"]
    home = str(tmp_path / "home" / "session-1")
    assert {name: seen["env"][name] for name in HOME_FOLDERS} == {
        name: str(Path(home, place)) for name, place in HOME_FOLDERS.items()
    }
    assert seen["env"]["MY_KEY"] == "k-17"
    assert seen["env"]["TOLD"] == "yes"
    assert "OTHER_KEY" not in seen["env"]
    assert "NOT_SET" not in seen["env"]
    assert Path(seen["folder"]) == tmp_path / "work"
    assert seen["here"] == ["notes", "notes/a.txt"]
    assert seen["stdin"] == "hello!"


def test_a_printed_secret_is_redacted(tmp_path: Path) -> None:
    reply, _ = turn(tmp_path, "looking", env={"LEAK": SECRET})
    assert SECRET not in reply.transcript + reply.text


@pytest.mark.slow
def test_every_session_has_a_new_home_unless_it_continues(tmp_path: Path) -> None:
    homes = []
    for keys in ({}, {"following": config("looking").command}):
        for session in (1, 2):
            reply, _ = turn(tmp_path, "looking", session=session, **keys)
            homes.append(Path(json.loads(reply.text)["env"]["HOME"]).name)
    assert homes == ["session-1", "session-2", "kept", "kept"]


@pytest.mark.slow
def test_the_command_of_a_following_session_is_used(tmp_path: Path) -> None:
    following = config("idle").command
    for session, calls in ((1, 2), (2, 0)):
        _, made = turn(tmp_path / str(session), "tidy", session=session, following=following)
        assert len(made) == calls


def test_a_group_whose_value_is_not_known_is_left_out(tmp_path: Path) -> None:
    show = "import sys; print(sys.argv[1:])"
    words = [sys.executable, "-c", show, ["--model", "${model}"], ["--turns", "${maxTurns}"], "${prompt}"]
    reply, _ = turn(tmp_path, "x", "hi", command=words, output={})
    assert reply.text == "['--turns', '5', 'hi']"


def test_a_program_that_is_not_there_is_named_before_anything_runs() -> None:
    missing = config("idle", command=["no-such-agent", "${prompt}"], install="npm install no-such-agent")
    assert "npm install no-such-agent" in refused(check_agent_program, missing, {"PATH": "/usr/bin"}).remedy
