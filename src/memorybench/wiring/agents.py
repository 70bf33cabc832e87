"""Looks up agents by name and opens them."""

from __future__ import annotations

from contextlib import AsyncExitStack

from msgspec import Struct

from memorybench.agents.command import check_agent_program
from memorybench.agents.config import AgentConfig
from memorybench.agents.opening import agent_from
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
    """The model name that is passed to a command-line agent; None: its default."""

    @property
    def name(self) -> str:
        return self.config.name

    async def open(self, stack: AsyncExitStack) -> Agent:
        model = await self.model.open(stack) if self.model else None
        return agent_from(
            self.config, environment=environment(), redactor=redactor(), model_name=self.model_name, model=model
        )


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
