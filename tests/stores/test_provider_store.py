"""Providers as stores: one with only the required methods, one with `list`, one with all methods."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from memorybench.core.contracts import Provider, Receipt, Scope
from memorybench.core.conversation import Memory, Session
from memorybench.core.errors import Lacking
from memorybench.core.stores import MemoryStore
from memorybench.core.trials import Subject
from memorybench.files.yaml_file import parse_yaml
from memorybench.providers.bm25 import Bm25
from memorybench.secrets.redaction import Redactor
from memorybench.stores.config_reading import read_store
from memorybench.stores.opening import open_store
from tests.stores.contract import ANN, TEA, StoreContract

CONFIG = read_store(parse_yaml("name: lexical\ntype: provider\nprovider: bm25\ncapabilities: [files]", "l.yaml"), {})


def opened(folder: Path) -> AbstractAsyncContextManager[MemoryStore]:
    return open_store(
        CONFIG,
        folder,
        environment={},
        redactor=Redactor([]),
        open_provider=lambda _, folder: Bm25.open_file(folder / "bm25.db"),
    )


class TestContract(StoreContract):
    def open_store(self, folder: Path) -> AbstractAsyncContextManager[MemoryStore]:
        return opened(folder)


class Silent:
    """Has only the required methods."""

    subject = Subject(role="provider", name="silent")
    store_id = "1"

    def __init__(self) -> None:
        self.scopes: list[Scope] = []

    async def add(self, scope: Scope, session: Session) -> Receipt:
        self.scopes.append(scope)
        return Receipt()

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        """Return at once."""

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        return [Memory(id="1", content="user: user: Ann is a user")]

    async def clear(self, scope: Scope) -> None:
        """Do nothing."""


def test_an_operation_without_a_provider_method_raises_lacking(tmp_path: Path) -> None:
    silent = Silent()

    @asynccontextmanager
    async def open_provider(name: str, folder: Path) -> AsyncIterator[Provider]:
        assert name == "bm25"
        yield silent

    async def live() -> None:
        store = open_store(CONFIG, tmp_path, environment={}, redactor=Redactor([]), open_provider=open_provider)
        async with store as opened:
            assert opened.capabilities == {"recall", "users", "files"}
            for lacking in (opened.list(ANN), opened.history(ANN), opened.curate(ANN, apply=True)):
                with pytest.raises(Lacking):
                    await lacking
            for unable in (opened.forget(ANN, "1"), opened.update(ANN, "1", "new")):
                with pytest.raises(Lacking):
                    await unable
            assert await opened.remember(ANN, TEA), "what became no memory has an id all the same"
            assert [fact.content for fact in await opened.recall(ANN, "Ann", 1)] == ["user: Ann is a user"]

    asyncio.run(live())
    assert [scope.haystack for scope in silent.scopes] == [ANN]
