"""The protocols that packages implement for each other. Scripted test doubles exist for providers and models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

from .conversation import Memory, Session, Turn
from .records import Record, digest
from .spending import Spending
from .trials import Subject


class Scope(Record):
    """The part of a memory that one haystack of one run uses. No memory belongs to two scopes."""

    run: str
    benchmark: str
    provider: str
    haystack: str

    @property
    def name(self) -> str:
        """An id of the scope that every store accepts: letters, digits and hyphens, at most 60 characters."""
        return _scope_name(self)


@lru_cache(maxsize=256)
def _scope_name(scope: Scope) -> str:
    """Return the name of a scope. All questions about a haystack need it."""
    readable = "".join(c if c.isascii() and c.isalnum() else "-" for c in f"{scope.run}-{scope.haystack}")
    return f"{readable[:43]}-{digest(scope)[:16]}"


class Receipt(Record):
    """The result of an add. The provider uses it to find out when the sessions are searchable."""

    ids: tuple[str, ...] = ()
    captured: Mapping[str, Any] = {}


class Completion(Record):
    text: str
    finish: str
    """Why the model stopped: "stop", "length", "filter", "tools", or the value that the server sent."""
    model: str
    """The name and version of the model that the server reports."""
    spent: Spending = Spending()


@runtime_checkable
class Provider(Protocol):
    """A memory system under test. It sees neither prompts nor gold answers."""

    @property
    def subject(self) -> Subject: ...

    @property
    def store_id(self) -> str:
        """An id that changes if stored data was lost, so that the engine fills the store again.

        It is a constant for a hosted service, stored with the data for a store on disk, and new at every opening for a
        store in memory.
        """
        ...

    async def add(self, scope: Scope, session: Session) -> Receipt: ...

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        """Return when the sessions of all receipts are searchable."""
        ...

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]: ...

    async def clear(self, scope: Scope) -> None: ...


@runtime_checkable
class Batching(Protocol):
    """A provider that can add several sessions of one scope in a single call."""

    @property
    def batch_size(self) -> int | None:
        """The most sessions per call; None: a whole history at once, for a memory whose data ends with the process."""
        ...

    async def add_batch(self, scope: Scope, sessions: Sequence[Session]) -> Receipt: ...


@runtime_checkable
class Restoring(Protocol):
    """A provider that needs the receipts of adds that an earlier process made."""

    def restore(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        """Load these receipts without sending anything. Called before the first search of a resumed run."""
        ...


@runtime_checkable
class Listing(Protocol):
    """A provider that can list all memories of a scope."""

    async def list(self, scope: Scope) -> Sequence[Memory]: ...


@runtime_checkable
class LiveMemory(Protocol):
    """A provider that stores outside the run, such as in a hosted account, where other programs may store, too."""

    async def count_memories(self, scope: Scope) -> int | None:
        """Return the number of memories in a scope; None if it is unknown.

        Called before the first add. Creates the scope if it needs to be created.
        """
        ...


@runtime_checkable
class Model(Protocol):
    @property
    def subject(self) -> Subject: ...

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> Completion:
        """Return one reply to the turns. It follows the JSON schema if one is given.

        The cost is charged with `spending.charge`.
        """
        ...

    def highest_cost(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> float | None:
        """Return the most that `complete` can cost with these turns, in dollars; None if that is unknown."""
        ...


@runtime_checkable
class Embedder(Protocol):
    @property
    def subject(self) -> Subject: ...

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...
