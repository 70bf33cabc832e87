"""A pool of resources with one resource per scope, such as a process or a database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import Generic, TypeVar

from msgspec import Struct

from memorybench.core.timing import excluded

T = TypeVar("T")

GRACE = 0.5
"""Seconds that a resource must be idle before it is closed to make room for another scope. Sessions are added to a
scope one after the other, and to open its process again for each of them would take longer than other scopes wait."""


class _Slot(Struct, Generic[T]):
    resource: T
    closing: AsyncExitStack
    users: int = 0
    idle_since: float = 0.0
    is_broken: bool = False


class ScopePool(Generic[T]):
    """Opens one resource per scope, at most `size` at the same time.

    If another scope needs a resource, the one that has been idle for longest is closed. It is opened again when its
    scope is used again, so it must keep its data on disk. After a failure, a resource is closed, and the next use of
    its scope opens a new one.
    """

    def __init__(self, open: Callable[[str], AbstractAsyncContextManager[T]], size: int) -> None:
        self._open = open
        self._size = size
        self._slots: dict[str, _Slot[T]] = {}  # in the order of their last use
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def using(self, scope: str) -> AsyncIterator[T]:
        with excluded():
            slot = await self._acquire(scope)
        try:
            yield slot.resource
        except BaseException:
            slot.is_broken = True
            raise
        finally:
            await asyncio.shield(self._release(scope, slot))

    async def drop(self, scope: str) -> None:
        """Wait until the resource of a scope is not in use, and close it; do nothing if the scope has none."""
        async with self._changed:
            await self._changed.wait_for(lambda: scope not in self._slots or not self._slots[scope].users)
            await self._close(scope)

    async def close(self) -> None:
        async with self._changed:
            for scope in list(self._slots):
                await self._close(scope)

    async def _acquire(self, scope: str) -> _Slot[T]:
        async with self._changed:
            while not self._is_available(scope):
                # wake up also without a change, because a resource may have been idle for long enough
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(GRACE / 4, 0.01)):
                        await self._changed.wait()
            slot = self._slots.pop(scope, None)
            if slot is None:
                if len(self._slots) >= self._size:
                    await self._close(self._idle()[0])
                # under the lock, because opening several resources at once is not faster
                closing = AsyncExitStack()
                slot = _Slot(await closing.enter_async_context(self._open(scope)), closing)
            self._slots[scope] = slot
            slot.users += 1
            return slot

    def _is_available(self, scope: str) -> bool:
        """Return whether the scope has a resource that has not failed, or one can be opened for it now."""
        if scope in self._slots:
            return not self._slots[scope].is_broken  # the last user of a broken one closes it
        return len(self._slots) < self._size or bool(self._idle())

    def _idle(self) -> list[str]:
        """Return the scopes whose resource has been idle for at least GRACE seconds, the least recently used first."""
        now = asyncio.get_running_loop().time()
        return [name for name, slot in self._slots.items() if not slot.users and now - slot.idle_since >= GRACE]

    async def _release(self, scope: str, slot: _Slot[T]) -> None:
        async with self._changed:
            slot.users -= 1
            slot.idle_since = asyncio.get_running_loop().time()
            if slot.is_broken and not slot.users:
                await self._close(scope)
            self._changed.notify_all()

    async def _close(self, scope: str) -> None:
        slot = self._slots.pop(scope, None)
        if slot is not None:
            await slot.closing.aclose()
            self._changed.notify_all()
