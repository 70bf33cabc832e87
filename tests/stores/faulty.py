"""Reference stores with one fault each. Each is detected by a scenario about its fault (docs/hygiene-faults.md).

async with open_faulty("forgets-to-forget", folder) as store: ...

As a command store: python -m tests.stores.faulty_command forgets-to-forget FOLDER
"""

from __future__ import annotations

import asyncio
import base64
import html
import re
import sqlite3
import unicodedata
import zlib
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from itertools import count, pairwise
from pathlib import Path

from memorybench.core.errors import MemorybenchError, Refused, ServiceError
from memorybench.core.stores import Curation, NewFact, Proposal, StoredFact
from memorybench.core.trials import Subject
from memorybench.secrets.credentials import find_credentials
from memorybench.stores.reference import ReferenceStore, open_reference

FAULTY: dict[str, type[ReferenceStore]] = {}
"""The stores with a fault, by the name of the fault."""


class FaultyStore(ReferenceStore):
    """The base of stores with a fault. The class name is that of the fault: ForgetsToForget is `forgets-to-forget`."""

    def __init_subclass__(cls) -> None:
        if not cls.__name__.startswith("_"):
            FAULTY[re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()] = cls


class AcceptsSecrets(FaultyStore):
    def _check_texts(self, content: str, *others: str | None) -> None:
        """Accept every text."""


class DuplicatesOnUpdate(FaultyStore):
    async def update(self, user: str, id: str, content: str) -> str:
        self._load_fact(user, id)
        return await self.remember(user, NewFact(content=content))


class ForgetsToForget(FaultyStore):
    """Hides a forgotten fact from `list`, but leaves its text in the history and in the file."""

    async def forget(self, user: str, id: str) -> None:
        fact = self._load_fact(user, id)
        with self._transaction() as db:
            db.execute("INSERT INTO history VALUES (?, ?, ?, '')", (id, user, fact.content))
            db.execute("UPDATE facts SET user = ? WHERE id = ?", (f"deleted {user}", id))


class IgnoresForget(FaultyStore):
    async def forget(self, user: str, id: str) -> None:
        self._load_fact(user, id)


class LeavesResidue(FaultyStore):
    """Deletes a fact, but first makes a backup next to the file."""

    async def forget(self, user: str, id: str) -> None:
        file = Path(self._db.execute("PRAGMA database_list").fetchone()[2])
        backup = file.with_suffix(".db.bak")
        backup.write_bytes(await asyncio.to_thread(file.read_bytes))
        await super().forget(user, id)


class CuratesTooEagerly(FaultyStore):
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


class NeverCurates(FaultyStore):
    async def curate(self, user: str, *, apply: bool) -> Curation:
        return Curation(applied=apply)


class AppliesDryRuns(FaultyStore):
    async def curate(self, user: str, *, apply: bool) -> Curation:
        done = await super().curate(user, apply=True)
        return done.model_copy(update={"applied": apply})


class LeaksBetweenUsers(FaultyStore):
    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        users = [row[0] for row in self._db.execute("SELECT DISTINCT user FROM facts ORDER BY user")]
        facts = [fact for other in users for fact in await super(LeaksBetweenUsers, self).recall(other, query, limit)]
        return facts[:limit]

    async def list(self, user: str) -> Sequence[StoredFact]:
        users = [row[0] for row in self._db.execute("SELECT DISTINCT user FROM facts ORDER BY user")]
        return [fact for other in users for fact in self._load_facts(other)]


class LosesOnRestart(FaultyStore):
    """Opened by `open_faulty`, which starts each session with an empty folder."""


class FindsNothing(FaultyStore):
    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        return []


class ForgetsToCount(FaultyStore):
    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        before = {fact.id: fact.retrieval_count for fact in self._load_facts(user)}
        facts = await super().recall(user, query, limit)
        with self._transaction() as db:
            db.executemany("UPDATE facts SET retrieval_count = ? WHERE id = ?", [(n, id) for id, n in before.items()])
        return facts


class CountsLooking(FaultyStore):
    async def list(self, user: str) -> Sequence[StoredFact]:
        with self._transaction() as db:
            db.execute("UPDATE facts SET retrieval_count = retrieval_count + 1 WHERE user = ?", (user,))
        return self._load_facts(user)


