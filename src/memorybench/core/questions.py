"""Benchmark questions and datasets."""

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
    """One requirement of a rubric. A judge scores how well a response meets it: 0, 0.5 or 1."""

    text: str
    weight: float = 1.0


class Question(Case):
    """A question with its gold answers. Its type is the label `question_type`."""

    haystack: str
    question: str
    answers: tuple[str, ...] = ()
    """The gold answers; empty if there are none. `answer_mode` says whether a right response needs one or all of
    them."""
    answer_mode: Literal["any", "all"] = "any"
    """Whether a right response must state any one of the answers, or all of them."""
    rubric: tuple[RubricItem, ...] = ()
    """Requirements. If there are any, a judge scores the response by them instead of comparing it with the answers."""
    must_contain: tuple[str, ...] = ()
    """Texts that a right response must contain. Code decides this, not a judge."""
    must_not_contain: tuple[str, ...] = ()
    """Texts that a right response must not contain. Retrieved memories should not contain them either."""
    forbidden: tuple[str, ...] = ()
    """The ids of sessions and turns that a search should not return memories of."""
    asked_at: datetime | None = None
    gold_sessions: tuple[str, ...] = ()
    gold_turns: tuple[str, ...] = ()
    abstain: bool = False
    """True if the haystack does not contain the answer. A right response then says that it does not know."""
    choices: tuple[Choice, ...] = ()
    """The choices of a multiple-choice question. The text of the question lists them, too."""
    without_choices: str = ""
    """The text of a multiple-choice question without its choices; empty for other questions."""
    shared_history: str = ""
    """The name of a longer history that the haystack is the beginning of; empty if there is none. All beginnings of a
    history share one memory, which is filled once. A question is asked as soon as its haystack has been added."""
    asked_after: int = 0
    """How many sessions or turns of the shared history are in the memory when the question is asked. Questions with a
    smaller number are asked first."""
    cluster: str = ""
    """A name that dependent questions about different memories have in common; empty if there is none."""

    def plain(self) -> Any:
        """Return JSON-compatible data. Fields that were added later are left out if they have their default."""
        fields = type(self).model_fields
        unset = {name for name in _LATER_FIELDS if getattr(self, name) == fields[name].default}
        return self.model_dump(mode="json", exclude=unset)

    @property
    def query(self) -> str:
        """The text to search the memory for: the question without its choices, one of which is the answer."""
        return self.without_choices or self.question

    @property
    def memory(self) -> str:
        """The name of the memory to search: the shared history if there is one, otherwise the haystack."""
        return self.shared_history or self.haystack

    @property
    def group(self) -> str:
        """The cluster of the question for statistics: `cluster` if set, otherwise `memory`."""
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
        """Whether retrieval metrics compare retrieved sessions or retrieved turns with the gold ones."""
        ...

    @property
    def questions(self) -> Sequence[Question]: ...

    def haystack(self, id: str) -> Haystack: ...
