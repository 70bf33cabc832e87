"""The test double of a provider: keeps sessions in memory, or returns what a function returns; logs each call."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from memorybench.core.contracts import Receipt, Scope
from memorybench.core.conversation import Memory, Session
from memorybench.core.errors import NotReady
from memorybench.core.trials import Subject

from .storage.turns import StoredTurn, stored_turns

Recall = Callable[[Scope, str, int], Sequence[Memory]]
Hook = Callable[[str, Scope], Awaitable[None]]

_WORD = re.compile(r"\w+")


class ScriptedProvider:
    """A session is found only after `wait_until_searchable`: a suite that forgets to wait finds nothing."""

    def __init__(self, subject: Subject, store_id: str, recall: Recall | None, ledger: int | None, hook: Hook | None):
        self.subject = subject
        self.store_id = store_id
        self._recall = recall
        self._ledger = ledger
        self._hook = hook
        self._added: dict[str, dict[str, Session]] = {}
        self._searchable: dict[str, dict[str, list[StoredTurn]]] = {}

    async def add(self, scope: Scope, session: Session) -> Receipt:
        await self._begin("add", scope, session=session.id)
        self._added.setdefault(scope.name, {})[session.id] = session
        return Receipt(ids=(session.id,))

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        await self._begin("wait_until_searchable", scope)
        added, searchable = self._added.get(scope.name, {}), self._searchable.setdefault(scope.name, {})
        for session_id in (session_id for receipt in receipts for session_id in receipt.ids):
            if session_id not in added:
                raise NotReady(f'scripted provider: session "{session_id}" was never added to {scope.name}')
            searchable[session_id] = stored_turns(added[session_id])

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        await self._begin("search", scope, query=query)
        if self._recall is not None:
            return self._recall(scope, query, limit)
        words = _words(query)
        matches = [(len(words & _words(turn.text)), turn) for turn in self._turns(scope)]
        matches = sorted((match for match in matches if match[0]), key=lambda match: -match[0])
        return [turn.as_memory(float(score)) for score, turn in matches[:limit]]

    async def list(self, scope: Scope) -> Sequence[Memory]:
        await self._begin("list", scope)
        return [turn.as_memory() for turn in self._turns(scope)]

    async def clear(self, scope: Scope) -> None:
        await self._begin("clear", scope)
        self._added.pop(scope.name, None)
        self._searchable.pop(scope.name, None)

    def _turns(self, scope: Scope) -> Sequence[StoredTurn]:
        sessions = self._searchable.get(scope.name, {})
        return [turn for session_id in sorted(sessions) for turn in sessions[session_id]]

    async def _begin(self, op: str, scope: Scope, **details: str) -> None:
        if self._ledger is not None:
            line = json.dumps({"op": op, "scope": scope.name, **details}) + "\n"
            os.write(self._ledger, line.encode())  # O_APPEND and one write: lines of processes do not mix
        if self._hook is not None:
            await self._hook(op, scope)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


@asynccontextmanager
async def open_scripted(
    *,
    recall: Recall | None = None,
    ledger: Path | None = None,
    hook: Hook | None = None,
    store_id: str | None = None,
    name: str = "scripted",
) -> AsyncIterator[ScriptedProvider]:
    """Open the double.

    `recall` answers every search instead of the stored sessions. `ledger` gets a JSON line at the start of each call.
    `hook` is awaited next, to delay or to raise.
    """
    journal = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) if ledger is not None else None
    try:
        subject = Subject(role="provider", name=name)
        yield ScriptedProvider(subject, store_id or secrets.token_hex(16), recall, journal, hook)
    finally:
        if journal is not None:
            os.close(journal)
