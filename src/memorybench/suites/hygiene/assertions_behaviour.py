"""Assertions about searches, curation, calls and the answers of an agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from memorybench.core.errors import Lacking
from memorybench.core.stores import Capability, StoredFact
from memorybench.text.quantities import quantity

from .assertions_base import (
    DRY_RUN,
    SEARCH,
    BaseAssertion,
    BoundedAssertion,
    Matcher,
    MatchingAssertion,
    NonEmpty,
    Phase,
)
from .evidence import Call, Evidence, Op, quote_facts

_EXCERPT = 200
"""The number of characters of an answer that messages quote."""


class _Search(MatchingAssertion):
    needs: ClassVar[tuple[Capability, ...]] = ("recall",)
    run_order: ClassVar[int] = SEARCH

    query: str = Field(min_length=1)

    async def search(self, evidence: Evidence, limit: int) -> list[StoredFact]:
        users = evidence.users if self.user is None else (self.user,)
        return [fact for user in users for fact in list(await evidence.store.recall(user, self.query, limit))[:limit]]


class SearchHit(_Search):
    """A search returns a matching fact or, with `present: false`, returns no matching fact."""

    kind: Literal["search_hit"]
    limit: int = Field(default=5, ge=1, le=100)
    present: bool = True

    async def find_problem(self, evidence: Evidence) -> str:
        hits = [fact for fact in await self.search(evidence, self.limit) if self.matches(fact.content)]
        if bool(hits) == self.present:
            return ""
        verb = "finds" if hits else "does not find"
        return f'"{self.query}" {verb} {self.description}{quote_facts(hits)}'


class SearchRank(_Search):
    """A search returns a matching fact among its first `at_worst` results."""

    kind: Literal["search_rank"]
    at_worst: int = Field(ge=1, le=100)

    async def find_problem(self, evidence: Evidence) -> str:
        hits = await self.search(evidence, self.at_worst)
        if any(self.matches(fact.content) for fact in hits):
            return ""
        return f'"{self.query}" does not find {self.description} in the first {self.at_worst}{quote_facts(hits)}'


class CurateReport(BaseAssertion):
    """In a dry run, the store's curator proposes to remove the facts in `removes`, and none of those in `spares`.

    `of`: "end" makes a dry run after the script; "script" uses the last dry run that the script made.
    """

    needs: ClassVar[tuple[Capability, ...]] = ("curate",)
    run_order: ClassVar[int] = DRY_RUN

    kind: Literal["curate_report"]
    of: Literal["end", "script"] = "end"
    removes: tuple[str, ...] = ()
    """Names of facts that the curator must propose to remove."""
    spares: tuple[str, ...] = ()
    """Names of facts that the curator must not propose to remove."""

    @model_validator(mode="after")
    def _check_facts(self) -> CurateReport:
        if not self.removes and not self.spares:
            raise ValueError("no fact is named; add removes or spares with names of facts")
        if self.user is not None:
            raise ValueError("user does not apply to the facts in removes and spares; remove it")
        return self

    def fact_names(self) -> Iterable[str]:
        return (*self.removes, *self.spares)

    async def find_problem(self, evidence: Evidence) -> str:
        if self.of == "end":
            curations = [await evidence.store.curate(user, apply=False) for user in evidence.users]
            ids = {id for curation in curations for proposal in curation.proposals for id in proposal.ids}
        else:
            curate_calls = [call for call in evidence.activity.calls if call.op == "curate" and call.succeeded]
            dry_runs = [call for call in curate_calls if not call.arguments.get("apply")]
            if not dry_runs:
                return "the script made no dry run"
            ids = set(dry_runs[-1].ids)
        for name in self.removes:
            if evidence.activity.names.get(name) not in ids:
                return f'the curator does not propose to remove "{name}"'
        for name in self.spares:
            if evidence.activity.names.get(name) in ids:
                return f'the curator proposes to remove "{name}"'
        return ""


class CallTrace(BoundedAssertion, Matcher):
    """The number of matching calls is within the bounds; without bounds, there is at least one.

    Text conditions are matched against the arguments of a call. Refused and failed calls count too, except with
    `rate: adoption`, because they store and return nothing.
    """

    needs: ClassVar[tuple[Capability, ...]] = ()
    needs_bounds: ClassVar[bool] = False

    kind: Literal["call_trace"]
    op: NonEmpty[Op]
    """Only calls of these operations."""
    session: int | None = Field(default=None, ge=1)
    """Only calls of this session. A restart or the end of a prompt ends a session."""
    finds: Matcher | None = None
    """Only calls that returned a fact whose text matches these conditions."""
    returns_more_than: int | None = Field(default=None, ge=0)
    """Only calls that returned more facts than this number; with `finds`, only facts that match it are counted."""
    before: Op | None = None
    """Only calls before the first call of this operation in the session."""

    @property
    def is_about_writes(self) -> bool:
        return bool({"remember", "update", "forget"} & set(self.op))

    async def find_problem(self, evidence: Evidence) -> str:
        if "home" in evidence.capabilities:
            raise Lacking("the agent writes its memory files itself, so no calls to a store are recorded")
        count = sum(self._is_counted(call) for call in self._calls_in_range(evidence.activity.calls))
        if self.is_within_bounds(count) and (self.has_bounds or count):
            return ""
        more = "" if self.returns_more_than is None else f"more than {self.returns_more_than} facts, "
        condition = f"that find {more}{self.finds.description}" if self.finds else f"with {self.description}"
        if more and self.finds is None:
            condition += f" that return more than {self.returns_more_than} facts"
        calls = f"{quantity(count, 'call')} of {' or '.join(self.op)}"
        return f"{calls} {condition}, expected {self.bounds_text or 'at least 1'}"

    def _calls_in_range(self, calls: Sequence[Call]) -> Iterable[Call]:
        session, is_past = 1, False
        for call in calls:
            if call.op == "restart":
                session, is_past = session + 1, False
                continue
            is_past = is_past or call.op == self.before
            if not is_past and self.session in (None, session):
                yield call

    def _is_counted(self, call: Call) -> bool:
        if call.op not in self.op or call.undone is not None or self.user not in (None, call.user):
            return False
        if self.rate == "adoption" and not call.succeeded:
            return False
        arguments = " ".join(str(value) for value in call.arguments.values())
        found = sum(self.finds is None or self.finds.matches(text) for text in call.texts)
        least = self.returns_more_than if self.returns_more_than is not None else -1 if self.finds is None else 0
        return self.matches(arguments) and found > least


class Answer(MatchingAssertion):
    """The last answer of a real agent matches the conditions. An agent that does nothing at all fails it."""

    needs: ClassVar[tuple[Capability, ...]] = ()

    kind: Literal["answer"]
    phases: NonEmpty[Phase] = ("real_model",)

    @model_validator(mode="after")
    def _check_agent_only(self) -> Answer:
        if set(self.phases) != {"real_model"}:
            raise ValueError("phases must be real_model, because only a real agent gives answers; remove phases")
        if self.rate is not None or self.user is not None:
            raise ValueError("rate and user apply to stored facts, not to an answer; remove them")
        return self

    async def find_problem(self, evidence: Evidence) -> str:
        last = evidence.activity.answers[-1] if evidence.activity.answers else ""
        return "" if self.matches(last) else f'the answer does not match {self.description}: "{last[:_EXCERPT]}"'
