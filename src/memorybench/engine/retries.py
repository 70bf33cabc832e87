"""Retries, with one owner: here, around the contract. No client below retries by itself, so layers never multiply."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from memorybench.core.errors import Denied, ServiceError, Transient
from memorybench.core.plans import Limits

from .limiter import Gate

T = TypeVar("T")


@dataclass(slots=True)
class RetryState:
    """How it went: filled in while it goes, read also when it ends badly."""

    tries: int = 0
    uncertain: int = 0
    seconds: float = 0.0
    """What the call that succeeded took: the subject's time, not what we waited for our turn or for another try."""


async def with_retries(work: Callable[[], Awaitable[T]], gate: Gate, trying: RetryState) -> T:
    """The result of `work`, asked again while it is worth it. No call starts before a Retry-After has passed."""
    limits = gate.limits
    while True:
        async with gate:
            trying.tries += 1
            begun = time.monotonic()
            try:
                result = await work()
                trying.seconds = time.monotonic() - begun
                return result
            except Denied as error:
                gate.close(str(error))
                raise
            except Transient as error:
                trying.uncertain += error.uncertain
                if trying.tries >= limits.tries:
                    raise ServiceError(f"{error} (tried {trying.tries} times)") from error
                delay = _delay(error, trying.tries, limits)
                if error.retry_after is not None:
                    gate.pause(delay)
        await gate.stopping.pause(delay)


def _delay(error: Transient, tries: int, limits: Limits) -> float:
    if error.retry_after is not None:
        if error.retry_after > limits.longest_delay:
            raise ServiceError(
                f"{error}: asked to wait {error.retry_after:.0f} s, more than the {limits.longest_delay:.0f} s"
                " we wait; resume the run later"
            ) from error
        return max(0.0, error.retry_after)
    ceiling: float = min(limits.longest_delay, limits.first_delay * 2 ** (tries - 1))
    return ceiling * random.uniform(0.5, 1.0)  # spread, so that a crowd does not come back as one
