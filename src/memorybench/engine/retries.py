"""Repeats failed calls.

Only the engine does so: HTTP and other clients never retry, so that retries do not multiply.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec import Struct

from memorybench.core.errors import Denied, Malformed, ServiceError, Transient
from memorybench.core.plans import Limits
from memorybench.core.retry_defaults import UNREACHABLE
from memorybench.core.timing import TargetTime

from .limiter import RateLimiter
from .stopping import Interrupted

T = TypeVar("T")

_LONGEST_PAUSE = 24 * 3600.0
"""The longest Retry-After, in seconds, that pauses all calls to a subject.

A longer one is probably a mistake of the server, and fails only the call that got it.
"""


class RetryState(Struct):
    """What `with_retries` counts for one call. The caller can read it after success and after failure."""

    tries: int = 0
    uncertain: int = 0
    seconds: float = 0.0
    """How long the target worked in the try that succeeded, without waiting (core/timing.py); 0 if none did."""


async def with_retries(
    work: Callable[[], Awaitable[T]],
    limiter: RateLimiter,
    state: RetryState,
    on_lost: Callable[[Transient], Awaitable[None]] | None = None,
) -> T:
    """Call `work` and return its result. If it raises Transient, call it again, up to `limits.tries` times in total.

    `on_lost` is awaited after each try that may have been charged although its reply was lost. Raise ServiceError if
    the last try fails, or if a Retry-After is longer than `limits.longest_delay`.
    """
    limits = limiter.limits
    while True:
        async with limiter:
            state.tries += 1
            try:
                with TargetTime() as target_time:
                    result = await work()
                state.seconds = target_time.seconds
                limiter.failed_connections = 0
                return result
            except Denied as error:
                limiter.close(str(error))
                raise
            except Malformed:
                state.uncertain += 1  # the work was done; repeating it at once might pay for it again
                raise
            except Transient as error:
                state.uncertain += error.uncertain
                limiter.failed_connections = limiter.failed_connections + 1 if error.unreachable else 0
                if error.uncertain and on_lost is not None:
                    await on_lost(error)
                if error.retry_after is not None and error.retry_after <= _LONGEST_PAUSE:
                    limiter.pause(error.retry_after)  # also after the last try: it applies to all trials
                if state.tries >= limits.tries:
                    _check_reachable(limiter, error)
                    raise ServiceError(f"{error} (tried {state.tries} times)") from error
                delay = _delay(error, state.tries, limits)
        await limiter.stopping.pause(delay)


def _check_reachable(limiter: RateLimiter, error: Transient) -> None:
    """If the last UNREACHABLE connections to the subject failed, stop the run and raise Interrupted.

    Its other trials would fail, too; a resumed run performs them.
    """
    failures = limiter.failed_connections
    if failures >= UNREACHABLE:
        limiter.stopping.give_up(f"{limiter.name}: {error}; the run pauses after {failures} failed connections")
        raise Interrupted from error


def _delay(error: Transient, tries: int, limits: Limits) -> float:
    if error.retry_after is None:
        ceiling: float = min(limits.longest_delay, limits.first_delay * 2 ** (tries - 1))
        return ceiling * random.uniform(0.5, 1.0)  # jitter, so that callers do not all retry at the same moment
    if error.retry_after > limits.longest_delay:
        raise ServiceError(
            f"{error}: the service asks to wait {error.retry_after:.0f} s, which is more than"
            f" {limits.longest_delay:.0f} s; resume the run later"
        ) from error
    return max(0.0, error.retry_after)
