"""The provider double: keeps sessions in memory, or answers what a function says, and writes down each call."""

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

from .turn_store import KeptTurn, kept_turns

Recall = Callable[[Scope, str, int], Sequence[Memory]]
Hook = Callable[[str, Scope], Awaitable[None]]

_WORD = re.compile(r"\w+")


class ScriptedProvider:
    """A session is found once it is settled, not before: a suite that forgets to settle finds nothing."""

    def __init__(self, subject: Subject, store_id: str, recall: Recall | None, ledger: int | None, hook: Hook | None):
        self.subject = subject
        self.store_id = store_id
        self._recall = recall
        self._ledger = ledger
        self._hook = hook
        self._added: dict[str, dict[str, Session]] = {}
        self._settled: dict[str, dict[str, list[KeptTurn]]] = {}

    async def add(self, scope: Scope, session: Session) -> Receipt:
        await self._begin("add", scope, session=session.id)
        self._added.setdefault(scope.name, {})[session.id] = session
        return Receipt(ids=(session.id,))

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        await self._begin("wait_until_searchable", scope)
        added, settled = self._added.get(scope.name, {}), self._settled.setdefault(scope.name, {})
        for session_id in (session_id for receipt in receipts for session_id in receipt.ids):
            if session_id not in added:
                raise NotReady(f'scripted provider: session "{session_id}" was never added to {scope.name}')
            settled[session_id] = kept_turns(added[session_id])

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        await self._begin("search", scope, query=query)
        if self._recall is not None:
            return self._recall(scope, query, limit)
        asked = _words(query)
        found = [(len(asked & _words(kept.said)), kept) for kept in self._held(scope)]
        found = sorted((pair for pair in found if pair[0]), key=lambda pair: -pair[0])
        return [kept.as_memory(float(shared)) for shared, kept in found[:limit]]

    async def list(self, scope: Scope) -> Sequence[Memory]:
        await self._begin("list", scope)
        return [kept.as_memory() for kept in self._held(scope)]

    async def clear(self, scope: Scope) -> None:
        await self._begin("clear", scope)
        self._added.pop(scope.name, None)
        self._settled.pop(scope.name, None)

    def _held(self, scope: Scope) -> Sequence[KeptTurn]:
        sessions = self._settled.get(scope.name, {})
        return [kept for session_id in sorted(sessions) for kept in sessions[session_id]]

    async def _begin(self, op: str, scope: Scope, **details: str) -> None:
        if self._ledger is not None:
            line = json.dumps({"op": op, "scope": scope.name, **details}) + "\n"
            os.write(self._ledger, line.encode())  # one write to an O_APPEND file: whole lines, even from two processes
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
    """`recall` answers every search in place of the sessions kept. `ledger` gets a JSON line for each call, before
    anything else happens. `hook` is awaited next, to delay or to raise."""
    journal = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) if ledger is not None else None
    try:
        subject = Subject(role="provider", name=name)
        yield ScriptedProvider(subject, store_id or secrets.token_hex(16), recall, journal, hook)
    finally:
        if journal is not None:
            os.close(journal)
