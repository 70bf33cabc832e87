"""What is compared: memory providers, and the baselines that say what their figures are worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from memorybench.core.contracts import Provider
from memorybench.core.conversation import Haystack, Memory, Session, Turn
from memorybench.core.questions import Question
from memorybench.core.trials import Subject


@dataclass(frozen=True, slots=True)
class Arm:
    """A provider, or a baseline that the suite makes itself: gold never passes through the provider contract."""

    subject: Subject
    provider: Provider | None = None
    spends: bool = False
    """Its calls may cost money."""
    remote: bool = False
    """It is reached over a network."""
    unordered: bool = False
    """It may be fed sessions of one scope side by side, in any order."""

    @classmethod
    def baseline(cls, name: str) -> Arm:
        """`none`, `full-context` or `oracle`."""
        return cls(Subject(role="baseline", name=name))

    @property
    def name(self) -> str:
        return self.subject.name

    @property
    def ranked(self) -> bool:
        """Whether its order means anything. The whole history has no ranking to judge."""
        return self.name != "full-context" or self.provider is not None

    @property
    def cut(self) -> bool:
        """Whether it gets the same k as every provider."""
        return self.provider is not None or self.name == "none"


def remembered(baseline: str, question: Question, haystack: Haystack) -> tuple[Memory, ...]:
    """What a baseline hands over."""
    return _KNOWS[baseline](question, haystack)


def _all_turns(question: Question, haystack: Haystack) -> tuple[Memory, ...]:
    return tuple(_memory(session, turn, n) for session in haystack.sessions for n, turn in enumerate(session.turns, 1))


def _gold_turns(question: Question, haystack: Haystack) -> tuple[Memory, ...]:
    """The gold turns; all turns of the gold sessions where only these are known."""
    return tuple(
        memory
        for memory in _all_turns(question, haystack)
        if memory.id in question.gold_turns
        or (not question.gold_turns and memory.sources and memory.sources[0] in question.gold_sessions)
    )


_KNOWS: Mapping[str, Callable[[Question, Haystack], tuple[Memory, ...]]] = {
    "none": lambda question, haystack: (),
    "full-context": _all_turns,
    "oracle": _gold_turns,
}


def _memory(session: Session, turn: Turn, n: int) -> Memory:
    id = turn.id or f"{session.id}:{n}"
    at = turn.at or session.at
    said = f"{turn.speaker or turn.role}: {turn.content}"
    return Memory(id=id, content=f"[{at:%Y-%m-%d}] {said}" if at else said, sources=(session.id, id))
