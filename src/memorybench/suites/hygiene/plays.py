"""Opens the store for one play: a script or procedure is performed once, and its data is deleted afterwards.

A store that the run creates has a new folder for each play. A live store is shared with others, so a play on it uses
new user names, changes only facts that it wrote, and deletes them at the end.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, field

from memorybench.core.errors import BadInput, Lacking, MemorybenchError, ServiceError
from memorybench.core.plans import Limits, Steps
from memorybench.core.stores import Capability, Clearing, Curation, Getting, Isolation, MemoryStore, NewFact, StoredFact
from memorybench.core.trials import Subject
from memorybench.processes.programs import temporary_folder
from memorybench.suites.wiring import ResolvedStore
from memorybench.text.sanitize import preview

from .evidence import OpenStore
from .script import USER

T = TypeVar("T")


class Store(Struct, frozen=True):
    """The store under test, and the function that opens it on a folder."""

    subject: Subject
    open: OpenStore
    isolation: Isolation = "folder"
    capabilities: frozenset[Capability] = frozenset()

    @property
    def limits(self) -> dict[str, Limits]:
        """Limits for the run: one play at a time if the store separates neither folders nor users."""
        return {self.subject.key: Limits(concurrency=1)} if self.isolation == "none" else {}

    async def play(
        self,
        steps: Steps,
        name: str,
        inputs: Mapping[str, Any],
        work: Callable[[OpenStore], Awaitable[T]],
        returns: type[T],
        *,
        run: str,
        users: Collection[str],
        on: Subject | None = None,
        paid: bool = False,
    ) -> T:
        """Perform one play as a recorded step; `work` gets the function that opens the store for this play.

        `run` is the id of the run, `users` are all users that the play may write for.
        """
        scope, is_repeated = "", False

        async def claim_scope() -> None:
            # recorded, so that a resumed run can delete what a killed one left
            nonlocal scope, is_repeated
            if self.isolation == "user":
                is_repeated = steps.is_recorded("scope", {"run": run, **inputs})
                scope = await steps.once("scope", {"run": run, **inputs}, _make_scope, str)

        async def perform() -> T:
            if self.isolation == "folder":
                return await work(self.open)
            report_leak, leftovers = partial(steps.note, "leaked scope"), users if is_repeated else ()
            async with open_live(self, scope, report_leak, leftovers) as open_store:
                return await work(open_store)

        return await steps.once(name, inputs, perform, returns, on=on or self.subject, paid=paid, after=claim_scope)


async def open_subject(store: ResolvedStore, *, allow_used: bool = False) -> Store:
    """Return the store under test. Open it once, because only an open store knows its version.

    Raise BadInput if a live store is not empty, unless `allow_used` is true.
    """
    with temporary_folder("memorybench-") as folder:
        async with store.open(folder) as opened:
            if not allow_used:
                await check_unused(opened, store.isolation)
            return Store(opened.subject, store.open, store.isolation, opened.capabilities)


async def _make_scope() -> str:
    return new_scope()


def new_scope() -> str:
    """Return a random prefix for user names that nobody else uses."""
    return f"memorybench-{secrets.token_hex(8)}"


async def check_unused(store: MemoryStore, isolation: Isolation) -> None:
    """Raise BadInput if a live store already lists facts for a user that a play would write for."""
    if isolation == "folder" or "list" not in store.capabilities:
        return
    user = f"{new_scope()}-{USER}" if isolation == "user" else USER
    facts = await store.list(user)
    if facts:
        raise BadInput(
            f'store "{store.subject.name}"',
            f"already has {len(facts)} entries{' for a user that does not exist' if isolation == 'user' else ''}",
            expected="no entries before the first write",
            remedy="use an empty store; nothing was written to this one",
        )
    if isolation == "user" and isinstance(store, Clearing) and not _can_forget(store):
        await store.clear(user)  # some services create a user when they list it


@asynccontextmanager
async def open_live(
    store: Store, scope: str, report_leak: Callable[[str], Awaitable[object]], leftovers: Collection[str] = ()
) -> AsyncIterator[OpenStore]:
    """Yield a function that opens a live store for one play; delete the facts of the play at the end.

    `scope` is the prefix of user names. `leftovers` are users of an interrupted play with the same scope; their facts
    are deleted first. If facts cannot be deleted at the end, `report_leak` is called with a message.
    """
    used = _UsedPart(scope)
    with temporary_folder("memorybench-live-") as folder:
        if leftovers:
            for user in leftovers:
                used.name(user)
            await _clear(store, used, folder)
        try:
            yield partial(_open, store, used)
        finally:
            try:
                await _clear(store, used, folder)
            except MemorybenchError as error:
                await report_leak(f"{store.subject.name} {', '.join(sorted(used.users))}: {error}")


class _UsedPart(Struct):
    """The part of a live store that one play uses."""

    scope: str
    """Prefix of each user name; "" if the store does not separate users."""
    users: set[str] = field(default_factory=set)
    """Names of all users that the play used, with the prefix. Some services create a user when a call names it."""
    checked: set[str] = field(default_factory=set)
    """Users of whom it was checked that they had no facts before the play wrote for them."""
    ids: set[str] = field(default_factory=set)
    """Ids of the facts that the play has written."""
    folder: Path | None = None
    """The folder of the fixture that the facts belong to."""

    def name(self, user: str) -> str:
        name = f"{self.scope}-{user}" if self.scope else user
        self.users.add(name)
        return name


@asynccontextmanager
async def _open(store: Store, used: _UsedPart, folder: Path) -> AsyncIterator[MemoryStore]:
    async with store.open(folder) as opened:
        if used.folder not in (None, folder):  # the play builds its fixture again
            await _clear_users(opened, used)
        used.folder = folder
        yield _LiveStore(opened, used)


async def _clear(store: Store, used: _UsedPart, folder: Path) -> None:
    if used.users:
        async with store.open(folder) as opened:
            await _clear_users(opened, used)


async def _clear_users(store: MemoryStore, used: _UsedPart) -> None:
    """Delete all facts of the users of the play.

    Nothing is deleted if the store can neither delete facts nor clear a user.
    """
    for user in sorted(used.users):
        if _can_forget(store):  # one by one, because a server may ignore the user of a clear
            for fact in await store.list(user):
                await store.forget(user, fact.id)
            if left := await store.list(user):
                raise ServiceError(
                    f"the store still lists {len(left)} entries after all entries of the user were deleted"
                )
        elif isinstance(store, Clearing):
            await store.clear(user)
    used.users.clear()
    used.checked.clear()
    used.ids.clear()


def _can_forget(store: MemoryStore) -> bool:
    return {"list", "forget"} <= store.capabilities


class _LiveStore:
    """A live store, limited to one play: renames users and rejects the ids of facts that are not of the play."""

    def __init__(self, store: MemoryStore, used: _UsedPart) -> None:
        self.subject = store.subject
        self.capabilities: frozenset[Capability] = store.capabilities - {"files", "sql"}
        self._store = store
        self._used = used

    async def remember(self, user: str, fact: NewFact) -> str:
        id = await self._store.remember(await self._claim(user), fact)
        self._used.ids.add(id)
        return id

    async def update(self, user: str, id: str, content: str) -> str:
        await self._check_own(id)
        id = await self._store.update(self._used.name(user), id, content)
        self._used.ids.add(id)
        return id

    async def forget(self, user: str, id: str) -> None:
        await self._check_own(id)
        await self._store.forget(self._used.name(user), id)

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        return await self._store.recall(self._used.name(user), query, limit)

    async def curate(self, user: str, *, apply: bool) -> Curation:
        return await self._store.curate(await self._claim(user) if apply else self._used.name(user), apply=apply)

    async def history(self, user: str) -> Sequence[str]:
        return await self._store.history(self._used.name(user))

    async def get(self, user: str, id: str) -> StoredFact | None:
        if not isinstance(self._store, Getting):
            raise Lacking(f"{self.subject.name} does not support get")
        await self._check_own(id)
        return await self._store.get(self._used.name(user), id)

    async def _claim(self, user: str) -> str:
        """Return the name of a user in the store. Before the first write, raise ServiceError if this user has facts."""
        name = self._used.name(user)
        if name not in self._used.checked:
            if "list" in self.capabilities and (facts := await self._store.list(name)):
                raise ServiceError(
                    f'store "{self.subject.name}" already has {len(facts)} entries of the new user {name}; expected 0'
                )
            self._used.checked.add(name)
        return name

    async def _check_own(self, id: str) -> None:
        """Raise ServiceError if the play did not write the fact and none of its users has it. Agents may guess ids."""
        if id in self._used.ids:
            return
        for user in sorted(self._used.checked) if "list" in self.capabilities else ():
            if any(fact.id == id for fact in await self._store.list(user)):
                return
        raise ServiceError(f"{self.subject.name}: unknown fact id {preview(id)}")

    # last, because its name hides the type `list` in the annotations above
    async def list(self, user: str) -> Sequence[StoredFact]:
        return await self._store.list(self._used.name(user))
