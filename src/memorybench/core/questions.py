"""Benchmark questions and datasets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

from .conversation import Haystack
from .trials import Case

EvidenceLevel = Literal["session", "turn"]


class Choice(NamedTuple):
    """One choice of a multiple-choice question."""

    label: str
    text: str

    def __str__(self) -> str:
        return f"({self.label}) {self.text}"


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
    choices: tuple[Choice, ...] = ()
    """Of a multiple-choice question; its text lists them, too."""

    def plain(self) -> Any:
        """Without `choices` where there are none, as version 0.1 wrote it."""
        return self.model_dump(mode="json", exclude=None if self.choices else {"choices"})

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
