"""From a config to an agent that works."""

from __future__ import annotations

from collections.abc import Mapping

from memorybench.core.agents import Agent
from memorybench.core.contracts import Model
from memorybench.core.errors import BadInput
from memorybench.secrets.redaction import Redactor

from .builtin import BuiltinAgent
from .command import CommandAgent, check_program
from .config import AgentConfig


def agent_from(
    config: AgentConfig,
    *,
    environment: Mapping[str, str],
    redactor: Redactor,
    model_name: str | None = None,
    model: Model | None = None,
) -> Agent:
    """`model_name` is what a command-line agent is told; `model` is what a builtin one thinks with."""
    if config.type == "builtin":
        if model is None:
            raise BadInput(f'agent "{config.name}"', "it needs a model", remedy="name one with --model")
        return BuiltinAgent(config, model, redactor)
    check_program(config, environment)
    return CommandAgent(config, model_name or config.model, environment, redactor)