class RefusesEverything(FaultyStore):
    def _check_texts(self, content: str, *others: str | None) -> None:
        raise Refused("not today")


class SwallowsErrors(FaultyStore):
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


class KeepsDuplicates(FaultyStore):
    """Stores every copy of a text. Trailing spaces make the copies different for the UNIQUE constraint."""

    async def remember(self, user: str, fact: NewFact) -> str:
        copies = sum(stored.content.rstrip() == fact.content for stored in self._load_facts(user))
        id = await super().remember(user, fact.model_copy(update={"content": f"{fact.content} (copy {copies})"}))
        with self._transaction() as db:
            db.execute("UPDATE facts SET content = ? WHERE id = ?", (fact.content + " " * copies, id))
        return id


class KnowsOneKind(FaultyStore):
    """Recognises the keys of one service only."""

    def _check_texts(self, content: str, *others: str | None) -> None:
        if any("sk-proj-" in text for text in (content, *filter(None, others))):
            raise Refused("contains a key")


class AcceptsSecretsInUpdates(FaultyStore):
    async def update(self, user: str, id: str, content: str) -> str:
        self._load_fact(user, id)
        with self._transaction() as db:
            db.execute("UPDATE facts SET content = ? WHERE id = ?", (content, id))
        return id


class AcceptsSecretsInMetadata(FaultyStore):
    def _check_texts(self, content: str, *others: str | None) -> None:
        super()._check_texts(content)


class UpdatesForAnyone(FaultyStore):
    """Takes an id for a permission to change the fact."""

    async def update(self, user: str, id: str, content: str) -> str:
        return await super().update(_owner(self, user, id), id, content)


class ForgetsForAnyone(FaultyStore):
    """Takes an id for a permission to delete the fact."""

    async def forget(self, user: str, id: str) -> None:
        await super().forget(_owner(self, user, id), id)


class ReadsForAnyone(FaultyStore):
    """Takes an id for a permission to read the fact."""

    async def get(self, user: str, id: str) -> StoredFact | None:
        return await super().get(_owner(self, user, id), id)


class CopiesForAnyone(FaultyStore):
    """Gives whoever names the id of a fact a copy of it, instead of changing it."""

    async def update(self, user: str, id: str, content: str) -> str:
        owner = _owner(self, user, id)
        if owner == user:
            return await super().update(user, id, content)
        return await self.remember(user, NewFact(content=self._load_fact(owner, id).content))


class QuotesInErrors(FaultyStore):
    """Refuses to change a fact of another user, and quotes it in the error."""

    async def update(self, user: str, id: str, content: str) -> str:
        owner = _owner(self, user, id)
        if owner != user:
            raise ServiceError(f"fact {id} belongs to {owner}: {self._load_fact(owner, id).content}")
        return await super().update(user, id, content)


class ShowsAllHistories(FaultyStore):
    """Returns the texts of everybody as the history of a user."""

    async def history(self, user: str) -> Sequence[str]:
        return [row[0] for row in self._db.execute("SELECT content FROM facts ORDER BY id")]


def _owner(store: ReferenceStore, user: str, id: str) -> str:
    row = store._db.execute("SELECT user FROM facts WHERE id = ?", (id,)).fetchone()
    return row[0] if row else user


class _ChangesOnUpdate(FaultyStore):
    """Changes another column of a fact when its text is updated."""

    change: str

    async def update(self, user: str, id: str, content: str) -> str:
        id = await super().update(user, id, content)
        with self._transaction() as db:
            db.execute(f"UPDATE facts SET {self.change} WHERE id = ?", (id,))
        return id


class LosesTrustOnUpdate(_ChangesOnUpdate):
    change = "trust = 0.1"


class _KeepsForgotten(FaultyStore):
    """Deletes a fact, but keeps its text in another way."""

    async def forget(self, user: str, id: str) -> None:
        self.keep(Path(self._db.execute("PRAGMA database_list").fetchone()[2]), self._load_fact(user, id).content)
        await super().forget(user, id)

    def keep(self, file: Path, text: str) -> None:
        raise NotImplementedError


