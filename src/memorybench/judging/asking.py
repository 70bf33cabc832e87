"""Asks a model and records its parsed reply as a step."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from memorybench.core.contracts import Completion, Model
from memorybench.core.conversation import Turn
from memorybench.core.errors import ServiceError, Unreadable
from memorybench.core.plans import Steps

T = TypeVar("T")


async def ask_once(
    steps: Steps,
    name: str,
    model: Model,
    prompt: str,
    read: Callable[[Completion], T],
    returns: type[T],
    *,
    attempt: int = 1,
    shared: bool = True,
    schema: Mapping[str, Any] | None = None,
) -> T:
    """Ask a model, record the step, and return the reply as parsed by `read`.

    Raise Unreadable if `read` cannot parse the reply.
    """
    turns = [Turn(role="user", content=prompt)]

    async def ask() -> T:
        return read(await model.complete(turns, schema=schema))

    return await steps.once(
        name,
        _inputs(model, prompt, attempt),
        ask,
        returns,
        on=model.subject,
        paid=True,
        highest_cost=lambda: model.highest_cost(turns, schema=schema),
        shared=shared,
    )


async def ask_judge(
    steps: Steps,
    name: str,
    model: Model,
    prompt: str,
    again: str,
    read: Callable[[Completion], T],
    returns: type[T],
    *,
    shared: bool = True,
    schema: Mapping[str, Any] | None = None,
) -> T:
    """Ask a judge. If its reply cannot be read, ask once more, with `again` added to the end of the prompt.

    Raise Unreadable if the second reply cannot be read either, or if the judge cannot be reached: the failure of a
    judge is not a failure of the subject that it judges.
    """
    try:
        # a recorded second reply means that the first was unreadable: it is not paid for again
        if not steps.is_inherited(name, _inputs(model, prompt + again, 2), shared=shared):
            with suppress(Unreadable):
                return await ask_once(steps, name, model, prompt, read, returns, shared=shared, schema=schema)
        return await ask_once(
            steps, name, model, prompt + again, read, returns, attempt=2, shared=shared, schema=schema
        )
    except ServiceError as error:
        raise Unreadable(f"the call of the judge failed: {error}") from error


def _inputs(model: Model, prompt: str, attempt: int) -> dict[str, Any]:
    return {"model": model.subject, "prompt": prompt, "attempt": attempt}


async def all_of(*work: Awaitable[T]) -> list[T]:
    """Wait for all awaitables and return their results.

    If some raise, the others still run to their end, so that their steps are recorded; then the first error is raised.
    """
    done: list[T] = []
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
        done.append(result)
    return done
