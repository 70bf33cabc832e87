"""Every embedded provider keeps the contract that third parties are asked to keep."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from memorybench.core.contracts import Provider
from memorybench.providers.bm25 import Bm25
from memorybench.providers.dense import Dense
from memorybench.providers.hybrid import Hybrid
from memorybench.testing import ProviderContract
from tests.doubles.scripted_embedder import open_scripted_embedder


class TestBm25(ProviderContract):
    def open_provider(self, folder: Path) -> AbstractAsyncContextManager[Provider]:
        return Bm25.open_file(folder / "bm25.db")


class TestBm25InMemory(ProviderContract):
    durable = False

    def open_provider(self, folder: Path) -> AbstractAsyncContextManager[Provider]:
        return Bm25.open_file(None)


class TestHybridInMemory(ProviderContract):
    durable = False

    @asynccontextmanager
    async def open_provider(self, folder: Path) -> AsyncIterator[Provider]:
        async with open_scripted_embedder() as embedder, Hybrid.open_file(None, embedder) as provider:
            yield provider


class TestDense(ProviderContract):
    @asynccontextmanager
    async def open_provider(self, folder: Path) -> AsyncIterator[Provider]:
        async with open_scripted_embedder() as embedder, Dense.open_file(folder / "dense.db", embedder) as provider:
            yield provider


class TestHybrid(ProviderContract):
    @asynccontextmanager
    async def open_provider(self, folder: Path) -> AsyncIterator[Provider]:
        async with open_scripted_embedder() as embedder, Hybrid.open_file(folder / "hybrid.db", embedder) as provider:
            yield provider
