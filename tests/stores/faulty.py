"""Reference stores with one fault each. Every scenario must detect at least one of them.

async with open_faulty("forgets-to-forget", folder) as store: ...
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import count, pairwise
from pathlib import Path

from memorybench.core.errors import MemorybenchError, Refused
from memorybench.core.stores import Curation, NewFact, Proposal, StoredFact
from memorybench.stores.reference import ReferenceStore, open_reference


class AcceptsSecrets(ReferenceStore):
    def _check_texts(self, content: str, *others: str | None) -> None:
        """Accept every text."""


class DuplicatesOnUpdate(ReferenceStore):
    async def update(self, user: str, id: str, content: str) -> str:
        self._load_fact(user, id)
        return await self.remember(user, NewFact(content=content))


class ForgetsToForget(ReferenceStore):
    """Hides a forgotten fact from `list`, but leaves its text in the history and in the file."""

    async def forget(self, user: str, id: str) -> None:
        fact = self._load_fact(user, id)
        with self._transaction() as db:
            db.execute("INSERT INTO history VALUES (?, ?, ?, '')", (id, user, fact.content))
            db.execute("UPDATE facts SET user = ? WHERE id = ?", (f"deleted {user}", id))


class IgnoresForget(ReferenceStore):
    async def forget(self, user: str, id: str) -> None:
        self._load_fact(user, id)


class LeavesResidue(ReferenceStore):
    """Deletes a fact, but first makes a backup next to the file."""

    async def forget(self, user: str, id: str) -> None:
        file = Path(self._db.execute("PRAGMA database_list").fetchone()[2])
        backup = file.with_suffix(".db.bak")
        backup.write_bytes(await asyncio.to_thread(file.read_bytes))
        await super().forget(user, id)


class CuratesTooEagerly(ReferenceStore):
    """Deletes every fact that shares its first word with the next one, regardless of trust."""

    async def curate(self, user: str, *, apply: bool) -> Curation:
        facts = self._load_facts(user)
        proposals = [
            Proposal(action="delete", ids=(older.id,), kept=newer.id, reason="looks alike")
            for older, newer in pairwise(facts)
            if older.content.split()[0] == newer.content.split()[0]
        ]
        if apply:
            for proposal in proposals:
                await self.forget(user, proposal.ids[0])
        return Curation(applied=apply, proposals=tuple(proposals))


class NeverCurates(ReferenceStore):
    async def curate(self, user: str, *, apply: bool) -> Curation:
        return Curation(applied=apply)


class AppliesDryRuns(ReferenceStore):
    async def curate(self, user: str, *, apply: bool) -> Curation:
        done = await super().curate(user, apply=True)
        return done.model_copy(update={"applied": apply})


class LeaksBetweenUsers(ReferenceStore):
    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        users = [row[0] for row in self._db.execute("SELECT DISTINCT user FROM facts ORDER BY user")]
        facts = [fact for other in users for fact in await super(LeaksBetweenUsers, self).recall(other, query, limit)]
        return facts[:limit]

    async def list(self, user: str) -> Sequence[StoredFact]:
        users = [row[0] for row in self._db.execute("SELECT DISTINCT user FROM facts ORDER BY user")]
        return [fact for other in users for fact in self._load_facts(other)]


class LosesOnRestart(ReferenceStore):
    """Opened by `open_faulty`, which starts each session with an empty folder."""


class FindsNothing(ReferenceStore):
    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        return []


class ForgetsToCount(ReferenceStore):
    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        before = {fact.id: fact.retrieval_count for fact in self._load_facts(user)}
        facts = await super().recall(user, query, limit)
        with self._transaction() as db:
            db.executemany("UPDATE facts SET retrieval_count = ? WHERE id = ?", [(n, id) for id, n in before.items()])
        return facts


class CountsLooking(ReferenceStore):
    async def list(self, user: str) -> Sequence[StoredFact]:
        with self._transaction() as db:
            db.execute("UPDATE facts SET retrieval_count = retrieval_count + 1 WHERE user = ?", (user,))
        return self._load_facts(user)


class RefusesEverything(ReferenceStore):
    def _check_texts(self, content: str, *others: str | None) -> None:
        raise Refused("not today")


class SwallowsErrors(ReferenceStore):
    """Reports a refused or failed write as done."""

    _invented_ids = count(10_000)

    async def remember(self, user: str, fact: NewFact) -> str:
        try:
            return await super().remember(user, fact)
        except MemorybenchError:
            return str(next(self._invented_ids))

    async def update(self, user: str, id: str, content: str) -> str:
        try:
            return await super().update(user, id, content)
        except MemorybenchError:
            return id

    async def forget(self, user: str, id: str) -> None:
        try:
            await super().forget(user, id)
        except MemorybenchError:
            return


class KeepsDuplicates(ReferenceStore):
    """Stores every copy of a text. Trailing spaces make the copies different for the UNIQUE constraint."""

    async def remember(self, user: str, fact: NewFact) -> str:
        copies = sum(stored.content.rstrip() == fact.content for stored in self._load_facts(user))
        id = await super().remember(user, fact.model_copy(update={"content": f"{fact.content} (copy {copies})"}))
        with self._transaction() as db:
            db.execute("UPDATE facts SET content = ? WHERE id = ?", (fact.content + " " * copies, id))
        return id


FAULTY: Mapping[str, type[ReferenceStore]] = {
    "accepts-secrets": AcceptsSecrets,
    "duplicates-on-update": DuplicatesOnUpdate,
    "forgets-to-forget": ForgetsToForget,
    "ignores-forget": IgnoresForget,
    "leaves-residue": LeavesResidue,
    "curates-too-eagerly": CuratesTooEagerly,
    "never-curates": NeverCurates,
    "applies-dry-runs": AppliesDryRuns,
    "loses-on-restart": LosesOnRestart,
    "leaks-between-users": LeaksBetweenUsers,
    "finds-nothing": FindsNothing,
    "forgets-to-count": ForgetsToCount,
    "counts-looking": CountsLooking,
    "refuses-everything": RefusesEverything,
    "swallows-errors": SwallowsErrors,
    "keeps-duplicates": KeepsDuplicates,
}


def open_faulty(fault: str, folder: Path) -> AbstractAsyncContextManager[ReferenceStore]:
    kind = FAULTY[fault]
    if kind is LosesOnRestart:
        sessions = len(list(folder.glob("session-*"))) if folder.is_dir() else 0
        folder = folder / f"session-{sessions}"
    return open_reference(folder, name=fault, kind=kind)