class CompressesForgotten(_KeepsForgotten):
    def keep(self, file: Path, text: str) -> None:
        file.with_name("tombstones").write_bytes(b"\x07\x00" + zlib.compress(text.encode()) + b"\xff")


class EncodesForgotten(_KeepsForgotten):
    def keep(self, file: Path, text: str) -> None:
        file.with_name("journal.log").write_bytes(b"deleted " + base64.b64encode(text.encode()) + b"\n")


class XorsForgotten(_KeepsForgotten):
    """Keeps a copy in which every byte is changed by the same key."""

    def keep(self, file: Path, text: str) -> None:
        file.with_name("tombstones").write_bytes(bytes(octet ^ 0x5A for octet in text.encode()))


class MovesForgotten(_KeepsForgotten):
    """Keeps a copy next to its folder."""

    def keep(self, file: Path, text: str) -> None:
        file.parent.with_name("recycle-bin.txt").write_text(text)


class FallsBackToOthers(FaultyStore):
    """Shows the facts of everybody if nothing of the user matches."""

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        own = await super().recall(user, query, limit)
        users = [row[0] for row in self._db.execute("SELECT DISTINCT user FROM facts ORDER BY user")]
        return own or [fact for other in users for fact in self._load_facts(other)][:limit]


class CuratorObeysTools(FaultyStore):
    """Deletes the older of two facts on the same subject, however little the newer one is trusted."""

    async def curate(self, user: str, *, apply: bool) -> Curation:
        facts = self._load_facts(user)
        proposals = [
            Proposal(action="delete", ids=(older.id,), kept=newer.id, reason="newer")
            for older, newer in pairwise(facts)
            if older.content.split()[:2] == newer.content.split()[:2]
        ]
        if apply:
            for proposal in proposals:
                await self.forget(user, proposal.ids[0])
        return Curation(applied=apply, proposals=tuple(proposals))


class InventsInCuration(FaultyStore):
    """Adds a conclusion of its own to what it merges."""

    async def curate(self, user: str, *, apply: bool) -> Curation:
        facts = self._load_facts(user)
        done = await super().curate(user, apply=apply)
        if apply and done.proposals:
            await self.remember(user, NewFact(content=f"{facts[0].content}, and everybody agrees"))
        return done


class CuratorKeepsTheOlder(FaultyStore):
    """Resolves a contradiction in favour of the older fact."""

    async def curate(self, user: str, *, apply: bool) -> Curation:
        found = await super().curate(user, apply=False)
        swapped = [
            one.model_copy(update={"ids": (one.kept,), "kept": one.ids[0]}) if one.kept else one
            for one in found.proposals
        ]
        if apply:
            for proposal in swapped:
                await self.forget(user, proposal.ids[0])
        return Curation(applied=apply, proposals=tuple(swapped))


class SurprisesInCuration(FaultyStore):
    """Announces nothing in a dry run, and removes facts when it is applied."""

    async def curate(self, user: str, *, apply: bool) -> Curation:
        return await super().curate(user, apply=True) if apply else Curation(applied=False)


class LogsRefusedSecrets(FaultyStore):
    """Refuses a secret, and writes it to its log."""

    def __init__(self, subject: Subject, db: sqlite3.Connection) -> None:
        super().__init__(subject, db)
        self._folder = Path(db.execute("PRAGMA database_list").fetchone()[2]).parent

    def _check_texts(self, content: str, *others: str | None) -> None:
        try:
            super()._check_texts(content, *others)
        except Refused:
            (self._folder / "refused.log").write_text(content)
            raise


class IgnoresUpdates(FaultyStore):
    async def update(self, user: str, id: str, content: str) -> str:
        self._load_fact(user, id)
        return id


class _ChangesTexts(FaultyStore):
    """Stores another text than it was given."""

    async def remember(self, user: str, fact: NewFact) -> str:
        return await super().remember(user, fact.model_copy(update={"content": self.change(fact.content)}))

    def change(self, text: str) -> str:
        raise NotImplementedError


class TruncatesFacts(_ChangesTexts):
    def change(self, text: str) -> str:
        return text[:24]


class RanksWorstFirst(FaultyStore):
    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        return list(reversed(await super().recall(user, query, 100)))[:limit]


