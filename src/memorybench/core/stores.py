"""What hygiene drives: a memory that is written, changed and searched by six operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from .records import Record
from .trials import Subject

Capability = Literal[
    "update", "forget", "recall", "list", "curate", "trust", "retrieval_count", "category", "users", "history", "files",
    "sql",
]  # fmt: skip
"""What a store can do beyond `remember`. trust, retrieval_count and category: it keeps them, and a fixture may pin
them. users: it keeps people apart. history: it tells what became of a fact. files: all it knows lies in its folder,
so that a copy of the folder is a copy of the store. sql: that folder holds SQLite files that may be queried."""


class NewFact(Record):
    """What a fixture or an agent puts into memory; the last two only where a fixture pins them."""

    content: str
    category: str | None = None
    source: str | None = None
    trust: float | None = None
    retrieval_count: int | None = None


class StoredFact(NewFact):
    """What a store holds. None: it does not say."""

    id: str


class Proposal(Record):
    """One thing that a curator would do, or has done."""

    action: Literal["delete", "merge"]
    ids: tuple[str, ...]
    """What goes."""
    kept: str | None = None
    """What stays in its place."""
    reason: str = ""


class Curation(Record):
    applied: bool
    proposals: tuple[Proposal, ...] = ()


class MemoryStore(Protocol):
    """One memory, opened on a folder of its own (`async with`); opened again on that folder, it is a new session.

    An operation the store lacks raises `Lacking`. A write that it declines raises `Refused`, and nothing else does: a
    crash or a mistyped name is a `ServiceError`.
    """

    @property
    def subject(self) -> Subject: ...

    @property
    def capabilities(self) -> frozenset[Capability]: ...

    async def remember(self, user: str, fact: NewFact) -> str:
        """The id of what was written, through the same path an agent's write takes; pins what the fact pins."""
        ...

    async def update(self, user: str, id: str, content: str) -> str:
        """The id it has from now on."""
        ...

    async def forget(self, user: str, id: str) -> None: ...

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        """Best first, as an agent would see it: where the store counts retrievals, this is one."""
        ...

    async def list(self, user: str) -> Sequence[StoredFact]:
        """All it holds. Counts as no retrieval: looking must not change what is looked at."""
        ...

    async def curate(self, user: str, *, apply: bool) -> Curation: ...

    async def history(self, user: str) -> Sequence[str]:
        """Every text the store still keeps of facts that were changed or forgotten."""
        ...
