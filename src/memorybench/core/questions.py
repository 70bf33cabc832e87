"""What a benchmark asks of a memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from .conversation import Haystack
from .trials import Case

EvidenceLevel = Literal["session", "turn"]


class Question(Case):
    """Its type, where the benchmark has types, is the label `question_type`."""

    haystack: str
    question: str
    answers: tuple[str, ...] = ()
    """Any of them is right; empty: no gold answer is known."""
    asked_at: datetime | None = None
    gold_sessions: tuple[str, ...] = ()
    gold_turns: tuple[str, ...] = ()
    abstain: bool = False
    """The haystack does not tell; to say so is right."""

    @property
    def kind(self) -> str:
        return self.labels.get("question_type", "")

    def gold(self, level: EvidenceLevel) -> tuple[str, ...]:
        return self.gold_sessions if level == "session" else self.gold_turns


class Dataset(Protocol):
    """Questions, and the haystacks they are about. Haystacks are fetched one by one: they may be large."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def evidence(self) -> EvidenceLevel:
        """At which level this benchmark counts retrieval."""
        ...

    @property
    def questions(self) -> Sequence[Question]: ...

    def haystack(self, id: str) -> Haystack: ...