class TrustsWhatItShows(FaultyStore):
    """Raises the trust of a fact whenever it is found."""

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        facts = await super().recall(user, query, limit)
        with self._transaction() as db:
            db.executemany("UPDATE facts SET trust = min(1.0, trust + 0.1) WHERE id = ?", [(one.id,) for one in facts])
        return facts


class SearchesOldTexts(FaultyStore):
    """Does not update its index: a search returns the text that a fact had at first."""

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        return [self._as_indexed(fact) for fact in await super().recall(user, query, limit)]

    def _as_indexed(self, fact: StoredFact) -> StoredFact:
        old = _first_text(self, fact.id)
        return fact if old is None else fact.model_copy(update={"content": old})


class ReturnsOldTexts(FaultyStore):
    """Returns the text before a correction beside the new one."""

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        facts = await super().recall(user, query, limit)
        old = [(fact, _first_text(self, fact.id)) for fact in facts]
        return [*(fact.model_copy(update={"content": text}) for fact, text in old if text is not None), *facts][:limit]


def _first_text(store: ReferenceStore, id: str) -> str | None:
    row = store._db.execute("SELECT content FROM history WHERE fact = ? ORDER BY rowid", (id,)).fetchone()
    return row[0] if row else None


class CuratesForEverybody(FaultyStore):
    async def curate(self, user: str, *, apply: bool) -> Curation:
        users = [row[0] for row in self._db.execute("SELECT DISTINCT user FROM facts ORDER BY user")]
        done = [await super(CuratesForEverybody, self).curate(one, apply=apply) for one in users]
        return Curation(applied=apply, proposals=tuple(proposal for one in done for proposal in one.proposals))


class JoinsFactsInCuration(FaultyStore):
    """Stores the beginning of one fact with the end of another, so that no word is new."""

    async def curate(self, user: str, *, apply: bool) -> Curation:
        done = await super().curate(user, apply=apply)
        facts = [fact.content.split() for fact in self._load_facts(user)]
        if apply and len(facts) > 1:
            await self.remember(user, NewFact(content=" ".join([*facts[0][:-3], *facts[1][-3:]])))
        return done


class LosesCategoryOnUpdate(_ChangesOnUpdate):
    change = "category = NULL"


class CuratorVouchesForTools(FaultyStore):
    """Names the user as the source of every fact that the curator has seen."""

    async def curate(self, user: str, *, apply: bool) -> Curation:
        done = await super().curate(user, apply=apply)
        if apply:
            with self._transaction() as db:
                db.execute("UPDATE facts SET source = 'user' WHERE user = ?", (user,))
        return done


class CachesSearches(FaultyStore):
    """Answers a repeated search from a cache, which only a new fact empties."""

    def __init__(self, subject: Subject, db: sqlite3.Connection) -> None:
        super().__init__(subject, db)
        self._searches: dict[tuple[str, str, int], Sequence[StoredFact]] = {}

    async def remember(self, user: str, fact: NewFact) -> str:
        self._searches.clear()
        return await super().remember(user, fact)

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        search = user, query, limit
        if search not in self._searches:
            self._searches[search] = await super().recall(user, query, limit)
        return self._searches[search]


class KeepsCorrectedTexts(FaultyStore):
    """Writes the text before a correction to a file, where a deletion leaves it."""

    async def update(self, user: str, id: str, content: str) -> str:
        file = Path(self._db.execute("PRAGMA database_list").fetchone()[2])
        file.with_name("vectors.json").write_text(self._load_fact(user, id).content)
        return await super().update(user, id, content)


class ForgetsSimilarFacts(FaultyStore):
    """Deletes whatever a search for the text of the fact finds, if most words are equal."""

    async def forget(self, user: str, id: str) -> None:
        content = self._load_fact(user, id).content
        for fact in self._load_facts(user):
            if fact.id == id or _similarity(fact.content, content) > 0.5:
                await super().forget(user, fact.id)


class ForgetsForEverybody(FaultyStore):
    """Deletes a fact by its text, also from the memories of other users."""

    async def forget(self, user: str, id: str) -> None:
        content = self._load_fact(user, id).content
        for owner, other in self._db.execute("SELECT user, id FROM facts WHERE content = ?", (content,)).fetchall():
            await super().forget(owner, str(other))


