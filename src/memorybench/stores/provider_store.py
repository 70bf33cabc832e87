"""A provider as a memory store: each fact is a session of one turn, each person a scope."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import NoReturn, Protocol, runtime_checkable

from memorybench.core.contracts import Listing, Provider, Receipt, Scope
from memorybench.core.conversation import Memory, Session, Turn
from memorybench.core.errors import Lacking
from memorybench.core.stores import Capability, Curation, NewFact, StoredFact
from memorybench.core.trials import Subject

from .config import StoreConfig

OpenProvider = Callable[[str, Path], AbstractAsyncContextManager[Provider]]
"""The provider of that name, keeping all it keeps in that folder."""
_ROLE = "user"


@runtime_checkable
class Updating(Protocol):
    async def update(self, scope: Scope, id: str, content: str) -> None: ...


@runtime_checkable
class Forgetting(Protocol):
    async def forget(self, scope: Scope, id: str) -> None: ...


@runtime_checkable
class Historical(Protocol):
    async def history(self, scope: Scope) -> Sequence[str]:
        """Every text that is still kept of memories that were changed or forgotten."""
        ...


class ProviderStore:
    """Opened by `open_provider_store`. What the provider has no method for is lacking."""

    def __init__(self, name: str, provider: Provider, told: Sequence[Capability]) -> None:
        self.subject = Subject(role="store", name=name, settings={"provider": provider.subject.plain()})
        self.capabilities = _capabilities(provider) | frozenset(told)
        self._provider = provider

    async def remember(self, user: str, fact: NewFact) -> str:
        """The id of the memory it became; that of the session, where the provider made no memory of it."""
        scope = self._scope(user)
        session = Session(id=secrets.token_hex(8), turns=(Turn(role=_ROLE, content=fact.content),))
        receipt = await self._provider.add(scope, session)
        await self._provider.wait_until_searchable(scope, [receipt])
        return next(iter(await self._made(scope, session, receipt)), session.id)

    async def update(self, user: str, id: str, content: str) -> str:
        if not isinstance(self._provider, Updating):
            self._lacks("update")
        await self._provider.update(self._scope(user), id, content)
        return id

    async def forget(self, user: str, id: str) -> None:
        if not isinstance(self._provider, Forgetting):
            self._lacks("forget")
        await self._provider.forget(self._scope(user), id)

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        return [_fact(memory) for memory in await self._provider.search(self._scope(user), query, limit)]

    async def curate(self, user: str, *, apply: bool) -> Curation:
        self._lacks("curate")

    async def history(self, user: str) -> Sequence[str]:
        if not isinstance(self._provider, Historical):
            self._lacks("history")
        return await self._provider.history(self._scope(user))

    async def list(self, user: str) -> Sequence[StoredFact]:
        return [_fact(memory) for memory in await self._held(self._scope(user))]

    async def _made(self, scope: Scope, session: Session, receipt: Receipt) -> Sequence[str]:
        """Ids as the list tells them: a receipt may hold ids of requests or documents."""
        if not isinstance(self._provider, Listing):
            return receipt.ids
        held = await self._provider.list(scope)
        return [memory.id for memory in held if memory.id in receipt.ids or session.id in (memory.sources or ())]

    async def _held(self, scope: Scope) -> Sequence[Memory]:
        if not isinstance(self._provider, Listing):
            self._lacks("list")
        return await self._provider.list(scope)

    def _scope(self, user: str) -> Scope:
        return Scope(run="hygiene", benchmark="hygiene", provider=self.subject.name, haystack=user)

    def _lacks(self, what: str) -> NoReturn:
        raise Lacking(f"{self.subject.name} can not {what}")


def _capabilities(provider: Provider) -> frozenset[Capability]:
    able: dict[Capability, bool] = {
        "recall": True,
        "users": True,
        "list": isinstance(provider, Listing),
        "update": isinstance(provider, Updating),
        "forget": isinstance(provider, Forgetting),
        "history": isinstance(provider, Historical),
    }
    return frozenset(capability for capability, can in able.items() if can)


def _fact(memory: Memory) -> StoredFact:
    # our providers put the role before what nobody named is saying; the fact itself is what follows
    return StoredFact(id=memory.id, content=memory.content.removeprefix(f"{_ROLE}: "))


@asynccontextmanager
async def open_provider_store(
    config: StoreConfig, folder: Path, open_provider: OpenProvider
) -> AsyncIterator[ProviderStore]:
    assert config.provider is not None
    async with open_provider(config.provider, folder) as provider:
        yield ProviderStore(config.name, provider, config.capabilities)
