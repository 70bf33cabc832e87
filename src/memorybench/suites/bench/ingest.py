"""Fills a scope once, for every question on it, and clears it after the last."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any

from memorybench.vocabulary.contracts import Batching, Provider, Receipt, Restoring, Scope
from memorybench.vocabulary.conversation import Haystack, Session
from memorybench.vocabulary.errors import Denied, JournalError, ServiceError
from memorybench.vocabulary.plans import Steps
from memorybench.vocabulary.questions import Dataset
from memorybench.vocabulary.records import digest

_BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Feeding:
    """How sessions are handed over."""

    by_turn: bool = False
    """One add for each turn instead of each session."""
    unordered: bool = False
    """The provider takes sessions of one scope side by side and in any order."""
    batch_size: int = 1
    """Sessions in a batch, for a provider that takes batches; it may ask for fewer."""
    delay: float = 0.0
    """Seconds between two adds or batches, for providers that are reached over a network."""


USUAL_FEEDING = Feeding()


class Ingest:
    """One provider and one dataset: which haystacks are in the memory, and who still needs them."""

    def __init__(
        self, run: str, dataset: Dataset, provider: Provider, spends: bool, feeding: Feeding, pending: Counter[str]
    ) -> None:
        self._run = run
        self._dataset = dataset
        self._provider = provider
        self._spends = spends
        self._feeding = feeding
        self._pending = pending
        """By haystack: questions that are not settled yet."""
        self._filling: dict[str, asyncio.Task[None]] = {}

    def scope(self, haystack: str) -> Scope:
        return Scope(
            run=self._run, benchmark=self._dataset.name, provider=self._provider.subject.name, haystack=haystack
        )

    async def fill(self, steps: Steps, haystack: str) -> None:
        """Returns when every session of the haystack is searchable. The first question to come does it for all."""
        filling = self._filling.get(haystack)
        if filling is None:
            filling = self._filling[haystack] = asyncio.create_task(self._fill(steps, haystack))
        await asyncio.shield(filling)

    async def _fill(self, steps: Steps, id: str) -> None:
        provider, scope = self._provider, self.scope(id)
        store = self._store(steps, scope)
        batches = self._batches(id)
        known = [batch for batch in batches if self._recorded(steps, store, batch)]
        for batch in known:  # what an earlier process was told comes first: a later add may stand on it
            self._restore(scope, [await self._add(steps, scope, store, batch)])
        receipts: list[Receipt] = []
        if self._feeding.unordered and not self._feeding.delay:
            receipts = list(await asyncio.gather(*(self._add(steps, scope, store, batch) for batch in batches)))
        else:
            for place, batch in enumerate(batches):
                if place and self._feeding.delay and batch not in known:
                    await asyncio.sleep(self._feeding.delay)
                receipts.append(await self._add(steps, scope, store, batch))
        self._restore(scope, receipts)
        await steps.once(
            "settle",
            {**store, "receipts": digest(receipts)},
            lambda: provider.settle(scope, receipts),
            type(None),
            on=provider.subject,
        )

    def _batches(self, id: str) -> list[Sequence[Session]]:
        sessions = in_order(self._dataset.haystack(id))
        if self._feeding.by_turn:
            sessions = [piece for session in sessions for piece in _by_turn(session)]
        size = self._batch_size
        return [sessions[start : start + size] for start in range(0, len(sessions), size)]

    @property
    def _batch_size(self) -> int:
        if not isinstance(self._provider, Batching):
            return 1
        return max(1, min(self._provider.batch_size, self._feeding.batch_size))

    async def _add(self, steps: Steps, scope: Scope, store: Mapping[str, Any], batch: Sequence[Session]) -> Receipt:
        provider = self._provider
        if len(batch) == 1 or not isinstance(provider, Batching):
            (session,) = batch
            inputs, work = {**store, "session": digest(session)}, partial(provider.add, scope, session)
        else:
            inputs = {**store, "sessions": [digest(session) for session in batch]}
            work = partial(provider.add_batch, scope, batch)
        return await steps.once("add", inputs, work, Receipt, on=provider.subject, paid=self._spends)

    async def leave(self, steps: Steps, haystack: str) -> None:
        """A question is settled; after the last one of its haystack the memory is cleared."""
        self._pending[haystack] -= 1
        if self._pending[haystack] <= 0:
            await self.clear(steps, haystack)

    async def clear(self, steps: Steps, haystack: str) -> None:
        """Empties the memory. Should that fail, the figures stand, and the report tells what was left behind."""
        scope = self.scope(haystack)
        store = self._store(steps, scope)
        known = [batch for batch in self._batches(haystack) if self._recorded(steps, store, batch)]
        if not known:
            return  # nothing was put there
        try:
            for batch in known:
                self._restore(scope, [await self._add(steps, scope, store, batch)])
            # said before it is done: after a kill in between, an emptied memory must not count as filled
            await steps.once("clearing", store, _nothing, type(None))
            await steps.once("clear", store, lambda: self._cleared(scope), type(None), on=self._provider.subject)
        except JournalError:
            raise
        except Exception as error:
            await steps.note("leaked scope", f"{scope.provider} {scope.name}: {error}")
        finally:
            self._filling.pop(haystack, None)

    async def _cleared(self, scope: Scope) -> None:
        try:
            await self._provider.clear(scope)
        except Denied as error:
            raise ServiceError(str(error)) from error  # who may not delete may still be asked

    def _restore(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        if isinstance(self._provider, Restoring):
            self._provider.restore(scope, receipts)

    def _recorded(self, steps: Steps, store: Mapping[str, Any], batch: Sequence[Session]) -> bool:
        if len(batch) == 1:
            return steps.recorded("add", {**store, "session": digest(batch[0])})
        return steps.recorded("add", {**store, "sessions": [digest(session) for session in batch]})

    def _store(self, steps: Steps, scope: Scope) -> dict[str, Any]:
        """What an `add` was put into. After a clear, or in a new incarnation, the same session is added anew."""
        for generation in count():
            store = {"scope": scope.name, "incarnation": self._provider.incarnation, "generation": generation}
            if not steps.recorded("clearing", store):
                break
        return store


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
