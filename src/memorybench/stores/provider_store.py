"""A provider as a memory store: each fact is added as a session of one turn, each user has a scope."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import NoReturn, Protocol, runtime_checkable

from memorybench.core.contracts import Listing, Provider, Scope
from memorybench.core.conversation import Memory, Session, Turn
from memorybench.core.errors import Lacking
from memorybench.core.stores import Capability, Curation, NewFact, StoredFact
from memorybench.core.trials import Subject

from .config import StoreConfig

OpenProvider = Callable[[str, Path], AbstractAsyncContextManager[Provider]]
"""A function that opens a provider. Its arguments are the name of the provider and the folder for its data."""
_ROLE = "user"


@runtime_checkable
class CanUpdate(Protocol):
    async def update(self, scope: Scope, id: str, content: str) -> None: ...


@runtime_checkable
class CanForget(Protocol):
    async def forget(self, scope: Scope, id: str) -> None: ...


@runtime_checkable
class HasHistory(Protocol):
    async def history(self, scope: Scope) -> Sequence[str]:
        """Return the earlier texts of memories that were changed or deleted, if the provider still stores them."""
        ...


class ProviderStore:
    """A store that keeps its facts in a provider. Opened by `open_provider_store`.

    An operation that the provider has no method for raises Lacking.
    """

    def __init__(self, name: str, provider: Provider, declared: Sequence[Capability]) -> None:
        self.subject = Subject(role="store", name=name, settings={"provider": provider.subject.plain()})
        self.capabilities = _capabilities(provider) | frozenset(declared)
        self._provider = provider

    async def remember(self, user: str, fact: NewFact) -> str:
        """Store a fact as a session of one turn.

        Return the id of the memory; if the provider reports no id, return that of the session.
        """
        scope = self._scope(user)
        session = Session(id=secrets.token_hex(8), turns=(Turn(role=_ROLE, content=fact.content),))
        receipt = await self._provider.add(scope, session)
        await self._provider.wait_until_searchable(scope, [receipt])
        ids: Sequence[str] = receipt.ids
        if isinstance(self._provider, Listing):
            # the ids in a receipt may be those of requests or documents; the listing has the ids of memories
            ids = [
                memory.id
                for memory in await self._provider.list(scope)
                if memory.id in receipt.ids or session.id in (memory.sources or ())
            ]
        return next(iter(ids), session.id)

    async def update(self, user: str, id: str, content: str) -> str:
        if not isinstance(self._provider, CanUpdate):
            self._lack("update")
        await self._provider.update(self._scope(user), id, content)
        return id

    async def forget(self, user: str, id: str) -> None:
        if not isinstance(self._provider, CanForget):
            self._lack("forget")
        await self._provider.forget(self._scope(user), id)

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        return [_fact(memory) for memory in await self._provider.search(self._scope(user), query, limit)]

    async def curate(self, user: str, *, apply: bool) -> Curation:
        self._lack("curate")

    async def history(self, user: str) -> Sequence[str]:
        if not isinstance(self._provider, HasHistory):
            self._lack("history")
        return await self._provider.history(self._scope(user))

    async def clear(self, user: str) -> None:
        await self._provider.clear(self._scope(user))

    async def list(self, user: str) -> Sequence[StoredFact]:
        if not isinstance(self._provider, Listing):
            self._lack("list")
        return [_fact(memory) for memory in await self._provider.list(self._scope(user))]

    def _scope(self, user: str) -> Scope:
        return Scope(run="hygiene", benchmark="hygiene", provider=self.subject.name, haystack=user)

    def _lack(self, operation: str) -> NoReturn:
        raise Lacking(f"{self.subject.name} does not support {operation}")


def _capabilities(provider: Provider) -> frozenset[Capability]:
    able: dict[Capability, bool] = {
        "recall": True,
        "users": True,
        "list": isinstance(provider, Listing),
        "update": isinstance(provider, CanUpdate),
        "forget": isinstance(provider, CanForget),
        "history": isinstance(provider, HasHistory),
    }
    return frozenset(capability for capability, can in able.items() if can)


def _fact(memory: Memory) -> StoredFact:
    # our providers put the role before the text of an unnamed speaker
    return StoredFact(id=memory.id, content=memory.content.removeprefix(f"{_ROLE}: "))


@asynccontextmanager
async def open_provider_store(
    config: StoreConfig, folder: Path, open_provider: OpenProvider
) -> AsyncIterator[ProviderStore]:
    assert config.provider is not None
    async with open_provider(config.provider, folder) as provider:
        yield ProviderStore(config.name, provider, config.capabilities)
