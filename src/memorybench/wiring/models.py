"""From a model's name to a model that can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from memorybench.core.contracts import Model
from memorybench.datasets.config import ModelChoice
from memorybench.models.presets import ModelAddress, Options, key_of, resolve
from memorybench.models.prices import Usage, price
from memorybench.models.rehearsal import PREFIX, rehearse
from memorybench.models.windows import fetch_window, known_window

from .environment import environment, first_variable, redactor

MODEL_VARIABLE = "MEMORYBENCH_MODEL"
NO_MODEL = "none"
_LONGEST_REPLY = 1024
"""Tokens. An answer is a few words and a verdict one, but some models think aloud first; a loop must end."""


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model that was looked up and has its key. Nothing is opened yet."""

    name: str
    address: ModelAddress | None
    """None: a scripted model, which needs no server."""
    temperature: float = 0.0

    def described(self) -> str:
        """What must be unchanged when a run is resumed."""
        where = self.address.base_url if self.address else "here"
        return f"{self.name}\nat {where}\ntemperature {self.temperature:g}"

    def price(self, input_tokens: int, output_tokens: int) -> float | None:
        if self.address is None or self.address.priced_as is None:
            return 0.0
        return price(self.address.model, self.address.priced_as, Usage(input_tokens, output_tokens))

    @property
    def listed_window(self) -> int | None:
        return known_window(self.address) if self.address else None

    async def fetch_window(self) -> int | None:
        if self.address is None:
            return None
        key = first_variable(*self.address.key_variables)
        return await fetch_window(self.address, key=key, redactor=redactor())

    async def open(self, stack: AsyncExitStack, *, seed: int | None = None) -> Model:
        if self.address is None:
            return rehearse(self.name)
        from memorybench.models.opening import open_model

        return await stack.enter_async_context(
            open_model(
                self.address,
                key=key_of(self.address, environment()),
                redactor=redactor(),
                options=Options(temperature=self.temperature, seed=seed, max_tokens=_LONGEST_REPLY),
            )
        )


def choose_model(
    name: str | None, variable: str | None, defaults: Sequence[ModelChoice | None], *, need_key: bool = True
) -> ResolvedModel | None:
    """The model named, else the one in the variable, else the first default; None: no model.

    A model that was named and lacks its key is an error; a default that lacks its key is left out.
    """
    name = name or (environment().get(variable) if variable else None)
    if name == NO_MODEL:
        return None
    if name:
        return resolve_model(name, need_key=need_key)
    choice = next((choice for choice in defaults if choice), None)
    if choice is None:
        return None
    model = _resolve(choice.model, choice.temperature)
    return model if model.address is None or model.address.ready else None


def resolve_model(name: str, *, need_key: bool = True) -> ResolvedModel:
    """A model that the user asked for by name. Raises where its key is missing, unless it is not needed."""
    model = _resolve(name)
    if model.address is not None and need_key:
        key_of(model.address, environment())
    return model


def _resolve(name: str, temperature: float = 0.0) -> ResolvedModel:
    if name.startswith(PREFIX):
        rehearse(name)  # raises where the script is unknown
        return ResolvedModel(name, None)
    return ResolvedModel(name, resolve(name, environment()), temperature)
