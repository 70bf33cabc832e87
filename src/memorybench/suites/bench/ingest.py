"""Fills a scope once, for every question on it, and clears it after the last."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any

from memorybench.vocabulary.contracts import Provider, Receipt, Scope
from memorybench.vocabulary.conversation import Haystack, Session
from memorybench.vocabulary.errors import MemorybenchError
from memorybench.vocabulary.plans import Steps
from memorybench.vocabulary.questions import Dataset
from memorybench.vocabulary.records import Record, digest

_BEGINNING = datetime.min.replace(tzinfo=UTC)


class Cleared(Record):
    leaked: str | None = None
    """Why the scope could not be cleared; None: it was."""


class Ingest:
    """One provider and one dataset: which haystacks are in the memory, and who still needs them."""

    def __init__(self, run: str, dataset: Dataset, provider: Provider, spends: bool, pending: Counter[str]) -> None:
        self._run = run
        self._dataset = dataset
        self._provider = provider
        self._spends = spends
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
        receipts = []
        for session in in_order(self._dataset.haystack(id)):
            receipts.append(
                await steps.once(
                    "add",
                    {**store, "session": digest(session)},
                    partial(provider.add, scope, session),
                    Receipt,
                    on=provider.subject,
                    paid=self._spends,
                )
            )
        await steps.once(
            "settle",
            {**store, "receipts": digest(receipts)},
            lambda: provider.settle(scope, receipts),
            type(None),
            on=provider.subject,
        )

    async def leave(self, steps: Steps, haystack: str) -> None:
        """A question is settled; after the last one of its haystack the memory is cleared."""
        self._pending[haystack] -= 1
        if self._pending[haystack] <= 0:
            await self.clear(steps, haystack)

    async def clear(self, steps: Steps, haystack: str) -> None:
        scope = self.scope(haystack)
        store = self._store(steps, scope)
        first = next(iter(in_order(self._dataset.haystack(haystack))), None)
        if first is None or not steps.recorded("add", {**store, "session": digest(first)}):
            return  # nothing was put there
        cleared = await steps.once("clear", store, lambda: self._cleared(scope), Cleared, on=self._provider.subject)
        self._filling.pop(haystack, None)
        if cleared.leaked:
            await steps.note("leaked scope", f"{scope.provider} {scope.name}: {cleared.leaked}")

    async def _cleared(self, scope: Scope) -> Cleared:
        try:
            await self._provider.clear(scope)
        except MemorybenchError as error:
            return Cleared(leaked=str(error))  # the figures stand; the report tells what was left behind
        return Cleared()

    def _store(self, steps: Steps, scope: Scope) -> dict[str, Any]:
        """What an `add` was put into. After a clear, or in a new incarnation, the same session is added anew."""
        for generation in count():
            store = {"scope": scope.name, "incarnation": self._provider.incarnation, "generation": generation}
            if not steps.recorded("clear", store):
                break
        return store


def in_order(haystack: Haystack) -> Sequence[Session]:
    """By date, as they happened: a memory that updates would be corrupted otherwise. Undated ones keep their place."""
    if any(session.at is None for session in haystack.sessions):
        return haystack.sessions
    return sorted(haystack.sessions, key=lambda session: _comparable(session.at))


def _comparable(at: datetime | None) -> datetime:
    if at is None:
        return _BEGINNING
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def still_pending(questions: Sequence[tuple[str, str]], scored: Collection[str]) -> Counter[str]:
    """From (trial key, haystack) pairs: how many questions each haystack still has to answer."""
    return Counter(haystack for trial, haystack in questions if trial not in scored)
