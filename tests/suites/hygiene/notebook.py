"""A memory of sixty lines for tests of the suite itself: facts in a JSON file, searched by words in common."""

import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from memorybench.core.errors import Refused
from memorybench.core.stores import Capability, Curation, MemoryStore, NewFact, Proposal, StoredFact
from memorybench.core.trials import Subject

ALL: frozenset[Capability] = frozenset(
    (
        "update",
        "forget",
        "recall",
        "list",
        "curate",
        "trust",
        "retrieval_count",
        "category",
        "users",
        "history",
        "files",
    )
)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text.lower()))


class Notebook:
    """Refuses what has `refused` in it. Its curator removes the older of two facts that say the same words."""

    subject = Subject(role="store", name="notebook")

    def __init__(self, path: Path, capabilities: frozenset[Capability] = ALL, refused: str = r"sk-|ghp_|AKIA") -> None:
        self.path = path
        self.capabilities = capabilities
        self.refused = refused
        self.facts: list[tuple[str, StoredFact]] = []
        if path.exists():
            self.facts = [(user, StoredFact.model_validate(fact)) for user, fact in json.loads(path.read_text())]

    def save(self) -> None:
        self.path.write_text(json.dumps([[user, fact.plain()] for user, fact in self.facts]))

    def _check(self, content: str) -> None:
        if re.search(self.refused, content):
            raise Refused("looks like a credential")

    async def remember(self, user: str, fact: NewFact) -> str:
        self._check(fact.content)
        id = str(1 + max((int(fact.id) for _, fact in self.facts), default=0))
        pinned = {"trust": fact.trust or 0.5, "retrieval_count": fact.retrieval_count or 0}
        self.facts.append((user, StoredFact(id=id, **(fact.plain() | pinned))))
        return id

    async def update(self, user: str, id: str, content: str) -> str:
        self._check(content)
        self.facts = [
            (who, fact.model_copy(update={"content": content}) if (who, fact.id) == (user, id) else fact)
            for who, fact in self.facts
        ]
        return id

    async def forget(self, user: str, id: str) -> None:
        self.facts = [(who, fact) for who, fact in self.facts if (who, fact.id) != (user, id)]

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        mine = [fact for who, fact in self.facts if who == user and _words(fact.content) & _words(query)]
        found = sorted(mine, key=lambda fact: -len(_words(fact.content) & _words(query)))[:limit]
        ids = {fact.id for fact in found}
        self.facts = [
            (who, fact.model_copy(update={"retrieval_count": (fact.retrieval_count or 0) + (fact.id in ids)}))
            for who, fact in self.facts
        ]
        return found

    async def list(self, user: str) -> Sequence[StoredFact]:
        return [fact for who, fact in self.facts if who == user]

    async def curate(self, user: str, *, apply: bool) -> Curation:
        mine = [fact for who, fact in self.facts if who == user]
        doomed = [
            Proposal(action="delete", ids=(old.id,), kept=new.id)
            for place, old in enumerate(mine)
            for new in mine[place + 1 :]
            if len(_words(old.content) & _words(new.content)) > 0.8 * len(_words(old.content))
        ]
        if apply:
            for proposal in doomed:
                await self.forget(user, proposal.ids[0])
        return Curation(applied=apply, proposals=tuple(doomed))

    async def history(self, user: str) -> Sequence[str]:
        return ()


@asynccontextmanager
async def open_notebook(folder: Path) -> AsyncIterator[MemoryStore]:
    notebook = Notebook(folder / "notes.json")
    try:
        yield notebook
    finally:
        notebook.save()
