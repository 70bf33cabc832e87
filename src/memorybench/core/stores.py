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
"""What a store supports in addition to `remember`.

update, forget, recall, list, curate, history: it supports this method of MemoryStore.
trust, retrieval_count, category: it stores this field of a fact, and a scenario may prepare facts with it.
users: it keeps the facts of different users apart.
files: all its data is in its folder, so that a copy of the folder is a copy of the store.
sql: its folder contains SQLite files that a scenario can query.
get: it is a `Getting` store.
home: its folder is the home folder of an agent that writes its own memory files.
"""

Isolation = Literal["folder", "user", "none"]
"""What separates the data of a run from other data in a store.

folder: the run creates the store in a new folder.
user: the store exists already, and the run uses new user names.
none: the store exists already, and the run reads and changes whatever the store contains.
"""


class NewFact(Record):
    """A fact to store. Only facts that a scenario prepares before it begins have `trust` and `retrieval_count`."""

    content: str
    category: str | None = None
    source: str | None = None
    trust: float | None = None
    retrieval_count: int | None = None


class StoredFact(NewFact):
    """A fact in a store. A field is None if the store does not report it."""

    id: str


class Proposal(Record):
    """A deletion or merge of facts that a store's `curate` operation proposes or has made."""

    action: Literal["delete", "merge"]
    ids: tuple[str, ...]
    """The ids of the facts to remove."""
    kept: str | None = None
    """The id of the fact that stays in place of the removed facts; None if there is none."""
    reason: str = ""


class Curation(Record):
    applied: bool
    proposals: tuple[Proposal, ...] = ()


class MemoryStore(Protocol):
    """A memory store, opened with `async with`. Opening its folder again starts a new session with the same facts.

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
        """Change the content of a fact and return its id, which may be a new one."""
        ...

    async def forget(self, user: str, id: str) -> None: ...

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        """Return at most `limit` facts that match a query, best first. The store may count this as a retrieval."""
        ...

    async def list(self, user: str) -> Sequence[StoredFact]:
        """Return all facts of a user. The store must not count this as a retrieval."""
        ...

    async def curate(self, user: str, *, apply: bool) -> Curation: ...

    async def history(self, user: str) -> Sequence[str]:
        """Return the earlier texts of changed facts and the texts of forgotten facts that the store still keeps."""
        ...


@runtime_checkable
class Getting(Protocol):
    """A store that can read one fact by its id."""

    async def get(self, user: str, id: str) -> StoredFact | None:
        """Return the fact with this id. If there is none, return None or raise ServiceError, depending on the store."""
        ...


@runtime_checkable
class Clearing(Protocol):
    """A store that can delete all facts of a user at once."""

    async def clear(self, user: str) -> None: ...
