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
    """One requirement of a rubric. A judge scores how far a response meets it: 0, 0.5 or 1."""

    text: str
    weight: float = 1.0


class Question(Case):
    """A question with its gold answers. Its type is the label `question_type`."""

    haystack: str
    question: str
    answers: tuple[str, ...] = ()
    """The gold answers. `answer_mode` says whether one or all of them are needed; empty if none is known."""
    answer_mode: Literal["any", "all"] = "any"
    """Whether a right response must state any one of the answers, or all of them."""
    rubric: tuple[RubricItem, ...] = ()
    """The requirements by which a judge scores a response, instead of comparing it with the answers."""
    must_contain: tuple[str, ...] = ()
    """Texts that a right response must contain. Code decides this, not a judge."""
    must_not_contain: tuple[str, ...] = ()
    """Texts that a right response must not contain, and that no memory shown to the model should contain."""
    forbidden: tuple[str, ...] = ()
    """The ids of sessions and turns from which no memory should be retrieved."""
    asked_at: datetime | None = None
    gold_sessions: tuple[str, ...] = ()
    gold_turns: tuple[str, ...] = ()
    abstain: bool = False
    """Whether the haystack does not contain the answer, so that a right response says so."""
    choices: tuple[Choice, ...] = ()
    """The choices of a multiple-choice question. The text of the question lists them, too."""
    without_choices: str = ""
    """The text of a multiple-choice question without its choices; empty for other questions."""
    shared_history: str = ""
    """The name of a longer history, if the haystack is the beginning of one; else empty. Such haystacks share one
    memory: it is filled once, and each question is asked as soon as its haystack has been added."""
    asked_after: int = 0
    """The length of that beginning. Questions about a shared history are asked in this order."""
    cluster: str = ""
    """A name shared by questions that are related by more than their memory; else empty."""

    def plain(self) -> Any:
        """Return JSON-compatible data. Fields that version 0.1 did not have are left out if they have their default."""
        fields = type(self).model_fields
        unset = {name for name in _LATER_FIELDS if getattr(self, name) == fields[name].default}
        return self.model_dump(mode="json", exclude=unset)

    @property
    def query(self) -> str:
        """The text of the search for memories: without the choices, because one of them is the answer."""
        return self.without_choices or self.question

    @property
    def memory(self) -> str:
        """The name of the memory that the question is about."""
        return self.shared_history or self.haystack

    @property
    def group(self) -> str:
        """The name of the cluster of questions that are not independent: `cluster`, else the memory."""
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
        """Whether this benchmark counts retrieved sessions or retrieved turns."""
        ...

    @property
    def questions(self) -> Sequence[Question]: ...

    def haystack(self, id: str) -> Haystack: ...
