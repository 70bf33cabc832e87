"""From a model's name to a model that can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from memorybench.core.contracts import Model
from memorybench.datasets.config import ModelChoice
from memorybench.models.options import Options
from memorybench.models.presets import ModelAddress, key_of, resolve
from memorybench.models.rehearsal import PREFIX, rehearse

from .environment import environment, redactor

MODEL_VARIABLE = "MEMORYBENCH_MODEL"
JUDGE_VARIABLE = "MEMORYBENCH_JUDGE"
NO_MODEL = "none"
_LONGEST_REPLY = 1024
"""Tokens. An answer is a few words and a verdict one, but some models think aloud first; a loop must end."""


@dataclass(frozen=True, slots=True)
class Chosen:
    name: str
    address: ModelAddress | None
    """None: a rehearsal, which needs no server."""
    temperature: float = 0.0

    def described(self) -> str:
        """What a resumed run must find unchanged."""
        where = self.address.base_url if self.address else "here"
        return f"{self.name}\nat {where}\ntemperature {self.temperature:g}"


def choose_model(named: str | None, variable: str | None, own: Sequence[ModelChoice | None]) -> Chosen | None:
    """Who answers, or judges: the one named, else the one in the variable, else the benchmark's own; None: nobody, on
    purpose or because only the benchmark's own lacks its key. A model that was named and lacks its key is an error."""
    name = named or (environment().get(variable) if variable else None)
    if name == NO_MODEL:
        return None
    if name:
        return model_named(name)
    choice = next((choice for choice in own if choice), None)
    if choice is None:
        return None
    chosen = _chosen(choice.model, choice.temperature)
    return chosen if chosen.address is None or chosen.address.ready else None


def model_named(name: str) -> Chosen:
    """A model that somebody asked for by name: without its key, that is an error."""
    chosen = _chosen(name)
    if chosen.address is not None:
        key_of(chosen.address, environment())  # raises where it is missing
    return chosen


def _chosen(name: str, temperature: float = 0.0) -> Chosen:
    if name.startswith(PREFIX):
        rehearse(name)  # raises where there is no such script
        return Chosen(name, None)
    return Chosen(name, resolve(name, environment()), temperature)


async def open_chosen(stack: AsyncExitStack, chosen: Chosen, *, seed: int | None = None) -> Model:
    if chosen.address is None:
        return rehearse(chosen.name)
    from memorybench.models.opening import open_model

    return await stack.enter_async_context(
        open_model(
            chosen.address,
            key=key_of(chosen.address, environment()),
            redactor=redactor(),
            options=Options(temperature=chosen.temperature, seed=seed, max_tokens=_LONGEST_REPLY),
        )
    )
