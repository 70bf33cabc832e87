"""Creates an agent from its config."""

from __future__ import annotations

from collections.abc import Mapping

from memorybench.core.agents import Agent
from memorybench.core.contracts import Model
from memorybench.secrets.redaction import Redactor

from .command import CommandAgent
from .config import AgentConfig


def agent_from(
    config: AgentConfig,
    *,
    environment: Mapping[str, str],
    redactor: Redactor,
    model_name: str | None = None,
    model: Model | None = None,
) -> Agent:
    """Return the agent of a config. `model_name` is passed to a command-line agent; a builtin agent calls `model`.

    The caller has checked that the MCP SDK, the model and the program are there.
    """
    if config.type == "builtin":
        from .builtin import BuiltinAgent

        assert model is not None
        return BuiltinAgent(config, model, redactor)
    return CommandAgent(config, model_name or config.model, environment, redactor)