class UpdatesTheMostSimilar(FaultyStore):
    """Looks for the fact to update by the new text instead of the id."""

    async def update(self, user: str, id: str, content: str) -> str:
        self._load_fact(user, id)
        best = max(self._load_facts(user), key=lambda fact: _similarity(fact.content, content))
        return await super().update(user, best.id, content)


def _similarity(one: str, other: str) -> float:
    words, others = set(one.lower().split()), set(other.lower().split())
    return len(words & others) / len(words | others)


class NormalizesUserIds(FaultyStore):
    """Spells the ids of users in another way, so that two users may share a memory."""

    def _spell(self, user: str) -> str:
        return unicodedata.normalize("NFKC", user)

    async def remember(self, user: str, fact: NewFact) -> str:
        return await super().remember(self._spell(user), fact)

    async def update(self, user: str, id: str, content: str) -> str:
        return await super().update(self._spell(user), id, content)

    async def forget(self, user: str, id: str) -> None:
        await super().forget(self._spell(user), id)

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        return await super().recall(self._spell(user), query, limit)

    async def get(self, user: str, id: str) -> StoredFact | None:
        return await super().get(self._spell(user), id)

    async def list(self, user: str) -> Sequence[StoredFact]:
        return await super().list(self._spell(user))


class FoldsUserIds(NormalizesUserIds):
    """Writes the ids of users in lower case, as a file name might need it."""

    def _spell(self, user: str) -> str:
        return user.lower()


class CasefoldsUserIds(NormalizesUserIds):
    def _spell(self, user: str) -> str:
        return user.casefold()


class ShortensUserIds(NormalizesUserIds):
    """Has a column of 32 characters for the ids of users."""

    def _spell(self, user: str) -> str:
        return user[:32]


class ListsByPrefix(FaultyStore):
    """Lists the facts of every user whose id begins with the one that was asked for."""

    async def list(self, user: str) -> Sequence[StoredFact]:
        users = [row[0] for row in self._db.execute("SELECT DISTINCT user FROM facts ORDER BY user")]
        return [fact for other in users if other.startswith(user) for fact in self._load_facts(other)]


class SkipsBetweenPages(FaultyStore):
    """Reads its list in pages of 20 facts, and begins each further page one fact too late."""

    async def list(self, user: str) -> Sequence[StoredFact]:
        return [fact for place, fact in enumerate(self._load_facts(user)) if place == 0 or place % 20]


class DropsTheOldest(FaultyStore):
    """Keeps 50 facts of a user; a new one replaces the oldest."""

    async def remember(self, user: str, fact: NewFact) -> str:
        id = await super().remember(user, fact)
        for old in self._load_facts(user)[:-50]:
            await self.forget(user, old.id)
        return id


class RedactsOnce(FaultyStore):
    """Removes the first credential of a text instead of refusing it, and misses the others."""

    async def remember(self, user: str, fact: NewFact) -> str:
        found = sorted(find_credentials(fact.content), key=lambda one: one.start)
        content = fact.content
        if found:
            content = f"{content[: found[0].start]}[removed]{content[found[0].end :]}"
        return await super().remember(user, fact.model_copy(update={"content": content}))

    def _check_texts(self, content: str, *others: str | None) -> None:
        """Accept what `remember` left."""


class DropsNegations(_ChangesTexts):
    def change(self, text: str) -> str:
        return text.replace(" not ", " ")


class DropsAccents(_ChangesTexts):
    """Stores texts in ASCII, without the letters that it does not have."""

    def change(self, text: str) -> str:
        return text.encode("ascii", "ignore").decode()


class MergesUsersInCuration(FaultyStore):
    """Removes the duplicates of a fact, also those of other users."""

    async def curate(self, user: str, *, apply: bool) -> Curation:
        done = await super().curate(user, apply=apply)
        if apply:
            with self._transaction() as db:
                db.execute(
                    "DELETE FROM facts WHERE user != ?1 AND content IN (SELECT content FROM facts WHERE user = ?1)",
                    (user,),
                )
        return done


class IgnoresTheLimit(FaultyStore):
    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        return await super().recall(user, query, 100)


