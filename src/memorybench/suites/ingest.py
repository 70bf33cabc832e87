"""Fills a memory with a haystack once, for every question on it, and clears it after the last question."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from functools import cached_property, partial
from itertools import count, takewhile
from typing import Any, Protocol

from msgspec import Struct

from memorybench.core.contracts import Batching, LiveMemory, Provider, Receipt, Restoring, Scope
from memorybench.core.conversation import Found, Haystack, Memory, Session
from memorybench.core.errors import BadInput, Denied, JournalError, ServiceError, Transient
from memorybench.core.plans import Adding, Steps
from memorybench.core.questions import Question
from memorybench.core.records import Record, digest
from memorybench.judging.asking import all_of


class IngestOptions(Struct, frozen=True):
    """How the sessions of a haystack are added to a memory."""

    by_turn: bool = False
    """If True, each turn is added by a call of its own; otherwise each session is."""
    unordered: bool = False
    """Whether the provider accepts the sessions of a scope concurrently and in any order."""
    batch_size: int | None = None
    """Most sessions per batch, for a provider that accepts batches; None: the provider's own maximum."""
    delay: float = 0.0
    """Seconds between two adds or batches, for remote providers."""
    all_recorded: bool = False
    """Whether another run recorded all searches, as for `score`. Nothing is added then."""


DEFAULT_INGEST_OPTIONS = IngestOptions()


class Haystacks(Protocol):
    """The part of a dataset that an ingest needs: its name, and its haystacks by id."""

    @property
    def name(self) -> str: ...

    def haystack(self, id: str) -> Haystack: ...


def history_stages(questions: Iterable[Question]) -> dict[str, list[str]]:
    """Return, by history that questions share, the ids of the haystacks that are beginnings of it, shortest first."""
    lengths: dict[str, dict[str, int]] = {}
    for question in questions:
        if question.shared_history:
            lengths.setdefault(question.shared_history, {})[question.haystack] = question.asked_after
    return {history: sorted(found, key=lambda one: found[one]) for history, found in lengths.items()}


class Retrieved(Record):
    memories: tuple[Memory, ...]
    shortfall: str = ""
    """Which limit of the provider ended the search before it had enough memories; empty if none did."""


class _NotEmpty(ServiceError):
    """Raised if a scope that should be new already contains memories."""

    def __init__(self, refusal: BadInput) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


class _Add(Struct, frozen=True, eq=False, dict=True):
    """One call that adds sessions."""

    sessions: Sequence[Session]
    store: Mapping[str, Any]
    """The step inputs that identify the memory, and how often it was cleared."""
    history: str | None = None
    """The digest of a haystack if the call adds all of its sessions; else None."""

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """The inputs of the step that records this call. Computed when first needed, so that requests start sooner."""
        if self.history is not None:
            return {**self.store, "haystack": self.history}
        if len(self.sessions) == 1:
            return {**self.store, "session": digest(self.sessions[0])}
        return {**self.store, "sessions": [digest(session) for session in self.sessions]}


class _ContentDigest(Struct, frozen=True):
    """The digest of a haystack's content, computed only when a step is looked up."""

    haystack: Haystack

    def plain(self) -> str:
        return digest(self.haystack)


