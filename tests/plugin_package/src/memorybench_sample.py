"""A provider, a benchmark and a metric that use public names only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from memorybench import (
    Haystack,
    Measure,
    Memory,
    Outcome,
    Question,
    Receipt,
    RetrievalMetric,
    Scope,
    Session,
    Subject,
    Turn,
)


class NewestFirstSettings(BaseModel):
    model_config = ConfigDict(extra="forbid")

    skip: int = Field(default=0, ge=0, description="How many of the latest turns are left out.")


class NewestFirst:
    """Returns the latest turns first. Keeps them in memory, so each opening is a new store."""

    subject = Subject(role="provider", name="newest-first")
    single_threaded = True
    settings_model = NewestFirstSettings

    @classmethod
    @asynccontextmanager
    async def open(cls, context: Any) -> AsyncIterator[NewestFirst]:
        yield cls(str(id(context)), context.settings)

    def __init__(self, store_id: str, settings: NewestFirstSettings) -> None:
        self.store_id = store_id
        self._skip = settings.skip
        self._turns: dict[str, list[Memory]] = {}

    async def add(self, scope: Scope, session: Session) -> Receipt:
        for n, turn in enumerate(session.turns, 1):
            id = turn.id or f"{session.id}:{n}"
            memory = Memory(id=id, content=turn.content, sources=(session.id, id))
            self._turns.setdefault(scope.name, []).append(memory)
        return Receipt()

    async def wait_until_searchable(self, scope: Scope, receipts: Sequence[Receipt]) -> None:
        pass

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Memory]:
        return self._turns[scope.name][::-1][self._skip :][:limit]

    async def clear(self, scope: Scope) -> None:
        self._turns.pop(scope.name, None)


class ThreeQuestions:
    name = "three-questions"
    fingerprint = "three-questions 1.0"
    evidence = "session"
    questions = tuple(
        Question(id=f"q{n}", haystack="only", question=asked, answers=(answer,), gold_sessions=(session,))
        for n, (asked, answer, session) in enumerate(
            [
                ("What is the dog called?", "Rex", "s1"),
                ("Where is the key?", "In the jar", "s2"),
                ("Tea?", "Mint", "s3"),
            ]
        )
    )

    def haystack(self, id: str) -> Haystack:
        said = ("The dog is called Rex.", "The key is in the jar.", "Mint tea, always.")
        sessions = (Session(id=f"s{n}", turns=(Turn(role="user", content=text),)) for n, text in enumerate(said, 1))
        return Haystack(id=id, sessions=tuple(sessions))


class FoundAtAll:
    name = "found_at_all"

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        rank = outcome.score("mrr")
        return None if rank is None else (float(rank > 0),)

    def measure(self, rows: Sequence[tuple[float, ...]], clusters: Sequence[str], planned: int) -> Measure:
        value = sum(value for (value,) in rows) / len(rows) if rows else None
        return Measure(name=self.name, value=value, n=len(rows), planned=planned)


found_at_all = FoundAtAll()


def last_rank(ranked: Sequence[str], gold: Collection[str], k: int) -> float | None:
    """1 / the rank of the last gold id; 0 if some gold id is not among the first k."""
    ranks = [list(ranked[:k]).index(id) + 1 for id in gold if id in ranked[:k]]
    return None if not gold else 1 / max(ranks) if len(ranks) == len(gold) else 0.0


last_gold = RetrievalMetric("last_gold", last_rank, cutoffs=(2, 7), columns=("last_gold@2",))
