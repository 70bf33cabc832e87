"""Repeats: a model is asked the same question several times, to see how much its answers and verdicts vary."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from msgspec import Struct

if TYPE_CHECKING:
    from memorybench.core.contracts import Model
    from memorybench.core.plans import Adding, StepOptions, Steps

    from .wiring import ResolvedModel

T = TypeVar("T")


class _RepeatSteps(Struct, frozen=True):
    """The steps of the second or a later repeat.

    The repeat's number is an input of each step, so that no result of another repeat is reused.
    """

    steps: Steps
    repeat: int

    async def once(
        self,
        name: str,
        inputs: Mapping[str, Any],
        work: Callable[[], Awaitable[T]],
        returns: type[T],
        **options: Unpack[StepOptions],
    ) -> T:
        return await self.steps.once(name, self._with_repeat(inputs), work, returns, **options)

    def is_recorded(self, name: str, inputs: Mapping[str, Any]) -> bool:
        return self.steps.is_recorded(name, self._with_repeat(inputs))

    def is_inherited(self, name: str, inputs: Mapping[str, Any], *, shared: bool = False) -> bool:
        return self.steps.is_inherited(name, self._with_repeat(inputs), shared=shared)

    async def note(self, kind: str, text: str) -> None:
        await self.steps.note(kind, text)

    def show_adding(self, adding: Adding) -> None:
        self.steps.show_adding(adding)

    def check_stopping(self) -> None:
        self.steps.check_stopping()

    def _with_repeat(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        return {**inputs, "repeat": self.repeat}


def steps_of_repeat(steps: Steps, repeat: int) -> Steps:
    """Return the steps of a repeat. The first repeat has the same steps as a run without repeats."""
    return steps if repeat == 1 else _RepeatSteps(steps, repeat)


async def open_repeats(model: ResolvedModel, stack: AsyncExitStack, seed: int | None, repeats: int) -> list[Model]:
    """Return one model per repeat: the same for all or, with `seed`, models with the seeds seed, seed + 1 and so on."""
    if seed is None:
        return [await model.open(stack)] * repeats
    return [await model.open(stack, seed=seed + place) for place in range(repeats)]
