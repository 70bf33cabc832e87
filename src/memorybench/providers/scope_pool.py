"""What is opened for one scope at a time: a process, a database. Only so many stay open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

GRACE = 0.5
"""Seconds that one must have been idle before it gives way: a scope that is being filled is back at once, and to open
its process or database for every session would cost more than to let others wait."""


@dataclass(slots=True)
class _Seat(Generic[T]):
    held: T
    closing: AsyncExitStack
    users: int = 0
    idle_since: float = 0.0
    broken: bool = False


class ScopePool(Generic[T]):
    """At most `size` open at once; the one idle for longest gives way, and is opened again when it is asked for.

    So whatever is pooled must keep its data on disk. What failed is not trusted again: it is closed when its last user
    has left, and the next one gets a new one.
    """

    def __init__(self, open: Callable[[str], AbstractAsyncContextManager[T]], size: int) -> None:
        self._open = open
        self._size = size
        self._seats: dict[str, _Seat[T]] = {}  # the one used last stands last
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
        """Closes what is open for this scope, once nobody uses it."""
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
                # under the lock, one after the other: side by side they would only take each other's processor
                seat = await self._opened(scope)
            self._seats[scope] = seat
            seat.users += 1
            return seat

    def _usable(self, scope: str) -> bool:
        return scope in self._seats and not self._seats[scope].broken

    def _room(self, scope: str) -> bool:
        if scope in self._seats:
            return False  # broken: its last user will close it
        return len(self._seats) < self._size or bool(self._idle())

    def _idle(self) -> list[str]:
        """Who may give way, the one used first before the others."""
        now = asyncio.get_running_loop().time()
        return [name for name, seat in self._seats.items() if not seat.users and now - seat.idle_since >= GRACE]

    async def _news(self) -> None:
        """Returns when something has changed, or may have become idle for long enough."""
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