class Ingest:
    """Fills and clears one provider's memory with the haystacks of one dataset."""

    def __init__(
        self,
        run: str,
        dataset: Haystacks,
        provider: Provider,
        spends: bool,
        ingest_options: IngestOptions,
        pending: Counter[str],
        scope_suffix: str = "",
        stages: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Prepare to fill memories for the run `run`.

        `spends`: calls of the provider may cost money. `pending` counts, by haystack, the questions that are not
        answered yet. `stages` maps a shared history to the haystacks that are beginnings of it, shortest first. They
        share one memory: the further sessions of the next haystack are added after all questions about the previous one
        have been searched.

        `scope_suffix` is random and makes the scopes of a live memory unique: another results folder may have a run of
        the same name.
        """
        self._live = provider if isinstance(provider, LiveMemory) else None
        self._run = f"{run}-{scope_suffix}" if scope_suffix and self._live is not None else run
        self._dataset = dataset
        self._provider = provider
        # checked once, because isinstance with a Protocol is slow
        self._batching = provider if isinstance(provider, Batching) else None
        self._restoring = provider if isinstance(provider, Restoring) else None
        # its store id is new in every process: no recorded add counts, and a clear need not be recorded
        self._in_process = self._batching is not None and self._batching.batch_size is None
        self._spends = spends
        self._options = ingest_options
        self._concurrent = ingest_options.unordered and not ingest_options.delay
        self._pending = pending
        self._stages = stages or {}
        self._history_of = {stage: history for history, found in self._stages.items() for stage in found}
        self._unasked = Counter(pending)
        self._searched: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        """By history: an event that is set after each search."""
        self._receipts: dict[str, list[Receipt]] = {}
        """By history: the receipts of the sessions added so far."""
        self._digests: dict[str, str] = {}
        self._shortfalls: set[str] = set()
        """The shortfalls that are already noted in the run."""
        self._fills: dict[str, asyncio.Future[None]] = {}
        self._stored: set[str] = set()
        """The ids of memories (haystacks or histories) that may have sessions of this run."""
        self._cleared: set[str] = set()
        self._clears: Counter[str] = Counter()
        """How often this process cleared each memory. Counted only if the memory is in this process."""

    def scope(self, haystack: str) -> Scope:
        memory = self._history_of.get(haystack, haystack)
        return Scope(run=self._run, benchmark=self._dataset.name, provider=self._provider.subject.name, haystack=memory)

    async def search(self, steps: Steps, haystack: str, query: str, limit: int) -> Sequence[Memory]:
        """Return matching memories, best first.

        The memory is filled before the first search that is not recorded.
        """
        provider, scope = self._provider, self.scope(haystack)

        async def search() -> Retrieved:
            memories = await provider.search(scope, query, limit)
            shortfall = memories.shortfall if isinstance(memories, Found) else ""
            found = memories[:limit]
            if self._options.by_turn:
                found = _with_whole_sources(found, self._dataset.haystack(haystack))
            return Retrieved(memories=tuple(found), shortfall=shortfall)

        try:
            retrieved = await steps.once(
                "search",
                self._search_inputs(steps, haystack, query, limit),
                search,
                Retrieved,
                on=provider.subject,
                paid=self._spends,
                after=lambda: self.fill(steps, haystack),
            )
        finally:
            if haystack in self._history_of:
                self._unasked[haystack] -= 1
                self._searched[scope.haystack].set()
        if retrieved.shortfall and retrieved.shortfall not in self._shortfalls:
            self._shortfalls.add(retrieved.shortfall)
            await steps.note("search cut short", retrieved.shortfall)
        return retrieved.memories

    def _search_inputs(self, steps: Steps, id: str, query: str, limit: int) -> dict[str, Any]:
        """Return the inputs of a search step.

        They name the content of the scope, not the scope itself, so that another run can reuse the step.
        """
        inputs = {"provider": self._provider.subject, "haystack": self._digest(id), "query": query, "limit": limit}
        if not self._options.by_turn:
            return self._with_recorded_name(steps, id, inputs)
        # single turns are not searched as sessions are, but the steps of earlier versions do not say which they are
        earlier = self._with_recorded_name(steps, id, inputs)
        is_known = steps.is_inherited if self._options.all_recorded else steps.is_recorded
        return (
            earlier if is_known("search", earlier) else self._with_recorded_name(steps, id, inputs | {"by_turn": True})
        )

    def _with_recorded_name(self, steps: Steps, id: str, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return the inputs of a search step with the name of the haystack that recorded steps have."""
        haystack = self._dataset.haystack(id)
        if self._digests[id] == haystack.fingerprint:
            # runs of earlier versions, and those of paid providers, name the content
            by_content = {**inputs, "haystack": _ContentDigest(haystack)}
            if not steps.is_inherited("search", inputs) and steps.is_inherited("search", by_content):
                return by_content
        return inputs

    def _digest(self, id: str) -> str:
        """Return the digest of a haystack's content, or its fingerprint if no step on it costs money."""
        if id not in self._digests:
            haystack = self._dataset.haystack(id)
            fingerprint = None if self._spends else haystack.fingerprint
            self._digests[id] = fingerprint or digest(haystack)
        return self._digests[id]

    async def fill(self, steps: Steps, haystack: str) -> None:
        """Add all sessions of the haystack, and return when they are searchable. All its questions share one fill."""
        fill = self._fills.get(haystack)
        if fill is not None:
            await asyncio.shield(fill)
            return
        # the first question ingests in its own task: a separate task would continue after the run is stopped
        fill = self._fills[haystack] = asyncio.get_running_loop().create_future()
        try:
            await self._fill(steps, haystack)
            fill.set_result(None)
        except asyncio.CancelledError:
            fill.cancel()
            raise
        except BaseException as error:
            fill.set_exception(error)
            fill.exception()  # marks it as retrieved: there may be no other question that waits for it
            raise

    async def _fill(self, steps: Steps, id: str) -> None:
        provider, scope = self._provider, self.scope(id)
        if id in self._history_of:
            await self._prepare_stage(steps, scope, id)
        store = self._store(steps, scope)
        adds = self._adds(id, store)
        earlier = self._receipts.get(scope.haystack, [])
        adds = adds[len(earlier) :]
        self._cleared.discard(scope.haystack)
        recorded = (
            () if self._in_process else await self._restore_recorded(steps, scope, adds)
        )  # before the first add, which may need these receipts
        if not recorded and not earlier:
            await self._check_empty(steps, scope, store)
        added, total = 0, sum(len(add.sessions) for add in adds)

        def show_added(sessions: int) -> None:
            nonlocal added
            added += sessions
            unit = "turns" if self._options.by_turn else "sessions"
            steps.show_adding(
                Adding(scope.benchmark, scope.provider, id, added, total, max(1, len(self._pending)), unit)
            )

        async def add_one(add: _Add) -> Receipt:
            receipt = await self._add(steps, scope, add)
            show_added(len(add.sessions))
            return receipt

        show_added(0)
        receipts: list[Receipt] = []
        if self._concurrent:
            receipts = await all_of(*(add_one(add) for add in adds))
        else:
            for place, add in enumerate(adds):
                if place and self._options.delay and add not in recorded:
                    await asyncio.sleep(self._options.delay)
                receipts.append(await add_one(add))
        if self._restoring is not None:
            self._restoring.restore(scope, receipts)
        await steps.once(
            "wait_until_searchable",
            {**store, "receipts": digest(receipts)},
            lambda: provider.wait_until_searchable(scope, receipts),
            type(None),
            on=provider.subject,
        )
        if id in self._history_of:
            self._receipts[scope.haystack] = [*earlier, *receipts]

    async def _prepare_stage(self, steps: Steps, scope: Scope, id: str) -> None:
        """Wait until every question about a shorter beginning of the same history has been searched.

        If an earlier process added sessions that come after this beginning, clear the memory, so that they are not
        found.
        """
        stages = self._stages[scope.haystack]
        shorter = stages[: stages.index(id)]
        while any(self._unasked[stage] > 0 for stage in shorter):
            self._searched[scope.haystack].clear()
            await self._searched[scope.haystack].wait()
        if self._in_process or scope.haystack in self._receipts:
            return
        store = self._store(steps, scope)
        beyond = self._adds(stages[-1], store)[len(self._adds(id, store)) :]
        if any(steps.is_recorded("add", add.inputs) for add in beyond):
            await self._clear_recorded(steps, scope)
            self._stored.discard(scope.haystack)

    async def check_first(self, steps: Steps, haystack: str) -> None:
        """Raise BadInput if the scope of this haystack, the first one, is not empty. Called before anything is added.

        Only a live memory is checked. An error of the memory service is ignored here: the trials will fail and report
        it.
        """
        scope = self.scope(haystack)
        if self._live is None or steps.is_recorded("check_empty", {"scope": scope.name}):
            return
        try:
            await self._check_empty(steps, scope, {})
        except _NotEmpty as error:
            raise error.refusal from None
        except ServiceError:
            pass  # the service may answer later; if not, its trials fail and say why

    async def _check_empty(self, steps: Steps, scope: Scope, store: Mapping[str, Any]) -> None:
        """Raise _NotEmpty if the scope of a live memory contains memories that this run did not add."""
        provider, live = self._provider, self._live
        if live is None:
            return
        new_scope = {"scope": scope.name}
        is_new = not steps.is_recorded("check_empty", new_scope)

        async def check() -> None:
            found = await live.count_memories(scope)
            if found and not is_new:  # this run added them before it was interrupted
                await self._clear_scope(scope)
                found = await live.count_memories(scope)
            if found:
                raise _NotEmpty(
                    BadInput(
                        f'provider "{scope.provider}"',
                        f"already has {found} memories in the new scope {scope.name}",
                        expected="no memories, because nothing was added to this scope yet",
                        remedy="check that every request of the provider sends the scope",
                    )
                )

        inputs = new_scope if is_new else store
        await steps.once("check_empty", inputs, check, type(None), on=provider.subject)

    def _adds(self, id: str, store: Mapping[str, Any]) -> list[_Add]:
        stages: Sequence[str] = (id,)
        if id in self._history_of:
            found = self._stages[self._history_of[id]]
            stages = found[: found.index(id) + 1]
        sizes = [self._batching.batch_size, self._options.batch_size] if self._batching is not None else [1]
        size = min((size for size in sizes if size is not None), default=None)
        adds: list[_Add] = []
        known: frozenset[str] = frozenset()
        for stage in stages:
            sessions = [session for session in in_order(self._dataset.haystack(stage)) if session.id not in known]
            known |= {session.id for session in sessions}
            if self._options.by_turn:
                sessions = [piece for session in sessions for piece in _split_by_turn(session)]
            if size is None:
                adds.append(_Add(sessions, store, self._digest(stage)))
            else:
                adds += [_Add(sessions[start : start + size], store) for start in range(0, len(sessions), size)]
        return adds

    async def _add(self, steps: Steps, scope: Scope, add: _Add) -> Receipt:
        work: Callable[[], Awaitable[Receipt]]
        if self._batching is None or (len(add.sessions) == 1 and not self._in_process):
            (session,) = add.sessions
            work = partial(self._provider.add, scope, session)
        else:
            work = partial(self._batching.add_batch, scope, add.sessions)
        try:
            receipt = await steps.once("add", add.inputs, work, Receipt, on=self._provider.subject, paid=self._spends)
        except ServiceError as error:
            cause = error.__cause__ if isinstance(error.__cause__, Transient) else None  # after the last try
            if error.may_leave_data or (cause is not None and (cause.uncertain or cause.may_leave_data)):
                self._stored.add(scope.haystack)  # the session, or a part of it, may be stored
            raise
        self._stored.add(scope.haystack)
        return receipt

    async def _restore_recorded(self, steps: Steps, scope: Scope, adds: Sequence[_Add]) -> Sequence[_Add]:
        """Give the provider the receipts that an earlier process recorded; return the adds they belong to."""

        def is_recorded(add: _Add) -> bool:
            return steps.is_recorded("add", add.inputs)

        # in order: no add after the first missing one is recorded
        recorded = list(filter(is_recorded, adds) if self._concurrent else takewhile(is_recorded, adds))
        for add in recorded:
            receipt = await self._add(steps, scope, add)
            if self._restoring is not None:
                self._restoring.restore(scope, [receipt])
        return recorded

    async def leave(self, steps: Steps, haystack: str) -> None:
        """Count a question as done, also if it failed. After the last question about a memory, clear that memory.

        Haystacks that are stages of one history share a memory.
        """
        self._pending[haystack] -= 1
        if all(self._pending[stage] <= 0 for stage in self._same_memory(haystack)):
            await self.clear(steps, haystack)

    def _same_memory(self, haystack: str) -> Sequence[str]:
        """Return all haystacks whose sessions are in the same memory as those of this one."""
        return self._stages.get(self._history_of.get(haystack, ""), (haystack,))

    async def clear(self, steps: Steps, haystack: str) -> None:
        """Clear the memory of a haystack. If that fails, results stay valid and a note in the run names the scope."""
        scope = self.scope(haystack)
        if scope.haystack in self._cleared:
            return
        try:
            if not self._in_process:
                await self._clear_recorded(steps, scope)
            elif any(stage in self._fills for stage in self._same_memory(haystack)):
                self._clears[scope.haystack] += 1
                await self._clear_scope(scope)
        except JournalError:
            raise
        except Exception as error:
            await steps.note("leaked scope", f"{scope.provider} {scope.name}: {error}")
        finally:
            for stage in self._same_memory(haystack):
                self._fills.pop(stage, None)
            self._receipts.pop(scope.haystack, None)
            self._stored.discard(scope.haystack)
        self._cleared.add(scope.haystack)

    async def _clear_recorded(self, steps: Steps, scope: Scope) -> None:
        """Clear a memory that is kept after the process ends, if this or an earlier process filled it."""
        store, haystack = self._store(steps, scope), scope.haystack
        longest = self._stages[haystack][-1] if haystack in self._stages else haystack
        if haystack not in self._stored:
            await self._restore_recorded(steps, scope, self._adds(longest, store))
        unfinished = {**store, "generation": store["generation"] - 1}
        if (
            haystack not in self._stored
            and steps.is_recorded("clearing", unfinished)
            and not steps.is_recorded("clear", unfinished)
        ):
            store = unfinished  # an earlier process was killed before it cleared the scope
            await self._restore_recorded(steps, scope, self._adds(longest, store))
        if haystack in self._stored:  # otherwise nothing was added
            # recorded before the clear: after a kill between the two, the memory must not count as filled
            await steps.once("clearing", store, _do_nothing, type(None))
            clear = partial(self._clear_scope, scope)
            await steps.once("clear", store, clear, type(None), on=self._provider.subject)

    async def _clear_scope(self, scope: Scope) -> None:
        try:
            await self._provider.clear(scope)
        except Denied as error:
            raise ServiceError(str(error)) from error  # a key without the right to delete can still search

    def _store(self, steps: Steps, scope: Scope) -> dict[str, Any]:
        """Return the step inputs that identify the store to which sessions are added.

        They change after a clear or when `store_id` changes; then recorded adds no longer match, and sessions are added
        again.
        """
        for generation in count(self._clears[scope.haystack]):
            # "incarnation" is the old name of store_id; a new one would make recorded adds unknown
            store = {"scope": scope.name, "incarnation": self._provider.store_id, "generation": generation}
            if not steps.is_recorded("clearing", store):
                break
        return store


async def _do_nothing() -> None:
    pass


def in_order(haystack: Haystack) -> Sequence[Session]:
    """Return the sessions by date, or in the order of the haystack if any session has no date."""
    dated = [
        (session.at if session.at.tzinfo else session.at.replace(tzinfo=UTC), session)
        for session in haystack.sessions
        if session.at is not None
    ]
    if len(dated) < len(haystack.sessions):
        return haystack.sessions
    return [session for _, session in sorted(dated, key=lambda pair: pair[0])]


def _split_by_turn(session: Session) -> list[Session]:
    """Split a session into one session per turn. Turns keep their ids, because evidence names them."""
    return [
        Session(id=f"{session.id}#{n}", turns=(replace(turn, id=id),), at=turn.at or session.at)
        for n, (id, turn) in enumerate(session.named_turns(), 1)
    ]


def _with_whole_sources(memories: Sequence[Memory], haystack: Haystack) -> list[Memory]:
    """Return the memories; a source that is a session of one turn is replaced by the turn and its whole session."""
    whole = {
        part.id: (session.id, str(part.turns[0].id))
        for session in haystack.sessions
        for part in _split_by_turn(session)
    }
    found = []
    for memory in memories:
        sources = dict.fromkeys(id for source in memory.sources or () for id in whole.get(source, (source,)))
        found.append(memory.model_copy(update={"sources": tuple(sources) or None}))
    return found


def still_pending(questions: Iterable[tuple[str, str]], scored: Collection[str]) -> Counter[str]:
    """Count the questions of each haystack that are not scored yet. `questions` are (trial key, haystack id) pairs."""
    return Counter(haystack for trial, haystack in questions if trial not in scored)
