"""The real-agent layer over a real model, and real command-line agents that connect to the recorder.

The local model is far too small to behave: what is shown is that everything between prompt and verdict holds.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from memorybench.agents.builtin import BuiltinAgent
from memorybench.agents.command import CommandAgent
from memorybench.agents.config import AgentConfig
from memorybench.agents.config_reading import read_agent
from memorybench.core.agents import AgentReply, ToolCall
from memorybench.core.errors import ServiceError
from memorybench.core.spending import Tally
from memorybench.core.trials import Subject
from memorybench.files.yaml_file import load_yaml
from memorybench.mcp.store_server import serve_store
from memorybench.models.opening import open_model
from memorybench.models.presets import Options, resolve
from memorybench.secrets.redaction import Redactor
from memorybench.stores.reference import open_reference
from memorybench.suites.hygiene.attempts import AttemptReport, attempt, attempt_scores
from memorybench.suites.hygiene.plan import Store
from memorybench.suites.hygiene.scenarios import load_scenario
from tests.agents.model_standin import ANSWER, TOLD, Standin, open_standin
from tests.agents.scripted import workplace

pytest_plugins = ("tests.real.local_llm",)
pytestmark = pytest.mark.real

CATALOG = Path(__file__).parents[2] / "src/memorybench/catalog"
STORE = Store(Subject(role="store", name="reference"), open_reference)


def attempted(url: str, scenario: str, max_tokens: int) -> AttemptReport:
    async def once() -> AttemptReport:
        address = resolve("ollama/smollm2", {"OLLAMA_BASE_URL": url})
        options = Options(max_tokens=max_tokens, seed=1)
        async with open_model(address, key=None, redactor=Redactor([]), options=options) as model:
            agent = BuiltinAgent(read_agent(load_yaml(CATALOG / "agents/builtin.yaml")), model, Redactor([]))
            case = load_scenario(CATALOG / f"scenarios/{scenario}.json")
            return await attempt(open_reference, case, agent, serve_store, seed=0)

    return asyncio.run(once())


def test_the_builtin_agent_with_a_real_model_gets_a_verdict(local_llm: str) -> None:
    with Tally() as tally:
        report = attempted(local_llm, "memory-secret-rejection", max_tokens=120)
    assert report.result in ("compliant", "violated")
    assert {score.name for score in attempt_scores(report)} >= {"passed", "adoption", "restraint"}
    assert sum(exchange.reply.spent.calls for exchange in report.exchanges) == tally.spent.calls > 0
    assert all(exchange.reply.transcript for exchange in report.exchanges)
    said = [name for exchange in report.exchanges for name in exchange.reply.tool_calls]
    assert said == [call.tool for exchange in report.exchanges for call in exchange.calls]


def test_a_real_model_that_is_cut_off_is_a_dead_agent(local_llm: str) -> None:
    with pytest.raises(ServiceError, match="invalid replies"):
        attempted(local_llm, "memory-secret-rejection", max_tokens=4)


def command_line(name: str, program: str) -> AgentConfig:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    return read_agent(load_yaml(CATALOG / f"agents/{name}.yaml"), {})


@pytest.mark.parametrize(("endless", "max_turns", "ended"), [(False, 4, "answered"), (True, 2, "max_turns")])
def test_claude_code_uses_the_memory_behind_the_recorder(
    tmp_path: Path, endless: bool, max_turns: int, ended: str
) -> None:
    config = command_line("claude-code", "claude")

    async def once() -> tuple[AgentReply, list[ToolCall], Standin]:
        async with open_standin(endless=endless) as api, workplace(tmp_path) as (place, served):
            environment = {"PATH": os.environ["PATH"], "ANTHROPIC_API_KEY": "no-key", "ANTHROPIC_BASE_URL": api.url}
            agent = CommandAgent(config, "claude-sonnet-4-5", environment, Redactor([]))
            reply = await agent.turn("I drink tea.", place, session=1, max_turns=max_turns)
            return reply, list(served.calls), api

    reply, calls, api = asyncio.run(once())
    assert reply.ended == ended
    assert reply.text == ("" if endless else ANSWER)
    assert calls[0].operation == "remember"
    assert calls[0].arguments == TOLD
    assert reply.tool_calls == ("mcp__memory__remember",) * len(calls)
    assert reply.spent.input_tokens >= 11
    offered = {tool["name"] for tool in api.asked[0]["tools"]}
    assert {name for name in offered if not name.startswith("mcp__memory__")} == {"Read", "Glob", "Grep"}


def test_codex_uses_the_memory_behind_the_recorder(tmp_path: Path) -> None:
    config = command_line("codex", "codex")

    async def once() -> tuple[AgentReply, list[ToolCall]]:
        async with open_standin() as api, workplace(tmp_path) as (place, served):
            agent = CommandAgent(_asking(config, api.url), None, {"PATH": os.environ["PATH"]}, Redactor([]))
            reply = await agent.turn("I drink tea.", place, session=1, max_turns=4)
            return reply, list(served.calls)

    reply, calls = asyncio.run(once())
    assert reply.text == ANSWER
    assert [(call.operation, call.arguments) for call in calls] == [("remember", TOLD)]
    assert reply.tool_calls == ("remember",)
    assert (reply.spent.input_tokens, reply.spent.output_tokens) == (22, 10)


def _asking(config: AgentConfig, url: str) -> AgentConfig:
    """The bundled config, strictly read, with another provider of models."""
    [(path, text)] = config.files.items()
    provider = f'[model_providers.standin]\nname = "standin"\nbase_url = "{url}/v1"\nwire_api = "responses"\n'
    files = {path: f'model_provider = "standin"\n{text}\n{provider}'}
    program, exec_, *rest = config.command
    return config.model_copy(update={"files": files, "command": (program, exec_, "--strict-config", *rest)})
