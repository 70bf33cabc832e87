"""Benchmark questions and datasets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from .conversation import Haystack
from .trials import Case

EvidenceLevel = Literal["session", "turn"]


class Question(Case):
    """A question with its gold answers. Its type is the label `question_type`."""

    haystack: str
    question: str
    answers: tuple[str, ...] = ()
    """Any of them is right; empty if no gold answer is known."""
    asked_at: datetime | None = None
    gold_sessions: tuple[str, ...] = ()
    gold_turns: tuple[str, ...] = ()
    abstain: bool = False
    """The haystack does not contain the answer; saying so is right."""

    @property
    def kind(self) -> str:
        return self.labels.get("question_type", "")

    def gold(self, level: EvidenceLevel) -> tuple[str, ...]:
        return self.gold_sessions if level == "session" else self.gold_turns


class Dataset(Protocol):
    """Questions and their haystacks. Haystacks are loaded one by one, because they may be large."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def evidence(self) -> EvidenceLevel:
        """The level at which this benchmark counts retrieval."""
        ...

    @property
    def questions(self) -> Sequence[Question]: ...

    def haystack(self, id: str) -> Haystack: ...
