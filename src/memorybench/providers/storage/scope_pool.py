"""A pool of resources with one resource per scope, such as a process or a database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

GRACE = 0.5
"""Seconds that a resource must be idle before it is closed for another: a scope that is being filled is used again at
once, and opening its process for every session would cost more than letting others wait."""


@dataclass(slots=True)
class _Seat(Generic[T]):
    held: T
    closing: AsyncExitStack
    users: int = 0
    idle_since: float = 0.0
    broken: bool = False


class ScopePool(Generic[T]):
    """At most `size` resources are open; the one idle for longest is closed, and opened again when it is needed.

    So a resource must keep its data on disk. After a failure it is closed, and the next user gets a new one.
    """

    def __init__(self, open: Callable[[str], AbstractAsyncContextManager[T]], size: int) -> None:
        self._open = open
        self._size = size
        self._seats: dict[str, _Seat[T]] = {}  # in the order of their last use
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def using(self, scope: str) -> AsyncIterator[T]:
        seat = await self._taken(scope)
        try:
            yield seat.held
        except BaseException:
            seat.broken = True
            raise
        finally:
            await asyncio.shield(self._left(scope, seat))

    async def drop(self, scope: str) -> None:
        """Close the resource of a scope when it is no longer in use."""
        async with self._changed:
            await self._changed.wait_for(lambda: scope not in self._seats or not self._seats[scope].users)
            await self._close(scope)

    async def close(self) -> None:
        async with self._changed:
            for scope in list(self._seats):
                await self._close(scope)

    async def _taken(self, scope: str) -> _Seat[T]:
        async with self._changed:
            while not self._usable(scope) and not self._room(scope):
                await self._news()
            seat = self._seats.pop(scope, None)
            if seat is None:
                if len(self._seats) >= self._size:
                    await self._close(self._idle()[0])
                # under the lock: opening several at once is not faster
                seat = await self._opened(scope)
            self._seats[scope] = seat
            seat.users += 1
            return seat

    def _usable(self, scope: str) -> bool:
        return scope in self._seats and not self._seats[scope].broken

    def _room(self, scope: str) -> bool:
        if scope in self._seats:
            return False  # broken: its last user closes it
        return len(self._seats) < self._size or bool(self._idle())

    def _idle(self) -> list[str]:
        """Return the scopes whose resource may be closed, the least recently used first."""
        now = asyncio.get_running_loop().time()
        return [name for name, seat in self._seats.items() if not seat.users and now - seat.idle_since >= GRACE]

    async def _news(self) -> None:
        """Wait until something has changed, or may have been idle for long enough."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(GRACE / 4, 0.01)):
                await self._changed.wait()

    async def _opened(self, scope: str) -> _Seat[T]:
        closing = AsyncExitStack()
        return _Seat(await closing.enter_async_context(self._open(scope)), closing)

    async def _left(self, scope: str, seat: _Seat[T]) -> None:
        async with self._changed:
            seat.users -= 1
            seat.idle_since = asyncio.get_running_loop().time()
            if seat.broken and not seat.users:
                await self._close(scope)
            self._changed.notify_all()

    async def _close(self, scope: str) -> None:
        seat = self._seats.pop(scope, None)
        if seat is not None:
            await seat.closing.aclose()
            self._changed.notify_all()
