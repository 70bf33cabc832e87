"""What the rooms promise each other. Scripted doubles of Provider and Model ship beside their real kin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from .conversation import Memory, Session, Turn
from .records import Record, digest
from .spending import Spending
from .trials import Subject


class Scope(Record):
    """Whose memory is meant. Always carries run, benchmark, provider and haystack, so that none ever mix."""

    run: str
    benchmark: str
    provider: str
    haystack: str

    @property
    def name(self) -> str:
        """Deterministic, and safe as an id in every store: letters, digits and hyphens, at most 60 characters."""
        readable = "".join(c if c.isascii() and c.isalnum() else "-" for c in f"{self.run}-{self.haystack}")
        return f"{readable[:43]}-{digest(self)[:16]}"


class Receipt(Record):
    """What a provider answered to an add, and needs to tell when it is searchable."""

    ids: tuple[str, ...] = ()
    captured: Mapping[str, Any] = {}


class Completion(Record):
    text: str
    finish: str
    """Why the model stopped: "stop", "length", "filter", "tools", or what the server said."""
    model: str
    """The version that the server reports."""
    spent: Spending = Spending()


@runtime_checkable
class Provider(Protocol):
    """A memory system under test. It sees neither prompts nor gold answers."""

    @property
    def subject(self) -> Subject: ...

    @property
    def store_id(self) -> str:
        """What was added lives as long as this stays the same.

        A constant for a hosted service, stored with the data by a store on disk, new at every opening
        for a store in memory: so a vanished store is filled again and never searched empty.
        """
        ...

    async def add(self, scope: Scope, session: Session) -> Receipt: ...

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        """Returns when every receipt is searchable, or raises."""
        ...

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]: ...

    async def clear(self, scope: Scope) -> None: ...


@runtime_checkable
class Batching(Protocol):
    """A provider that can take several sessions of one scope in a single call."""

    @property
    def batch_size(self) -> int: ...

    async def add_batch(self, scope: Scope, sessions: Sequence[Session]) -> Receipt: ...


@runtime_checkable
class Restoring(Protocol):
    """A provider that must know what an earlier process was told when it added."""

    def restore(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        """Comes before the first search of a process that did not add everything itself. Sends nothing."""
        ...


@runtime_checkable
class Listing(Protocol):
    """A provider or store that can say all it holds."""

    async def list(self, scope: Scope) -> Sequence[Memory]: ...


@runtime_checkable
class Model(Protocol):
    @property
    def subject(self) -> Subject: ...

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> Completion:
        """One reply. With a JSON schema, a reply that follows it. Charges what it spent (`spending.charge`)."""
        ...


@runtime_checkable
class Embedder(Protocol):
    @property
    def subject(self) -> Subject: ...

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...
