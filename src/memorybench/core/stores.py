"""The protocol of memory stores that hygiene scenarios use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

from .records import Record
from .trials import Subject

Capability = Literal[
    "update", "forget", "recall", "list", "curate", "trust", "retrieval_count", "category", "users", "history", "files",
    "sql", "get", "home",
]  # fmt: skip
"""What a store supports beyond `remember`. trust, retrieval_count, category: it stores them; a fixture may set them.
users: it separates users. history: it returns earlier versions of facts. files: all data is in its folder, so that a
copy of the folder is a copy of the store. sql: the folder contains SQLite files that can be queried.
get: it is a `Getting` store. home: the folder is the private home of an agent that writes its own memory files."""

Isolation = Literal["folder", "user", "none"]
"""What keeps the data of a run apart from other data. folder: the run creates the store in a folder of its own.
user: the store is live, and the run writes for users that no one else has. none: the store is live, and whatever it
contains is read and changed."""


class NewFact(Record):
    """A fact to store. `trust` and `retrieval_count` are set only by the prepared facts of a scenario."""

    content: str
    category: str | None = None
    source: str | None = None
    trust: float | None = None
    retrieval_count: int | None = None


class StoredFact(NewFact):
    """A fact in a store. A field is None if the store does not report it."""

    id: str


class Proposal(Record):
    """One change that a curator of a memory proposes or has made."""

    action: Literal["delete", "merge"]
    ids: tuple[str, ...]
    """The ids of the facts to remove."""
    kept: str | None = None
    """The fact that replaces them; None if none does."""
    reason: str = ""


class Curation(Record):
    applied: bool
    proposals: tuple[Proposal, ...] = ()


class MemoryStore(Protocol):
    """A memory in its own folder, opened with `async with`. Opening the same folder again starts a new session.

    An operation that the store does not support raises `Lacking`. A write that the store refuses raises `Refused`; any
    other failure raises `ServiceError`.
    """

    @property
    def subject(self) -> Subject: ...

    @property
    def capabilities(self) -> frozenset[Capability]: ...

    async def remember(self, user: str, fact: NewFact) -> str:
        """Store a fact, as an agent would, and return its id."""
        ...

    async def update(self, user: str, id: str, content: str) -> str:
        """Change a fact and return its new id."""
        ...

    async def forget(self, user: str, id: str) -> None: ...

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        """Return the facts that match a query, best first, as an agent would get them. Counts as a retrieval."""
        ...

    async def list(self, user: str) -> Sequence[StoredFact]:
        """Return all facts. Does not count as a retrieval."""
        ...

    async def curate(self, user: str, *, apply: bool) -> Curation: ...

    async def history(self, user: str) -> Sequence[str]:
        """Return every text of changed or forgotten facts that the store still keeps."""
        ...


@runtime_checkable
class Getting(Protocol):
    """A store that can read one fact by its id."""

    async def get(self, user: str, id: str) -> StoredFact | None:
        """Return the fact with this id; None if there is none. Some stores raise ServiceError instead."""
        ...


@runtime_checkable
class Clearing(Protocol):
    """A store that can delete all facts of a user at once."""

    async def clear(self, user: str) -> None: ...
