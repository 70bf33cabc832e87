"""From an agent's name to an agent that can be prompted. Nothing here runs before its cost was agreed to."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass

from memorybench.agents.command import check_agent_program
from memorybench.agents.config import AgentConfig
from memorybench.agents.opening import agent_from
from memorybench.catalog.catalog import Catalog
from memorybench.catalog.entries import BUNDLED
from memorybench.core.agents import Agent
from memorybench.core.errors import BadInput
from memorybench.mcp import check_sdk

from .environment import environment, redactor
from .models import MODEL_VARIABLE, Chosen, model_named, open_chosen


@dataclass(frozen=True, slots=True)
class ChosenAgent:
    """Everything is resolved, nothing is opened."""

    config: AgentConfig
    model: Chosen | None = None
    """What a builtin agent thinks with."""
    model_name: str | None = None
    """What a command-line agent is told."""

    @property
    def name(self) -> str:
        return self.config.name

    async def open(self, stack: AsyncExitStack) -> Agent:
        model = await open_chosen(stack, self.model) if self.model else None
        return agent_from(
            self.config, environment=environment(), redactor=redactor(), model_name=self.model_name, model=model
        )


def choose_agent(catalog: Catalog, name: str, model: str | None, *, allow_code: bool) -> ChosenAgent:
    """Raises where something is missing that can be told beforehand: a model, a key, a program."""
    config = catalog.agent(name, environment())
    check_sdk(f'agent "{name}"')
    if config.type == "builtin":
        wanted = model or config.model or environment().get(MODEL_VARIABLE)
        if wanted is None:
            raise BadInput(f'agent "{name}"', "which model shall it think with?", expected="--model MODEL")
        return ChosenAgent(config, model=model_named(wanted))
    if catalog.chosen("agent", name).origin != BUNDLED and not allow_code:
        raise BadInput(f'agent "{name}"', "runs what its file names", remedy="read it, then say --allow-code")
    check_agent_program(config, environment())
    return ChosenAgent(config, model_name=model)
