"""The subjects of a bench run: memory providers, and the baselines that their figures are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from memorybench.core.conversation import Memory
from memorybench.core.errors import BadInput
from memorybench.core.trials import Subject

if TYPE_CHECKING:
    from memorybench.core.contracts import Provider
    from memorybench.core.conversation import Haystack, Session, Turn
    from memorybench.core.questions import Question


class Candidate(Struct, frozen=True):
    """A provider or a baseline.

    A baseline is not a provider, because some baselines show the gold evidence, which providers must not see.
    """

    subject: Subject
    provider: Provider | None = None
    spends: bool = False
    """Whether its calls may cost money."""
    remote: bool = False
    """Whether it is called over a network."""
    unordered: bool = False
    """Whether it accepts the sessions of one scope concurrently and in any order."""

    @classmethod
    def baseline(cls, name: str) -> Candidate:
        """Return a baseline: `none`, `placebo`, `full-context` or `oracle`."""
        return cls(Subject(role="baseline", name=name))

    @property
    def name(self) -> str:
        return self.subject.name

    @property
    def ranked(self) -> bool:
        """Whether its memories are ordered by relevance; False for `full-context` and `placebo`."""
        return self.name not in ("full-context", PLACEBO) or self.provider is not None

    @property
    def own_history(self) -> bool:
        """Whether its memories are from the history that the question is about; False for `placebo`."""
        return self.name != PLACEBO or self.provider is not None

    @property
    def cut(self) -> bool:
        """Whether its memories are cut to the search limits; False for `full-context` and `oracle`."""
        return self.provider is not None or self.name in ("none", PLACEBO)


def all_turns(haystack: Haystack) -> tuple[Memory, ...]:
    """Return each turn of a history as a memory."""
    return tuple(_memory(session, id, turn) for session in haystack.sessions for id, turn in session.named_turns())


def remembered(baseline: str, question: Question, turns: tuple[Memory, ...]) -> tuple[Memory, ...]:
    """Return the memories that a baseline finds for a question. `turns` are all turns of the history.

    For `placebo`, the result only has the right size, for estimates; `placebo_memories` returns what is shown.
    """
    if baseline == "oracle":
        return _gold_turns(question, turns)
    return turns[: {"none": 0, PLACEBO: _PLACEBO_TURNS}.get(baseline)]


def _gold_turns(question: Question, turns: tuple[Memory, ...]) -> tuple[Memory, ...]:
    """Return the gold turns, and all turns of gold sessions of which no turn is marked as gold."""
    marked = {memory.sources[0] for memory in turns if memory.sources and memory.id in question.gold_turns}
    whole = set(question.gold_sessions) - marked
    return tuple(
        memory
        for memory in turns
        if memory.id in question.gold_turns or (memory.sources and memory.sources[0] in whole)
    )


PLACEBO = "placebo"
_PLACEBO_TURNS = 10
"""The number of turns that `placebo` shows if the question from the other history has no gold turns."""


def partners(questions: Sequence[Question]) -> dict[str, Question]:
    """Return, by question id, the question about the next history whose gold turns `placebo` shows.

    The same questions always get the same partners. Raise BadInput if there is only one history.
    """
    by_history: dict[str, list[Question]] = {}
    for question in questions:
        by_history.setdefault(question.group, []).append(question)
    if len(by_history) < 2:
        raise BadInput(
            "--providers",
            "the baseline placebo needs a second history: it answers each question from another history",
            expected="questions about two or more histories",
            remedy="select more questions, or leave out placebo",
        )
    histories = list(by_history.values())
    return {
        question.id: following[place % len(following)]
        for own, following in zip(histories, (*histories[1:], histories[0]), strict=True)
        for place, question in enumerate(own)
    }


def placebo_memories(other: Question, turns: tuple[Memory, ...]) -> tuple[Memory, ...]:
    """Return what `placebo` shows: the gold turns of `other`, a question about another history with these turns.

    If `other` has no gold turns, the first turns of that history. The memories have no sources, because two histories
    may have the same ids.
    """
    shown = _gold_turns(other, turns) or turns[:_PLACEBO_TURNS]
    return tuple(Memory(id=f"placebo-{n}", content=memory.content) for n, memory in enumerate(shown, 1))


def _memory(session: Session, id: str, turn: Turn) -> Memory:
    at = turn.at or session.at
    text = f"{turn.speaker or turn.role}: {turn.content}"
    return Memory(id=id, content=f"[{at:%Y-%m-%d}] {text}" if at else text, sources=(session.id, id))
