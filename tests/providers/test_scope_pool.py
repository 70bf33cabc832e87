from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from memorybench.core.errors import ServiceError
from memorybench.providers.storage import scope_pool
from memorybench.providers.storage.scope_pool import ScopePool


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope_pool, "GRACE", 0.0)


class Desk:
    """Counts open resources."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.open_now: list[str] = []
        self.peak = 0

    @asynccontextmanager
    async def open(self, scope: str) -> AsyncIterator[str]:
        self.opened.append(scope)
        self.open_now.append(scope)
        self.peak = max(self.peak, len(self.open_now))
        try:
            yield scope
        finally:
            self.open_now.remove(scope)


def test_pool_size_is_limited_and_scopes_are_separate() -> None:
    async def fill(desk: Desk) -> None:
        pool = ScopePool(desk.open, 3)

        async def use(n: int) -> None:
            async with pool.using(f"s{n % 10}") as held:
                await asyncio.sleep(0)
                assert held == f"s{n % 10}"

        await asyncio.gather(*(use(n) for n in range(60)))
        await pool.close()

    desk = Desk()
    asyncio.run(fill(desk))
    assert desk.peak == 3
    assert desk.open_now == []


def test_resource_idle_for_longest_is_closed() -> None:
    async def fill(desk: Desk) -> None:
        pool = ScopePool(desk.open, 2)
        for scope in ("a", "b", "a", "c", "a"):
            async with pool.using(scope):
                pass
        assert sorted(desk.open_now) == ["a", "c"]
        await pool.close()

    desk = Desk()
    asyncio.run(fill(desk))
    assert desk.opened == ["a", "b", "c"]


def test_recently_used_resource_is_not_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope_pool, "GRACE", 3600.0)

    async def fill(desk: Desk) -> None:
        pool = ScopePool(desk.open, 1)

        async def use(scope: str) -> None:
            for _ in range(10):
                async with pool.using(scope):
                    await asyncio.sleep(0)
            await pool.drop(scope)

        await asyncio.gather(*(use(scope) for scope in ("a", "b", "c")))

    desk = Desk()
    asyncio.run(fill(desk))
    assert desk.opened == ["a", "b", "c"]


def test_failed_resource_is_replaced() -> None:
    async def fill(desk: Desk) -> None:
        pool = ScopePool(desk.open, 2)

        async def fail() -> None:
            async with pool.using("a"):
                raise ServiceError("failed")

        for _ in range(2):
            with pytest.raises(ServiceError):
                await fail()
            assert desk.open_now == []
        async with pool.using("a"):
            assert desk.open_now == ["a"]
        await pool.close()

    desk = Desk()
    asyncio.run(fill(desk))
    assert desk.opened == ["a", "a", "a"]


def test_drop_waits_until_the_resource_is_not_in_use() -> None:
    async def fill(desk: Desk) -> None:
        pool = ScopePool(desk.open, 2)
        async with pool.using("a"):
            dropping = asyncio.create_task(pool.drop("a"))
            for _ in range(5):
                await asyncio.sleep(0)
            assert not dropping.done()
            assert desk.open_now == ["a"]
        await dropping
        assert desk.open_now == []

    asyncio.run(fill(Desk()))
