"""Assertions about what was done with a memory, what it does when it is asked, and what an agent says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from memorybench.core.stores import Capability, StoredFact

from .claims import REHEARSES, SEARCHES, Bounded, Claim, Phase, Selecting, quoted
from .evidence import Call, Evidence, Op
from .matching import Matcher, Some

_EXCERPT = 200
"""Characters of an answer that are quoted."""


class SearchHit(Selecting):
    """That a search finds it, or does not."""

    needs: ClassVar[tuple[Capability, ...]] = ("recall",)
    disturbs: ClassVar[int] = SEARCHES

    kind: Literal["search_hit"]
    query: str = Field(min_length=1)
    limit: int = Field(default=5, ge=1, le=100)
    present: bool = True

    async def fault(self, evidence: Evidence) -> str:
        found = await _search(evidence, self.user, self.query, self.limit)
        hits = [fact for fact in found if self.matches(fact.content)]
        if bool(hits) == self.present:
            return ""
        verb = "finds" if hits else "does not find"
        return f'"{self.query}" {verb} {self.told}{quoted(hits)}'


class SearchRank(Selecting):
    """That a search finds it among the first `at_worst`."""

    needs: ClassVar[tuple[Capability, ...]] = ("recall",)
    disturbs: ClassVar[int] = SEARCHES

    kind: Literal["search_rank"]
    query: str = Field(min_length=1)
    at_worst: int = Field(ge=1, le=100)

    async def fault(self, evidence: Evidence) -> str:
        hits = await _search(evidence, self.user, self.query, self.at_worst)
        if any(self.matches(fact.content) for fact in hits):
            return ""
        return f'{self.told} is not among the first {self.at_worst} that "{self.query}" finds{quoted(hits)}'


class CurateReport(Claim):
    """What a curator proposes: in a dry run of the end state, or in the last dry run that the script made."""

    needs: ClassVar[tuple[Capability, ...]] = ("curate",)
    disturbs: ClassVar[int] = REHEARSES

    kind: Literal["curate_report"]
    of: Literal["end", "script"] = "end"
    removes: tuple[str, ...] = ()
    """Facts of which it must want to be rid."""
    spares: tuple[str, ...] = ()
    """Facts that it must leave alone."""

    @model_validator(mode="after")
    def _says_something(self) -> CurateReport:
        if not self.removes and not self.spares:
            raise ValueError("says nothing about the report; give removes or spares")
        return self

    def refers_to(self) -> Iterable[str]:
        return (*self.removes, *self.spares)

    async def fault(self, evidence: Evidence) -> str:
        names, doomed = evidence.names, await self._doomed(evidence)
        if doomed is None:
            return "no dry run was made"
        for name in self.removes:
            if names.get(name) not in doomed:
                return f'the curator does not propose to remove "{name}"'
        for name in self.spares:
            if names.get(name) in doomed:
                return f'the curator proposes to remove "{name}"'
        return ""

    async def _doomed(self, evidence: Evidence) -> set[str] | None:
        if self.of == "end":
            return {id for proposal in await evidence.proposals() for id in proposal.ids}
        dry = [call for call in evidence.calls if call.op == "curate" and call.done and not call.arguments.get("apply")]
        return set(dry[-1].ids) if dry else None


class CallTrace(Bounded, Matcher):
    """Which calls were made. Without a number, at least one. Refused calls count: the agent has made them."""

    needs: ClassVar[tuple[Capability, ...]] = ()

    kind: Literal["call_trace"]
    op: Some[Op]
    """One operation, or any of several."""
    session: int | None = Field(default=None, ge=1)
    """The n-th session; sessions end at a restart, or at the end of a prompt."""
    finds: Matcher | None = None
    """What one of the facts that it found says."""
    before: Op | None = None
    """It counts only where it comes before the first call of that kind in its session."""

    @field_validator("op", mode="before")
    @classmethod
    def _one_or_several(cls, given: Any) -> Any:
        return (given,) if isinstance(given, str) else given

    async def fault(self, evidence: Evidence) -> str:
        made = [call for call in self._looked_at(evidence.calls) if self._meant(call)]
        if self.admits(len(made)) and (self.bounded or made):
            return ""
        meant = f"with {self.told}" if self.finds is None else f"that find {self.finds.told}"
        return f"{len(made)} calls of {' or '.join(self.op)} {meant} instead of {self.wanted or 'at least 1'}"

    def _looked_at(self, calls: Sequence[Call]) -> Iterable[Call]:
        session, passed = 1, False
        for call in calls:
            if call.op == "restart":
                session, passed = session + 1, False
                continue
            passed = passed or call.op == self.before
            if not passed and self.session in (None, session):
                yield call

    def _meant(self, call: Call) -> bool:
        if call.op not in self.op or call.undone is not None or self.user not in (None, call.user):
            return False
        said = " ".join(str(value) for value in call.arguments.values())
        return self.matches(said) and (self.finds is None or any(self.finds.matches(text) for text in call.texts))


class Answer(Selecting):
    """What a real agent said last. One that says nothing to the purpose has shown no restraint by storing nothing."""

    needs: ClassVar[tuple[Capability, ...]] = ()

    kind: Literal["answer"]
    phases: Some[Phase] = ("real_model",)

    @model_validator(mode="after")
    def _of_an_agent(self) -> Answer:
        if set(self.phases) != {"real_model"}:
            raise ValueError("only a real agent answers; leave phases out")
        if self.rate is not None or self.user is not None:
            raise ValueError("tells nothing of what is stored, and for whom; leave rate and user out")
        return self

    async def fault(self, evidence: Evidence) -> str:
        last = evidence.answers[-1] if evidence.answers else ""
        return "" if self.matches(last) else f'the answer has no {self.told}: "{last[:_EXCERPT]}"'


async def _search(evidence: Evidence, user: str | None, query: str, limit: int) -> list[StoredFact]:
    users = evidence.users if user is None else (user,)
    return [fact for who in users for fact in list(await evidence.store.recall(who, query, limit))[:limit]]
