"""Performs steps and records their results. A step whose result is recorded is never performed again."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from msgspec import Struct
from pydantic import TypeAdapter

from memorybench.core.errors import JournalError, Malformed, MemorybenchError
from memorybench.core.plans import Adding, Limits, StepOptions, Watch
from memorybench.core.records import canonical
from memorybench.core.spending import NOTHING, Spending, Tally
from memorybench.core.timing import excluded
from memorybench.core.trials import Subject
from memorybench.journal.rows import Step
from memorybench.journal.run_writer import RunWriter, now
from memorybench.journal.sqlite import AFTER_DISK_FULL, is_disk_full

from .budget import Budget
from .leases import lease
from .limiter import RateLimiter
from .retries import RetryState, with_retries
from .stopping import Interrupted, Stop

if TYPE_CHECKING:
    from .observing import TrialObserver

T = TypeVar("T")

# true while a step's `after` runs: its steps serve other jobs too, so they are not evidence of this job's outcome
_in_prerequisite: ContextVar[bool] = ContextVar("memorybench_in_prerequisite", default=False)


class StepRequest(Struct, Generic[T]):
    """A step that a job asks for: its name, its inputs, and the work to perform."""

    key: str
    name: str
    inputs: str
    work: Callable[[], Awaitable[T]]
    adapter: TypeAdapter[T]
    observer: TrialObserver | None
    on: Subject | None = None
    paid: bool = False
    highest_cost: Callable[[], float | None] | None = None
    shared: bool = False
    after: Callable[[], Awaitable[object]] | None = None


class RunSteps:
    """Performs the steps of all jobs of a run. If several jobs ask for the same step, it is performed once."""

    def __init__(
        self,
        run_writer: RunWriter,
        limits: Mapping[str, Limits],
        budget: Budget,
        stopping: Stop,
        concurrency: int,
        watch: Watch | None = None,
    ) -> None:
        self.run_writer = run_writer
        self.watch = watch
        self._limits = limits
        self._limiters: dict[str, RateLimiter] = {}
        self._budget = budget
        self.stopping = stopping
        self._slots = asyncio.Semaphore(concurrency)
        self._in_flight: dict[str, asyncio.Future[str]] = {}
        self._failed: dict[str, MemorybenchError] = {}

    async def once(self, request: StepRequest[T]) -> T:
        key, adapter = request.key, request.adapter
        recorded = self.run_writer.result(key)
        if recorded is not None:
            return adapter.validate_json(recorded)
        flight = self._in_flight.get(key)
        if flight is not None:
            return adapter.validate_json(await asyncio.shield(flight))
        if key in self._failed:
            # jobs that share a step share its failure: a failed ingest is not repeated by each question
            raise _without_frames(self._failed[key])
        flight = self._in_flight[key] = asyncio.get_running_loop().create_future()
        try:
            value, result = await self._perform(request)
            flight.set_result(result)
            return value
        except asyncio.CancelledError:
            flight.cancel()
            raise
        except BaseException as error:
            if isinstance(error, MemorybenchError):
                self._failed[key] = _without_frames(error)
            flight.set_exception(error)
            flight.exception()  # marks it as retrieved: there may be no other job that waits for it
            raise
        finally:
            del self._in_flight[key]

    async def _perform(self, request: StepRequest[T]) -> tuple[T, str]:
        if not (self.run_writer.is_shared and (request.paid or request.shared)):
            return await self._reuse_or_call(request)
        # other units of work, which other processes perform, may need the same step
        async with lease(self.run_writer, f"step {request.key}", self.stopping):
            recorded = self.run_writer.result(request.key)
            if recorded is not None:
                return request.adapter.validate_json(recorded), recorded
            return await self._reuse_or_call(request)

    async def _reuse_or_call(self, request: StepRequest[T]) -> tuple[T, str]:
        reusable = self.run_writer.find_reusable(request.key, shared=request.shared)
        if reusable is not None:
            # an earlier run may have known fewer secrets
            reusable = reusable._replace(result=self.run_writer.redact_json(reusable.result))
            await self.run_writer.record_step(reusable)
            return request.adapter.validate_json(reusable.result), reusable.result
        self.stopping.check()
        if request.after is not None:
            token = _in_prerequisite.set(True)
            try:
                await request.after()
            finally:
                _in_prerequisite.reset(token)
        # The slot is held until the result is on disk, so a crash leaves at most `concurrency` calls to repeat.
        async with self._slots:
            self.stopping.check()
            return await self._call(request)

    async def _call(self, request: StepRequest[T]) -> tuple[T, str]:
        subject = request.on.name if request.on else ""
        state, started = RetryState(), now()
        with Tally() as tally:
            attempts = _Attempts(request, self.run_writer, self._budget, state, tally)
            await attempts.begin()

            async def work() -> T:
                self.stopping.check()  # the limiter may have made us wait
                with excluded():
                    await attempts.begin()
                return await request.work()

            try:
                value = await with_retries(work, self._limiter(request.on), state, attempts.end)
                value, result = self._as_recorded(value, request.adapter)
            except (Exception, Interrupted) as error:
                await attempts.end(error)
                self._observe(request, state, started, attempts.spent + tally.spent, error=error)
                if is_disk_full(error):  # not a failure of the subject: stop the run, so that it is resumed
                    raise JournalError(f"{self.run_writer.journal.name}: {error}; {AFTER_DISK_FULL}") from error
                raise
        self._budget.take(tally.spent, attempts.highest_cost)
        ended = time.time_ns()
        await self.run_writer.record_step(
            Step(
                key=request.key,
                name=request.name,
                subject=subject,
                inputs=request.inputs,
                result=result,
                started=started,
                seconds=state.seconds,
                tries=state.tries - attempts.tries,
                uncertain=state.uncertain - attempts.uncertain,
                spent=tally.spent,
                attempt=attempts.id,
                shared=request.shared,
            )
        )
        # after the commit: a step that a resumed run performs again was not observed before
        self._observe(request, state, started, attempts.spent + tally.spent, result=result, ended=ended)
        return value, result

    def _observe(
        self,
        request: StepRequest[T],
        state: RetryState,
        started: str,
        spent: Spending,
        *,
        result: str | None = None,
        ended: int | None = None,
        error: BaseException | None = None,
    ) -> None:
        if request.observer is None or isinstance(error, Interrupted):
            return
        from .observing import EndedStep

        with suppress(Exception):  # an error in an observer must not stop the run
            request.observer.add_step(
                EndedStep(
                    name=request.name,
                    subject=request.on,
                    inputs=request.inputs,
                    result=result,
                    started=started,
                    ended=ended or time.time_ns(),
                    seconds=state.seconds,
                    tries=state.tries,
                    spent=spent,
                    error=error,
                )
            )

    def _limiter(self, subject: Subject | None) -> RateLimiter:
        key = subject.key if subject else ""
        limiter = self._limiters.get(key)
        if limiter is None:
            name = f"{subject.role} {subject.name}" if subject else "step"
            shared_by = self.run_writer if self.run_writer.is_shared else None
            limiter = self._limiters[key] = RateLimiter(name, self._limits.get(key, Limits()), self.stopping, shared_by)
        return limiter

    def _as_recorded(self, value: T, adapter: TypeAdapter[T]) -> tuple[T, str]:
        """Remove secrets from a value.

        Return the value as a resumed run would read it from the journal, and its JSON.
        """
        try:
            result = adapter.dump_json(value).decode()
        except ValueError as error:  # a lone surrogate, for example
            raise Malformed(f"the result contains text that cannot be stored: {error}") from error
        redacted = self.run_writer.redact_json(result)
        return (value, result) if redacted == result else (adapter.validate_json(redacted), redacted)


class _Attempts:
    """Records the attempts at a step, so that neither a crash nor a later success hides what they may have cost.

    An attempt is on disk before its first call. It ends if a reply is lost, because the service may have charged for
    it; the next call is then another attempt. Free steps have no attempts.
    """

    def __init__(
        self, request: StepRequest[Any], run_writer: RunWriter, budget: Budget, state: RetryState, tally: Tally
    ) -> None:
        self._request = request
        self._run_writer = run_writer
        self._budget = budget
        self._state = state
        self._tally = tally
        self.highest_cost: float | None = None
        """The most that one call can cost, in US dollars; None if it is unknown."""
        self.id: int | None = None
        """The id of the attempt that has begun and not ended."""
        self.tries = 0
        """The number of tries of the attempts that have ended."""
        self.uncertain = 0
        """How many of the attempts that have ended may have been charged without a result."""
        self.spent = NOTHING
        """What the attempts that have ended have spent."""

    async def begin(self) -> None:
        """If the step is paid, begin an attempt unless one has begun.

        Raise Blocked if the budget is used up, unless the call is free, as those of local models are.
        """
        request = self._request
        if not request.paid:
            return
        if self.id is None:
            self.highest_cost = request.highest_cost() if request.highest_cost else None
        if self.highest_cost != 0:
            self._budget.allow()
        if self.id is None:
            subject = request.on.name if request.on else ""
            self.id = await self._run_writer.record_attempt(request.key, request.name, subject, self.highest_cost)

    async def end(self, error: BaseException) -> None:
        """Record that the attempt failed, if one has begun, and what it cost."""
        if self.id is None:
            return
        id, spent = self.id, self._tally.spent
        self.id, self._tally.spent = None, NOTHING
        tries, uncertain = self._state.tries - self.tries, self._state.uncertain - self.uncertain
        self.tries, self.uncertain, self.spent = self._state.tries, self._state.uncertain, self.spent + spent
        self._budget.take(spent, self.highest_cost)
        await self._run_writer.record_failure(id, str(error), tries=tries, uncertain=uncertain, spent=spent)


class JobSteps:
    """The `Steps` of one job. Collects the keys of the steps that its outcome depends on."""

    __slots__ = ("_observer", "_run_steps", "keys")

    def __init__(self, run_steps: RunSteps, observer: TrialObserver | None = None) -> None:
        self._run_steps = run_steps
        self._observer = observer
        self.keys: list[str] = []

    async def once(
        self,
        name: str,
        inputs: Mapping[str, Any],
        work: Callable[[], Awaitable[T]],
        returns: type[T],
        **options: Unpack[StepOptions],
    ) -> T:
        text = canonical(inputs)
        key = step_key(name, text)
        if not _in_prerequisite.get():
            self.keys.append(key)
        request: StepRequest[T] = StepRequest(key, name, text, work, _adapter(returns), self._observer, **options)
        return await self._run_steps.once(request)

    def is_recorded(self, name: str, inputs: Mapping[str, Any]) -> bool:
        return self._run_steps.run_writer.result(step_key(name, canonical(inputs))) is not None

    def is_inherited(self, name: str, inputs: Mapping[str, Any], *, shared: bool = False) -> bool:
        run_writer = self._run_steps.run_writer
        if not (run_writer.has_earlier_steps or (shared and run_writer.has_shared_steps)):
            return False  # the usual case, without the cost of a digest
        key = step_key(name, canonical(inputs))
        return run_writer.result(key) is not None or run_writer.find_reusable(key, shared=shared) is not None

    async def note(self, kind: str, text: str) -> None:
        await self._run_steps.run_writer.note(kind, text)

    def show_adding(self, adding: Adding) -> None:
        if self._run_steps.watch is not None:
            with suppress(Exception):  # an error in showing progress must not stop the run
                self._run_steps.watch.add_sessions(adding)

    def check_stopping(self) -> None:
        self._run_steps.stopping.check()


def _without_frames(error: MemorybenchError) -> MemorybenchError:
    """Return a copy of an error and its cause without tracebacks, which would keep the data of a job in memory."""
    copy = type(error).__new__(type(error), *error.args)
    copy.__dict__.update(error.__dict__)
    cause = error.__cause__
    copy.__cause__ = _without_frames(cause) if isinstance(cause, MemorybenchError) else None
    return copy


def step_key(name: str, inputs: str) -> str:
    return hashlib.sha256(f"{name}\n{inputs}".encode()).hexdigest()[:32]


_adapters: dict[Any, TypeAdapter[Any]] = {}  # creating an adapter is slower than many steps


def _adapter(returns: type[T]) -> TypeAdapter[T]:
    adapter = _adapters.get(returns)
    if adapter is None:
        adapter = _adapters[returns] = TypeAdapter(returns)
    return adapter
