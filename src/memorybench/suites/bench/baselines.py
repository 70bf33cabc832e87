"""What is compared: memory providers, and the baselines that put their figures into proportion."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memorybench.core.conversation import Memory
from memorybench.core.errors import BadInput
from memorybench.core.trials import Subject

if TYPE_CHECKING:
    from memorybench.core.contracts import Provider
    from memorybench.core.conversation import Haystack, Session, Turn
    from memorybench.core.questions import Question


@dataclass(frozen=True, slots=True)
class Candidate:
    """A provider, or a baseline that the suite makes itself: no provider ever sees the gold."""

    subject: Subject
    provider: Provider | None = None
    spends: bool = False
    """Its calls may cost money."""
    remote: bool = False
    """It is reached over a network."""
    unordered: bool = False
    """It accepts sessions of one scope concurrently and in any order."""

    @classmethod
    def baseline(cls, name: str) -> Candidate:
        """`none`, `placebo`, `full-context` or `oracle`."""
        return cls(Subject(role="baseline", name=name))

    @property
    def name(self) -> str:
        return self.subject.name

    @property
    def ranked(self) -> bool:
        """Whether its order is a ranking. The order of the whole history is not, nor that of another history."""
        return self.name not in ("full-context", PLACEBO) or self.provider is not None

    @property
    def own_history(self) -> bool:
        """Whether its memories are from the history that the question is about."""
        return self.name != PLACEBO or self.provider is not None

    @property
    def cut(self) -> bool:
        """Whether it is cut to as many memories as every provider."""
        return self.provider is not None or self.name in ("none", PLACEBO)


def all_turns(haystack: Haystack) -> tuple[Memory, ...]:
    """Each turn of a history as a memory."""
    return tuple(_memory(session, turn, n) for session in haystack.sessions for n, turn in enumerate(session.turns, 1))


def remembered(baseline: str, question: Question, turns: tuple[Memory, ...]) -> tuple[Memory, ...]:
    """The memories that a baseline returns, from all turns of the history."""
    return BASELINES[baseline](question, turns)


def _gold_turns(question: Question, turns: tuple[Memory, ...]) -> tuple[Memory, ...]:
    """The gold turns; all turns of the gold sessions where only these are known."""
    return tuple(
        memory
        for memory in turns
        if memory.id in question.gold_turns
        or (not question.gold_turns and memory.sources and memory.sources[0] in question.gold_sessions)
    )


PLACEBO = "placebo"
_PLACEBO_TURNS = 10
"""Turns of a history that are shown where the other question has no gold turns."""


def partners(questions: Sequence[Question]) -> dict[str, Question]:
    """Return for each question, by its id, a question about another history: the same each time.

    Raise BadInput if there is only one history.
    """
    by_history: dict[str, list[Question]] = {}
    for question in questions:
        by_history.setdefault(question.group, []).append(question)
    if len(by_history) < 2:
        raise BadInput(
            "--providers", "placebo needs a second history", expected="questions about two histories or more"
        )
    histories = list(by_history.values())
    return {
        question.id: following[place % len(following)]
        for own, following in zip(histories, (*histories[1:], histories[0]), strict=True)
        for place, question in enumerate(own)
    }


def placebo_memories(other: Question, turns: tuple[Memory, ...]) -> tuple[Memory, ...]:
    """The gold turns of a question about another history: memories of the usual form that do not help.

    They have no sources, because the ids of two histories may be the same.
    """
    shown = _gold_turns(other, turns) or turns[:_PLACEBO_TURNS]
    return tuple(Memory(id=f"placebo-{n}", content=memory.content) for n, memory in enumerate(shown, 1))


BASELINES: Mapping[str, Callable[[Question, tuple[Memory, ...]], tuple[Memory, ...]]] = {
    "none": lambda question, turns: (),
    PLACEBO: lambda question, turns: turns[:_PLACEBO_TURNS],  # their size, for estimates: `placebo_memories` are asked
    "full-context": lambda question, turns: turns,
    "oracle": _gold_turns,
}


def _memory(session: Session, turn: Turn, n: int) -> Memory:
    id = turn.id or f"{session.id}:{n}"
    at = turn.at or session.at
    text = f"{turn.speaker or turn.role}: {turn.content}"
    return Memory(id=id, content=f"[{at:%Y-%m-%d}] {text}" if at else text, sources=(session.id, id))
