"""Fills a scope once, for every question on it, and clears it after the last."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import count, takewhile
from typing import Any, Protocol, cast

from memorybench.core.contracts import Batching, Provider, Receipt, Restoring, Scope
from memorybench.core.conversation import Haystack, Memory, Session
from memorybench.core.errors import Denied, JournalError, ServiceError
from memorybench.core.plans import Steps
from memorybench.core.records import Record, digest

_BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """How sessions are handed over."""

    by_turn: bool = False
    """One add for each turn instead of each session."""
    unordered: bool = False
    """The provider takes sessions of one scope side by side and in any order."""
    batch_size: int | None = None
    """Sessions in a batch at most, for a provider that takes batches; None: as many as it takes."""
    delay: float = 0.0
    """Seconds between two adds or batches, for providers that are reached over a network."""


DEFAULT_INGEST_OPTIONS = IngestOptions()


class Haystacks(Protocol):
    """What an ingest must know of a dataset."""

    @property
    def name(self) -> str: ...

    def haystack(self, id: str) -> Haystack: ...


class Retrieved(Record):
    memories: tuple[Memory, ...]


class _Add:
    """One call that hands sessions over."""

    def __init__(self, sessions: Sequence[Session], store: Mapping[str, Any]) -> None:
        self.sessions = sessions
        self._store = store

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """What its step is recorded under. Not worked out before its turn comes: the first requests leave sooner."""
        if len(self.sessions) == 1:
            return {**self._store, "session": digest(self.sessions[0])}
        return {**self._store, "sessions": [digest(session) for session in self.sessions]}


class Ingest:
    """One provider and one dataset: which haystacks are in the memory, and who still needs them."""

    def __init__(
        self,
        run: str,
        dataset: Haystacks,
        provider: Provider,
        spends: bool,
        ingest_options: IngestOptions,
        pending: Counter[str],
    ) -> None:
        self._run = run
        self._dataset = dataset
        self._provider = provider
        # asked once: to tell whether an object follows a protocol takes longer than many a step
        self._batching = provider if isinstance(provider, Batching) else None
        self._restoring = provider if isinstance(provider, Restoring) else None
        self._spends = spends
        self._ingest_options = ingest_options
        self._pending = pending
        """By haystack: questions that are not settled yet."""
        self._contents: dict[str, str] = {}
        self._filling: dict[str, asyncio.Task[None]] = {}
        self._held: set[str] = set()
        """Haystacks of which the memory holds something, and the provider knows all that there is to know of it."""
        self._cleared: set[str] = set()

    def scope(self, haystack: str) -> Scope:
        return Scope(
            run=self._run, benchmark=self._dataset.name, provider=self._provider.subject.name, haystack=haystack
        )

    async def search(self, steps: Steps, haystack: str, query: str, limit: int) -> Sequence[Memory]:
        """What the memory finds, best first. It is filled before the first search, and not at all where every search
        is on record."""
        provider, scope = self._provider, self.scope(haystack)

        async def search() -> Retrieved:
            found = await provider.search(scope, query, limit)
            return Retrieved(memories=tuple(found[:limit]))

        retrieved = await steps.once(
            "search",
            # what was searched, not where: so another run may reuse it
            {"provider": provider.subject, "haystack": self._content(haystack), "query": query, "limit": limit},
            search,
            Retrieved,
            on=provider.subject,
            paid=self._spends,
            after=lambda: self.fill(steps, haystack),
        )
        return retrieved.memories

    def _content(self, haystack: str) -> str:
        """The digest of all that the memory is told; worked out once."""
        found = self._contents.get(haystack)
        if found is None:
            found = self._contents[haystack] = digest(self._dataset.haystack(haystack))
        return found

    async def fill(self, steps: Steps, haystack: str) -> None:
        """Returns when every session of the haystack is searchable. The first question to come does it for all."""
        filling = self._filling.get(haystack)
        if filling is None:
            filling = self._filling[haystack] = asyncio.create_task(self._fill(steps, haystack))
        await asyncio.shield(filling)

    async def _fill(self, steps: Steps, id: str) -> None:
        provider, scope = self._provider, self.scope(id)
        store = self._store(steps, scope)
        adds = self._adds(id, store)
        self._cleared.discard(id)
        known = await self._recall(steps, scope, adds)  # comes first: a later add may stand on it
        receipts: list[Receipt] = []
        if self._side_by_side:
            receipts = await _all([self._add(steps, scope, add) for add in adds])
        else:
            for place, add in enumerate(adds):
                if place and self._ingest_options.delay and add not in known:
                    await asyncio.sleep(self._ingest_options.delay)
                receipts.append(await self._add(steps, scope, add))
        self._restore(scope, receipts)
        await steps.once(
            "settle",
            {**store, "receipts": digest(receipts)},
            lambda: provider.wait_until_searchable(scope, receipts),
            type(None),
            on=provider.subject,
        )

    def _adds(self, id: str, store: Mapping[str, Any]) -> list[_Add]:
        sessions = in_order(self._dataset.haystack(id))
        if self._ingest_options.by_turn:
            sessions = [piece for session in sessions for piece in _by_turn(session)]
        size = self._batch_size
        batches = [sessions[start : start + size] for start in range(0, len(sessions), size)]
        return [_Add(batch, store) for batch in batches]

    @property
    def _side_by_side(self) -> bool:
        return self._ingest_options.unordered and not self._ingest_options.delay

    @property
    def _batch_size(self) -> int:
        if self._batching is None:
            return 1
        most = self._batching.batch_size
        return max(1, min(most, self._ingest_options.batch_size or most))

    async def _add(self, steps: Steps, scope: Scope, add: _Add) -> Receipt:
        work: Callable[[], Awaitable[Receipt]]
        if self._batching is None or len(add.sessions) == 1:
            (session,) = add.sessions
            work = partial(self._provider.add, scope, session)
        else:
            work = partial(self._batching.add_batch, scope, add.sessions)
        receipt = await steps.once("add", add.inputs, work, Receipt, on=self._provider.subject, paid=self._spends)
        self._held.add(scope.haystack)
        return receipt

    async def _recall(self, steps: Steps, scope: Scope, adds: Sequence[_Add]) -> Sequence[_Add]:
        """Hands the provider what it told an earlier process. Returns the adds that this process has made."""

        def recorded(add: _Add) -> bool:
            return steps.recorded("add", add.inputs)

        # one after the other: behind the first that is missing there is none
        known = list(filter(recorded, adds) if self._side_by_side else takewhile(recorded, adds))
        for add in known:
            self._restore(scope, [await self._add(steps, scope, add)])
        return known

    async def leave(self, steps: Steps, haystack: str) -> None:
        """A question is settled; after the last one of its haystack the memory is cleared."""
        self._pending[haystack] -= 1
        if self._pending[haystack] <= 0:
            await self.clear(steps, haystack)

    async def clear(self, steps: Steps, haystack: str) -> None:
        """Empties the memory. Should that fail, the figures stand, and the report tells what was left behind."""
        if haystack in self._cleared:
            return
        scope = self.scope(haystack)
        store = self._store(steps, scope)
        try:
            if haystack not in self._held:
                await self._recall(steps, scope, self._adds(haystack, store))
            if haystack in self._held:  # else nothing was put there
                # said before it is done: after a kill in between, an emptied memory must not count as filled
                await steps.once("clearing", store, _nothing, type(None))
                await steps.once("clear", store, lambda: self._emptied(scope), type(None), on=self._provider.subject)
        except JournalError:
            raise
        except Exception as error:
            await steps.note("leaked scope", f"{scope.provider} {scope.name}: {error}")
        finally:
            self._filling.pop(haystack, None)
            self._held.discard(haystack)
        self._cleared.add(haystack)

    async def _emptied(self, scope: Scope) -> None:
        try:
            await self._provider.clear(scope)
        except Denied as error:
            raise ServiceError(str(error)) from error  # who may not delete may still be asked

    def _restore(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        if self._restoring is not None:
            self._restoring.restore(scope, receipts)

    def _store(self, steps: Steps, scope: Scope) -> dict[str, Any]:
        """What an `add` was put into. After a clear, or in a new incarnation, the same session is added anew."""
        for generation in count():
            store = {"scope": scope.name, "incarnation": self._provider.store_id, "generation": generation}
            if not steps.recorded("clearing", store):
                break
        return store


async def _all(calls: Sequence[Awaitable[Receipt]]) -> list[Receipt]:
    """The results of calls side by side. Where one fails, the others are seen to their end all the same: nothing may
    still be on its way to a memory that is cleared then."""
    ended = await asyncio.gather(*calls, return_exceptions=True)
    for end in ended:
        if isinstance(end, BaseException):
            raise end
    return cast("list[Receipt]", ended)


async def _nothing() -> None:
    pass


def in_order(haystack: Haystack) -> Sequence[Session]:
    """By date, as they happened: a memory that updates would be corrupted otherwise. Undated ones keep their place."""
    if any(session.at is None for session in haystack.sessions):
        return haystack.sessions
    return sorted(haystack.sessions, key=lambda session: _comparable(session.at))


def _by_turn(session: Session) -> list[Session]:
    """A session of one turn for each turn, which keeps its id: evidence names turns."""
    return [
        Session(
            id=f"{session.id}#{n}",
            turns=(turn.model_copy(update={"id": turn.id or f"{session.id}:{n}"}),),
            at=turn.at or session.at,
        )
        for n, turn in enumerate(session.turns, 1)
    ]


def _comparable(at: datetime | None) -> datetime:
    if at is None:
        return _BEGINNING
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def still_pending(questions: Sequence[tuple[str, str]], scored: Collection[str]) -> Counter[str]:
    """From (trial key, haystack) pairs: how many questions each haystack still has to answer."""
    return Counter(haystack for trial, haystack in questions if trial not in scored)