class RepeatsInSearch(FaultyStore):
    """Has every fact twice in its index."""

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        return [copy for fact in await super().recall(user, query, limit) for copy in (fact, fact)][:limit]


class HidesDuplicates(KeepsDuplicates):
    """Stores every copy of a text, and shows one of them."""

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        return _first_of_each(await super().recall(user, query, limit))

    async def list(self, user: str) -> Sequence[StoredFact]:
        return _first_of_each(await super().list(user))


def _first_of_each(facts: Sequence[StoredFact]) -> Sequence[StoredFact]:
    return list({fact.content.rstrip(): fact for fact in reversed(facts)}.values())[::-1]


class ReusesIds(FaultyStore):
    """Gives a new fact the id after the highest one, as a table without AUTOINCREMENT does."""

    async def remember(self, user: str, fact: NewFact) -> str:
        with self._transaction() as db:
            db.execute("UPDATE sqlite_sequence SET seq = (SELECT ifnull(max(id), 0) FROM facts) WHERE name = 'facts'")
        return await super().remember(user, fact)


class ReadsDeletedFacts(FaultyStore):
    """Answers from a cache of the facts that were read by their ids."""

    def __init__(self, subject: Subject, db: sqlite3.Connection) -> None:
        super().__init__(subject, db)
        self._read: dict[tuple[str, str], StoredFact] = {}

    async def get(self, user: str, id: str) -> StoredFact | None:
        fact = await super().get(user, id)
        if fact is not None:
            self._read[user, id] = fact
        return self._read.get((user, id))


class ReadsOldTexts(FaultyStore):
    """Returns the first text of a fact, not its current one, when the fact is read by its id."""

    async def get(self, user: str, id: str) -> StoredFact | None:
        fact, old = await super().get(user, id), _first_text(self, id)
        return fact if fact is None or old is None else fact.model_copy(update={"content": old})


class RenumbersFacts(FaultyStore):
    """Has the number of its line in a list as the id of a fact."""

    async def forget(self, user: str, id: str) -> None:
        await super().forget(user, id)
        with self._transaction() as db:
            db.execute("UPDATE facts SET id = id - 1 WHERE id > ?", (id,))


class DropsSimilarFacts(FaultyStore):
    """Takes a fact in which nearly all words are known for the known one."""

    async def remember(self, user: str, fact: NewFact) -> str:
        known = (old.id for old in self._load_facts(user) if _similarity(old.content, fact.content) > 0.8)
        return next(known, None) or await super().remember(user, fact)


class DropsFurtherLines(_ChangesTexts):
    def change(self, text: str) -> str:
        return text.partition("\n")[0]


class EscapesSigns(_ChangesTexts):
    """Stores texts as HTML, and returns them as they are stored."""

    def change(self, text: str) -> str:
        return html.escape(text)


class TruncatesUpdates(FaultyStore):
    async def update(self, user: str, id: str, content: str) -> str:
        return await super().update(user, id, content[:256])


class LosesSourceOnUpdate(_ChangesOnUpdate):
    change = "source = NULL"


class TruncatesLongFacts(_ChangesTexts):
    def change(self, text: str) -> str:
        return text[:256]


class LowercasesFacts(_ChangesTexts):
    def change(self, text: str) -> str:
        return text.lower()


class DropsLeadingZeros(_ChangesTexts):
    def change(self, text: str) -> str:
        return re.sub(r"\b0+(?=\d)", "", text)


class DropsSigns(_ChangesTexts):
    def change(self, text: str) -> str:
        return re.sub(r"[/#+*=<>]", "", text)


class DropsEmoji(_ChangesTexts):
    """Stores characters of up to three bytes, as MySQL's utf8mb3 does."""

    def change(self, text: str) -> str:
        return "".join(sign for sign in text if len(sign.encode()) < 4)


class IndexesOnRestart(FaultyStore):
    """Searches the facts that it had when it was opened."""

    def __init__(self, subject: Subject, db: sqlite3.Connection) -> None:
        super().__init__(subject, db)
        self._newest = db.execute("SELECT ifnull(max(id), 0) FROM facts").fetchone()[0]

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        return [fact for fact in await super().recall(user, query, limit) if int(fact.id) <= self._newest]


