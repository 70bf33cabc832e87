"""What assertions look at: the memory as a script or an agent left it, gathered without changing it."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from memorybench.core.records import Record
from memorybench.core.stores import Capability, MemoryStore, Proposal, StoredFact
from memorybench.secrets.decoding import text_in

OpenStore = Callable[[Path], AbstractAsyncContextManager[MemoryStore]]
"""Opens the store under test on a folder of its own."""

Op = Literal["remember", "update", "forget", "recall", "list", "curate", "restart"]

Picture = Mapping[str, tuple[StoredFact, ...]]
"""All that a store holds, by user."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The memory at one time, and the ids that a scenario's names stood for then."""

    held: Picture
    names: Mapping[str, str]


class Call(Record):
    """One thing that a script or an agent did with the store. `restart` begins a new session; it is no call."""

    op: Op
    user: str
    arguments: Mapping[str, Any] = {}
    ids: tuple[str, ...] = ()
    """What it wrote, or found, best first; of a curation: what goes."""
    texts: tuple[str, ...] = ()
    """What was found says."""
    refused: str | None = None
    """Why the store declined, in its own words."""
    error: str | None = None
    """What broke: the store, or its transport."""
    undone: str | None = None
    """Why it was never sent: the fact it is about was not found."""

    @property
    def done(self) -> bool:
        return self.refused is None and self.error is None and self.undone is None


@dataclass(frozen=True, slots=True)
class Evidence:
    store: MemoryStore
    """A copy, where the store can be copied."""
    users: tuple[str, ...]
    held: Picture
    history: tuple[str, ...] = ()
    files: Path | None = None
    """A copy of the store's folder that no store was ever opened on."""
    calls: tuple[Call, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    """By the name that a scenario gives: the id of a fact."""
    moments: Mapping[str, Moment] = field(default_factory=dict)
    planted: Mapping[str, str] = field(default_factory=dict)
    answers: tuple[str, ...] = ()
    """What a real agent said, prompt by prompt."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self.store.capabilities

    def facts(self, user: str | None) -> list[tuple[str, StoredFact]]:
        """Who, and what: of one user, or of all."""
        return [(who, fact) for who in self.users if user in (None, who) for fact in self.held.get(who, ())]

    def raw_texts(self) -> dict[str, str]:
        """Every file of the store, read as text whatever it is, and what all of them are called."""
        if self.files is None:
            return {}
        names = {path.relative_to(self.files).as_posix(): path for path in sorted(self.files.rglob("*"))}
        texts = {f"file {name}": text_in(path.read_bytes()) for name, path in names.items() if path.is_file()}
        return texts | {"names of files": "\n".join(names)}

    async def proposals(self) -> list[Proposal]:
        """What the curator would do."""
        curations = [await self.store.curate(user, apply=False) for user in self.users]
        return [proposal for curation in curations for proposal in curation.proposals]


async def picture(store: MemoryStore, users: Sequence[str]) -> Picture:
    if "list" not in store.capabilities:
        return {}
    return {user: tuple(await store.list(user)) for user in users}


@asynccontextmanager
async def copied(
    open_store: OpenStore, folder: Path, *, curated: Sequence[str] = ()
) -> AsyncIterator[tuple[MemoryStore, Path]]:
    """The store opened on a copy of its folder, and another copy that stays as it was; both are gone afterwards.

    The store must be closed, or idle: a copy of files that are being written is no picture of anything. `curated`: the
    people whose memory its curator puts right in both copies, before anybody looks.
    """
    with TemporaryDirectory(prefix="memorybench-look-") as scratch:
        untouched, played = Path(scratch, "files"), Path(scratch, "store")
        shutil.copytree(folder, played)
        if curated:
            async with open_store(played) as store:
                await curate(store, curated)
        shutil.copytree(played, untouched)
        async with open_store(played) as store:
            yield store, untouched


async def curate(store: MemoryStore, users: Iterable[str]) -> None:
    for user in users:
        await store.curate(user, apply=True)


async def history_of(store: MemoryStore, users: Sequence[str]) -> tuple[str, ...]:
    if "history" not in store.capabilities:
        return ()
    told: list[str] = []
    for user in users:
        told += await store.history(user)
    return tuple(told)
