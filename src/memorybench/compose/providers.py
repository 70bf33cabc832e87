"""From a provider's name to a memory that can be filled and searched."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memorybench.catalog.catalog import Catalog
from memorybench.catalog.entries import Entry
from memorybench.providers.config import RateLimit
from memorybench.vocabulary.contracts import Embedder, Provider
from memorybench.vocabulary.errors import BadInput
from memorybench.vocabulary.plans import Limits

from .environment import environment

BUILTIN, PLUGIN = "builtin:", "plugin:"


@dataclass(frozen=True, slots=True)
class Opened:
    provider: Provider
    limits: Limits
    spends: bool


class ProviderOpener:
    """Opens the providers of one run; what they share, such as the embedder, is opened once."""

    def __init__(self, stack: AsyncExitStack, catalog: Catalog, stores: Path) -> None:
        """`stores` is where providers of this process keep their data, one file or folder each."""
        self._stack = stack
        self._catalog = catalog
        self._stores = stores
        self._shared_embedder: Embedder | None = None
        stores.mkdir(parents=True, exist_ok=True, mode=0o700)

    async def open(self, entry: Entry) -> Opened:
        config = self._catalog.provider(entry.name, environment())
        adapter = config.adapter or ""
        if adapter.startswith(BUILTIN):
            opening = await self._builtin(adapter.removeprefix(BUILTIN), self._stores / f"{entry.name}.db")
        elif adapter.startswith(PLUGIN):
            opener: Any = self._catalog.plugin("provider", adapter.removeprefix(PLUGIN)).load()
            opening = opener(self._stores / entry.name)
        else:
            raise BadInput(f'provider "{entry.name}"', f"type {config.type} can not be opened yet")
        provider = await self._stack.enter_async_context(opening)
        return Opened(provider, _limits(config.rate_limit), spends=config.type == "hosted")

    async def _builtin(self, name: str, file: Path) -> AbstractAsyncContextManager[Provider]:
        if name == "bm25":
            from memorybench.providers.bm25 import open_bm25

            return open_bm25(file)
        if name == "dense":
            from memorybench.providers.dense import open_dense

            return open_dense(file, await self._embedder())
        if name == "hybrid":
            from memorybench.providers.hybrid import open_hybrid

            return open_hybrid(file, await self._embedder())
        raise BadInput(f'adapter "{BUILTIN}{name}"', "there is no such provider", expected="bm25, dense or hybrid")

    async def _embedder(self) -> Embedder:
        if self._shared_embedder is None:
            from memorybench.embedding.local import open_local_embedder

            self._shared_embedder = await self._stack.enter_async_context(open_local_embedder())
        return self._shared_embedder


def _limits(rate: RateLimit) -> Limits:
    return Limits(
        concurrency=rate.concurrency,
        per_second=rate.requests_per_second,
        tries=rate.max_retries + 1,
        first_delay=rate.retry_delay_ms / 1000,
    )
