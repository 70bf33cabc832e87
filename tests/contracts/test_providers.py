"""Every embedded provider keeps the contract that third parties are asked to keep."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from memorybench.core.contracts import Provider
from memorybench.embedding.scripted import open_scripted_embedder
from memorybench.providers.bm25 import open_bm25
from memorybench.providers.dense import open_dense
from memorybench.providers.hybrid import open_hybrid
from memorybench.providers.scripted import open_scripted
from memorybench.testing import ProviderContract


class TestBm25(ProviderContract):
    def open_provider(self, folder: Path) -> AbstractAsyncContextManager[Provider]:
        return open_bm25(folder / "bm25.db")


class TestDense(ProviderContract):
    @asynccontextmanager
    async def open_provider(self, folder: Path) -> AsyncIterator[Provider]:
        async with open_scripted_embedder() as embedder, open_dense(folder / "dense.db", embedder) as provider:
            yield provider


class TestHybrid(ProviderContract):
    @asynccontextmanager
    async def open_provider(self, folder: Path) -> AsyncIterator[Provider]:
        async with open_scripted_embedder() as embedder, open_hybrid(folder / "hybrid.db", embedder) as provider:
            yield provider


class TestScripted(ProviderContract):
    durable = False
    immediate = False

    def open_provider(self, folder: Path) -> AbstractAsyncContextManager[Provider]:
        return open_scripted()
