"""Looks up agents by name and opens them."""

from __future__ import annotations

from contextlib import AsyncExitStack

from msgspec import Struct

from memorybench.agents.command import CommandAgent, check_agent_program
from memorybench.agents.config import AgentConfig
from memorybench.catalog.catalog import Catalog
from memorybench.core.agents import Agent
from memorybench.core.errors import BadInput
from memorybench.core.uses import Consent
from memorybench.mcp import check_sdk

from .consent import check_consent
from .environment import environment, redactor
from .models import MODEL_VARIABLE, ModelResolver, ResolvedModel


class ResolvedAgent(Struct, frozen=True):
    """An agent whose config was found and checked, but that is not open yet."""

    config: AgentConfig
    model: ResolvedModel | None = None
    """The model of a built-in agent; None for a command-line agent."""
    model_name: str | None = None
    """The model name that is passed to a command-line agent; None: that of its config, or the program's default."""

    @property
    def name(self) -> str:
        return self.config.name

    async def open(self, stack: AsyncExitStack) -> Agent:
        if self.model is not None:
            from memorybench.agents.builtin import BuiltinAgent  # imports the MCP SDK

            return BuiltinAgent(self.config, await self.model.open(stack), redactor())
        return CommandAgent(self.config, self.model_name or self.config.model, environment(), redactor())


def resolve_agent(
    catalog: Catalog, name: str, model: str | None, consent: Consent, *, need_keys: bool = True
) -> ResolvedAgent:
    """Return the agent with this name. Raise BadInput if consent, a model, a key or a program is missing."""
    check_consent(catalog, catalog.chosen("agent", name), consent)
    config = catalog.agent(name, environment() if need_keys else None)
    check_sdk(f'agent "{name}"')
    if config.type == "builtin":
        model_name = model or config.model or environment().get(MODEL_VARIABLE)
        if model_name is None:
            raise BadInput(f'agent "{name}"', "the agent needs a model", remedy="add --model MODEL")
        return ResolvedAgent(config, model=ModelResolver(catalog, consent, need_keys).resolve(model_name))
    check_agent_program(config, environment())
    return ResolvedAgent(config, model_name=model)
