"""Creates an agent from its config."""

from __future__ import annotations

from collections.abc import Mapping

from memorybench.core.agents import Agent
from memorybench.core.contracts import Model
from memorybench.core.errors import BadInput
from memorybench.mcp import check_sdk
from memorybench.secrets.redaction import Redactor

from .command import CommandAgent, check_agent_program
from .config import AgentConfig


def agent_from(
    config: AgentConfig,
    *,
    environment: Mapping[str, str],
    redactor: Redactor,
    model_name: str | None = None,
    model: Model | None = None,
) -> Agent:
    """Return the agent of a config. `model_name` is passed to a command-line agent; a builtin agent calls `model`."""
    where = f'agent "{config.name}"'
    check_sdk(where)  # every agent reaches its memory over MCP
    if config.type == "builtin":
        from .builtin import BuiltinAgent

        if model is None:
            raise BadInput(where, "the agent needs a model", remedy="add --model MODEL")
        return BuiltinAgent(config, model, redactor)
    check_agent_program(config, environment)
    return CommandAgent(config, model_name or config.model, environment, redactor)
