"""The protocols that packages implement for each other. Scripted test doubles exist for providers and models."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

from .conversation import Memory, Session, Turn
from .records import Record, digest
from .spending import Spending
from .trials import Subject


class Scope(Record):
    """Names the separate part of a provider's memory in which a run stores one haystack.

    A search in one scope must not return memories of another.
    """

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
    """Return the name of a scope. Cached, because every question about a haystack needs the same name."""
    readable = "".join(c if c.isascii() and c.isalnum() else "-" for c in f"{scope.run}-{scope.haystack}")
    return f"{readable[:43]}-{digest(scope)[:16]}"


class Receipt(Record):
    """What `Provider.add` returns. `Provider.wait_until_searchable` gets it back, to know what to wait for."""

    ids: tuple[str, ...] = ()
    captured: Mapping[str, Any] = {}


class Completion(Record):
    text: str
    finish: str
    """Why the model stopped: "stop", "length", "filter" or "tools"; for another reason, the server's word for it."""
    model: str
    """The name of the model according to the server's reply; it may include a version."""
    spent: Spending = Spending()


@runtime_checkable
class Provider(Protocol):
    """A memory system under test. It sees neither prompts nor gold answers."""

    @property
    def subject(self) -> Subject: ...

    @property
    def store_id(self) -> str:
        """An id of the stored data. It changes when the data is lost, so that a resumed run adds the sessions again.

        A hosted service has a constant id, a store on disk keeps its id with the data, and a store in memory has a new
        id each time it is opened.
        """
        ...

    async def add(self, scope: Scope, session: Session) -> Receipt: ...

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        """Wait until the sessions of all receipts can be found. Raise NotReady if that takes too long."""
        ...

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]: ...

    async def clear(self, scope: Scope) -> None: ...


@runtime_checkable
class Batching(Protocol):
    """A provider that can add several sessions of one scope in a single call."""

    @property
    def batch_size(self) -> int | None:
        """The most sessions per call; None if there is no limit, which also says that the memory is in this process."""
        ...

    async def add_batch(self, scope: Scope, sessions: Sequence[Session]) -> Receipt: ...


@runtime_checkable
class Restoring(Protocol):
    """A provider that needs the receipts of sessions that an earlier process added."""

    def restore(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        """Accept the receipts of all sessions that earlier processes added to the scope, without any request.

        Called before this process first uses the scope.
        """
        ...


@runtime_checkable
class Listing(Protocol):
    """A provider that can list all memories of a scope."""

    async def list(self, scope: Scope) -> Sequence[Memory]: ...


@runtime_checkable
class LiveMemory(Protocol):
    """A provider whose memory exists outside the run, such as a hosted account, so that it may contain other data."""

    async def count_memories(self, scope: Scope) -> int | None:
        """Return the number of memories in a scope; None if it is unknown.

        Called before the first add, to refuse a scope that is not empty. Create the scope if the service needs that.
        """
        ...


@runtime_checkable
class Model(Protocol):
    @property
    def subject(self) -> Subject: ...

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> Completion:
        """Return the model's reply to the turns. With `schema`, ask for JSON that matches this JSON Schema.

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
