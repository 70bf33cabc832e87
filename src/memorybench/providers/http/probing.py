"""The marker for services without a status: when the marker is found, earlier documents are searchable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memorybench.core.contracts import Scope
from memorybench.core.conversation import Memory, Session, Turn
from memorybench.core.records import digest

from .documents import Portion, Portioning


@dataclass(frozen=True, slots=True)
class Marker:
    """The same in every process, so that every process recognizes it and adding it again changes nothing."""

    word: str
    text: str
    portions: Sequence[Portion]
    ids: frozenset[str]
    """Ids by which a result may name the marker as its source."""

    @classmethod
    def of(cls, scope: Scope, portioning: Portioning) -> Marker:
        word = f"zq{digest(['marker', scope])[:14]}"
        # a sentence, because services that extract facts ignore a single word
        text = f"{word} is the code word of archive {word}."
        session = Session(id=f"marker {word}", turns=(Turn(role="user", content=text),))
        portions = portioning.portions(scope, session)
        ids = frozenset(id for portion in portions for id in (portion.id, portion.session, *portion.sources))
        return cls(word, text, portions, ids)

    def made(self, memory: Memory) -> bool:
        """Return whether a memory comes from the marker."""
        return self.word in memory.content or not self.ids.isdisjoint(memory.sources or ())

    def without(self, memories: Iterable[Memory]) -> list[Memory]:
        return [memory for memory in memories if not self.made(memory)]
