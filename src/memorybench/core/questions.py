"""Benchmark questions and datasets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

from .conversation import Haystack
from .trials import Case

EvidenceLevel = Literal["session", "turn"]
_LATER_FIELDS = (
    "choices",
    "without_choices",
    "answer_mode",
    "rubric",
    "must_contain",
    "must_not_contain",
    "forbidden",
    "shared_history",
    "asked_after",
    "cluster",
)


class Choice(NamedTuple):
    """One choice of a multiple-choice question."""

    label: str
    text: str

    def __str__(self) -> str:
        return f"({self.label}) {self.text}"


class RubricItem(NamedTuple):
    """One requirement of a rubric. A judge scores it 0, 0.5 or 1."""

    text: str
    weight: float = 1.0


class Question(Case):
    """A question with its gold answers. Its type is the label `question_type`."""

    haystack: str
    question: str
    answers: tuple[str, ...] = ()
    """Any of them is right, or all of them are needed, as `answer_mode` says; empty if no gold answer is known."""
    answer_mode: Literal["any", "all"] = "any"
    """Whether a right response states any one of the answers, or all of them."""
    rubric: tuple[RubricItem, ...] = ()
    """The points that the judge looks for in a response, instead of comparing it with the answers."""
    must_contain: tuple[str, ...] = ()
    """Texts that a right response contains. Code decides, not a judge."""
    must_not_contain: tuple[str, ...] = ()
    """Texts that a right response does not contain, and that no memory shown should contain."""
    forbidden: tuple[str, ...] = ()
    """Ids of sessions and turns from which no memory should be retrieved."""
    asked_at: datetime | None = None
    gold_sessions: tuple[str, ...] = ()
    gold_turns: tuple[str, ...] = ()
    abstain: bool = False
    """The haystack does not contain the answer; saying so is right."""
    choices: tuple[Choice, ...] = ()
    """Of a multiple-choice question; its text lists them, too."""
    without_choices: str = ""
    """The text of a multiple-choice question alone."""
    shared_history: str = ""
    """Name of the longer history whose beginning its haystack is. The memory of such haystacks is filled once, and each
    question asked as soon as its haystack has been added."""
    asked_after: int = 0
    """Length of that beginning. Questions about one history are asked in this order."""
    cluster: str = ""
    """What it has in common with other questions, if that is more than their memory."""

    def plain(self) -> Any:
        """Without the fields that version 0.1 did not write, where they have their default value."""
        fields = type(self).model_fields
        unset = {name for name in _LATER_FIELDS if getattr(self, name) == fields[name].default}
        return self.model_dump(mode="json", exclude=unset)

    @property
    def query(self) -> str:
        """The text that memories are searched for: without the choices, because one of them is the answer."""
        return self.without_choices or self.question

    @property
    def memory(self) -> str:
        """Name of the memory that it is asked of."""
        return self.shared_history or self.haystack

    @property
    def group(self) -> str:
        """Name of the questions that are not independent of it: its cluster, or those asked of its memory."""
        return self.cluster or self.memory

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
