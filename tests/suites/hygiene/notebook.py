"""A small memory store for tests: facts in a JSON file, searched by common words."""

import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

from memorybench.core.errors import Refused
from memorybench.core.stores import Capability, Curation, MemoryStore, NewFact, Proposal, StoredFact
from memorybench.core.trials import Subject
from memorybench.suites.hygiene.evidence import OpenStore

ALL: frozenset[Capability] = frozenset(
    (
        "update", "forget", "recall", "list", "curate", "trust", "retrieval_count", "category", "users", "history",
        "files", "get",
    )
)  # fmt: skip


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text.lower()))


class Notebook:
    """Refuses content that matches `refused`. Its curator removes the older of two facts with mostly equal words."""

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
        numbers = {"trust": fact.trust or 0.5, "retrieval_count": fact.retrieval_count or 0}
        self.facts.append((user, StoredFact(id=id, **(fact.plain() | numbers))))
        return id

    async def update(self, user: str, id: str, content: str) -> str:
        self._check(content)
        self.facts = [
            (owner, fact.model_copy(update={"content": content}) if (owner, fact.id) == (user, id) else fact)
            for owner, fact in self.facts
        ]
        return id

    async def forget(self, user: str, id: str) -> None:
        self.facts = [(owner, fact) for owner, fact in self.facts if (owner, fact.id) != (user, id)]

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        facts = [fact for owner, fact in self.facts if owner == user and _words(fact.content) & _words(query)]
        hits = sorted(facts, key=lambda fact: -len(_words(fact.content) & _words(query)))[:limit]
        ids = {fact.id for fact in hits}
        self.facts = [
            (owner, fact.model_copy(update={"retrieval_count": (fact.retrieval_count or 0) + (fact.id in ids)}))
            for owner, fact in self.facts
        ]
        return hits

    async def get(self, user: str, id: str) -> StoredFact | None:
        return next((fact for owner, fact in self.facts if (owner, fact.id) == (user, id)), None)

    async def list(self, user: str) -> Sequence[StoredFact]:
        return [fact for owner, fact in self.facts if owner == user]

    async def curate(self, user: str, *, apply: bool) -> Curation:
        facts = [fact for owner, fact in self.facts if owner == user]
        proposals = [
            Proposal(action="delete", ids=(old.id,), kept=new.id)
            for place, old in enumerate(facts)
            for new in facts[place + 1 :]
            if len(_words(old.content) & _words(new.content)) > 0.8 * len(_words(old.content))
        ]
        if apply:
            for proposal in proposals:
                await self.forget(user, proposal.ids[0])
        return Curation(applied=apply, proposals=tuple(proposals))

    async def history(self, user: str) -> Sequence[str]:
        return ()


class AcceptsAll(Notebook):
    def _check(self, content: str) -> None:
        """Refuse nothing."""


class StoresTextOnly(AcceptsAll):
    """Stores the content of a fact and nothing else, as many stores do."""

    async def remember(self, user: str, fact: NewFact) -> str:
        return await super().remember(user, NewFact(content=fact.content))


class RemoteNotebook(Notebook):
    """Keeps its facts in this process, as a service keeps them elsewhere, and accepts everything."""

    _saved: ClassVar[dict[Path, list[tuple[str, StoredFact]]]] = {}

    def __init__(self, path: Path, capabilities: frozenset[Capability] = ALL) -> None:
        super().__init__(path, capabilities - {"files"}, refused="(?!)")
        self.facts = list(self._saved.get(path, ()))

    def save(self) -> None:
        self._saved[self.path] = self.facts


def opener(kind: type[Notebook] = Notebook, *missing: Capability) -> OpenStore:
    """Return a function that opens a notebook without the `missing` capabilities."""

    @asynccontextmanager
    async def open_store(folder: Path) -> AsyncIterator[MemoryStore]:
        notebook = kind(folder / "notes.json", ALL - set(missing))
        try:
            yield notebook
        finally:
            notebook.save()

    return open_store


open_notebook = opener()