class SearchesCaseSensitively(FaultyStore):
    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        facts = await super().recall(user, query, limit)
        return [fact for fact in facts if set(query.split()) & set(fact.content.split())]


class ResetsRepeatedFacts(FaultyStore):
    """Stores a repeated fact as a new one in the place of the old one."""

    async def remember(self, user: str, fact: NewFact) -> str:
        for old in self._load_facts(user):
            if old.content == fact.content:
                await self.forget(user, old.id)
        return await super().remember(user, fact)


class FillsEmptyMemories(FaultyStore):
    """Searches the facts of everybody for a user who has none."""

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        if self._load_facts(user):
            return await super().recall(user, query, limit)
        users = [row[0] for row in self._db.execute("SELECT DISTINCT user FROM facts ORDER BY user")]
        found = [fact for other in users for fact in await super(FillsEmptyMemories, self).recall(other, query, limit)]
        return found[:limit]


class RaisesTrustOnUpdate(_ChangesOnUpdate):
    change = "trust = min(1.0, trust + 0.2)"


class TrustsEverything(FaultyStore):
    """Ignores the trust that a fact is given."""

    async def remember(self, user: str, fact: NewFact) -> str:
        return await super().remember(user, fact.model_copy(update={"trust": 1.0}))


class KeepsOneCopyForAll(FaultyStore):
    """Keeps the oldest of equal facts in a curation, also if they belong to different users."""

    async def curate(self, user: str, *, apply: bool) -> Curation:
        found = await super().curate(user, apply=False)
        proposals = [
            one.model_copy(update={"ids": (one.kept,), "kept": one.ids[0]})
            if one.action == "merge" and one.kept
            else one
            for one in found.proposals
        ]
        if apply:
            for id in {id for one in proposals for id in one.ids}:
                await self.forget(user, id)
            with self._transaction() as db:
                db.execute("DELETE FROM facts WHERE id NOT IN (SELECT min(id) FROM facts GROUP BY content)")
        return Curation(applied=apply, proposals=tuple(proposals))


class StripsUserIds(NormalizesUserIds):
    """Leaves punctuation out of the ids of users."""

    def _spell(self, user: str) -> str:
        return re.sub(r"\W", "", user)


class WipesOnUnknownIds(FaultyStore):
    """Deletes all facts of the user if the fact to delete is not there, and answers that it is not."""

    async def forget(self, user: str, id: str) -> None:
        if await self.get(user, id) is None:
            for fact in self._load_facts(user):
                await super().forget(user, fact.id)
        await super().forget(user, id)


class LosesFactsOnRefusal(FaultyStore):
    """Deletes the old text before it checks the new one."""

    async def update(self, user: str, id: str, content: str) -> str:
        try:
            return await super().update(user, id, content)
        except Refused:
            await self.forget(user, id)
            raise


class ForgetsByPrefix(FaultyStore):
    """Deletes every fact whose id begins with the given one."""

    async def forget(self, user: str, id: str) -> None:
        self._load_fact(user, id)
        for fact in self._load_facts(user):
            if fact.id.startswith(id):
                await super().forget(user, fact.id)


class CreatesOnUpdate(FaultyStore):
    """Stores the new text as a new fact if the fact to change is not there."""

    async def update(self, user: str, id: str, content: str) -> str:
        if await self.get(user, id) is None:
            return await self.remember(user, NewFact(content=content))
        return await super().update(user, id, content)


class ConfirmsUnknownIds(FaultyStore):
    """Reports success for a fact that is not there, and does nothing."""

    async def update(self, user: str, id: str, content: str) -> str:
        return id if await self.get(user, id) is None else await super().update(user, id, content)

    async def forget(self, user: str, id: str) -> None:
        if await self.get(user, id) is not None:
            await super().forget(user, id)


def open_faulty(fault: str, folder: Path) -> AbstractAsyncContextManager[ReferenceStore]:
    kind = FAULTY[fault]
    if kind is LosesOnRestart:
        sessions = len(list(folder.glob("session-*"))) if folder.is_dir() else 0
        folder = folder / f"session-{sessions}"
    return open_reference(folder, name=fault, kind=kind)
