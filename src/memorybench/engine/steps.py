"""`once`: a step is recorded once, and what is recorded is never done again."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

from memorybench.core.errors import Malformed, MemorybenchError
from memorybench.core.records import canonical
from memorybench.core.spending import Tally
from memorybench.core.trials import Subject
from memorybench.journal.rows import Step
from memorybench.journal.run_writer import RunWriter, now

from .budget import Budget
from .limiter import Gates
from .retries import RetryState, with_retries
from .stopping import Interrupted, Stop

T = TypeVar("T")


def in_flight(concurrency: int) -> int:
    """How many steps are worked on at once: more than call, for while some wait for the disk, others can call."""
    return concurrency + concurrency // 2


# set while a step's `after` runs: what others stand on too is no part of this job's own evidence
_aside: ContextVar[bool] = ContextVar("memorybench_aside", default=False)


@dataclass(slots=True)
class _Asked(Generic[T]):
    """A step, as a job asks for it."""

    key: str
    name: str
    inputs: str
    work: Callable[[], Awaitable[T]]
    adapter: TypeAdapter[T]
    subject: Subject | None
    paid: bool
    after: Callable[[], Awaitable[object]] | None


class _Slot:
    """A place among the calls at once. Freed as soon as what became of the call outlives us, or nothing will."""

    __slots__ = ("_calls", "_taken")

    def __init__(self, calls: asyncio.Semaphore) -> None:
        self._calls = calls
        self._taken = True

    def free(self) -> None:
        if self._taken:
            self._taken = False
            self._calls.release()


class SharedSteps:
    """One for a run: every job's steps pass here, so that a key is worked on once at a time."""

    def __init__(self, run_writer: RunWriter, gates: Gates, budget: Budget, stopping: Stop, concurrency: int) -> None:
        self.run_writer = run_writer
        self._under_way = asyncio.Semaphore(in_flight(concurrency))
        self._calls = asyncio.Semaphore(concurrency)
        """A call counts until its result outlives us: as many may have to be repeated, should we die."""
        self._gates = gates
        self._budget = budget
        self._stopping = stopping
        self._in_flight: dict[str, asyncio.Future[str]] = {}
        self._failed: dict[str, MemorybenchError] = {}

    async def once(self, asked: _Asked[T]) -> T:
        key, adapter = asked.key, asked.adapter
        recorded = self.run_writer.step(key)
        if recorded is not None:
            return adapter.validate_json(recorded)
        flight = self._in_flight.get(key)
        if flight is not None:
            return adapter.validate_json(await asyncio.shield(flight))
        if key in self._failed:
            # siblings that share a step share its failure: a dead ingest is not paid for again by each question
            raise self._failed[key].with_traceback(None)
        flight = self._in_flight[key] = asyncio.get_running_loop().create_future()
        try:
            value, result = await self._perform(asked)
        except BaseException as error:
            if isinstance(error, MemorybenchError):
                self._failed[key] = error
            if not isinstance(error, asyncio.CancelledError):
                flight.set_exception(error)
                flight.exception()  # seen: without followers nobody else would retrieve it
            else:
                flight.cancel()
            raise
        else:
            flight.set_result(result)
            return value
        finally:
            del self._in_flight[key]

    async def _perform(self, asked: _Asked[T]) -> tuple[T, str]:
        reused = self.run_writer.reusable(asked.key, asked.name)
        if reused is not None:
            await self.run_writer.record(reused)
            return asked.adapter.validate_json(reused.result), reused.result
        self._stopping.check()
        if asked.after is not None:
            token = _aside.set(True)
            try:
                await asked.after()
            finally:
                _aside.reset(token)
        async with self._under_way:
            self._stopping.check()
            return await self._work(asked)

    async def _work(self, asked: _Asked[T]) -> tuple[T, str]:
        attempt = None
        if asked.paid:
            self._budget.allow()
            attempt = await self.run_writer.record_attempt(
                asked.key, asked.name, asked.subject.name if asked.subject else ""
            )
        await self._calls.acquire()
        slot = _Slot(self._calls)
        try:
            return await self._call(asked, attempt, slot)
        finally:
            slot.free()

    async def _call(self, asked: _Asked[T], attempt: int | None, slot: _Slot) -> tuple[T, str]:
        trying, started = RetryState(), now()
        with Tally() as tally:
            try:
                value = await with_retries(self._guarded(asked.work, asked.paid), self._gates.of(asked.subject), trying)
                value, result = self._kept(value, asked.adapter)
            except (Exception, Interrupted) as error:
                if attempt is not None:
                    self._budget.take(tally.spent)
                    await self.run_writer.record_failure(
                        attempt,
                        str(error),
                        tries=trying.tries,
                        uncertain=trying.uncertain,
                        spent=tally.spent,
                        written=slot.free,
                    )
                raise
        self._budget.take(tally.spent)
        step = Step(
            key=asked.key,
            name=asked.name,
            subject=asked.subject.name if asked.subject else "",
            inputs=asked.inputs,
            result=result,
            started=started,
            seconds=trying.seconds,
            tries=trying.tries,
            uncertain=trying.uncertain,
            spent=tally.spent,
            attempt=attempt,
        )
        await self.run_writer.record(step, written=slot.free)
        return value, result

    def _kept(self, value: T, adapter: TypeAdapter[T]) -> tuple[T, str]:
        """The value as the journal will give it back, and its JSON: a resumed run must see what this one saw."""
        try:
            result = adapter.dump_json(value).decode()
        except ValueError as error:  # half a surrogate, for one
            raise Malformed(f"the result can not be stored: {error}") from error
        kept = self.run_writer.redacted(result)
        return (value, result) if kept == result else (adapter.validate_json(kept), kept)

    def _guarded(self, work: Callable[[], Awaitable[T]], paid: bool) -> Callable[[], Awaitable[T]]:
        """Checks once more at the gate: while we waited there, the budget may have gone or Ctrl-C may have come."""

        async def guarded() -> T:
            self._stopping.check()
            if paid:
                self._budget.allow()
            return await work()

        return guarded


class JobSteps:
    """What one job sees. Remembers which steps its outcome rests on."""

    __slots__ = ("_shared", "keys")

    def __init__(self, shared: SharedSteps) -> None:
        self._shared = shared
        self.keys: list[str] = []

    async def once(
        self,
        name: str,
        inputs: Mapping[str, Any],
        work: Callable[[], Awaitable[T]],
        returns: type[T],
        *,
        on: Subject | None = None,
        paid: bool = False,
        after: Callable[[], Awaitable[object]] | None = None,
    ) -> T:
        text = canonical(inputs)
        key = step_key(name, text)
        if not _aside.get():
            self.keys.append(key)
        return await self._shared.once(_Asked(key, name, text, work, _adapter(returns), on, paid, after))

    def recorded(self, name: str, inputs: Mapping[str, Any]) -> bool:
        return self._shared.run_writer.step(step_key(name, canonical(inputs))) is not None

    def inherited(self, name: str, inputs: Mapping[str, Any]) -> bool:
        run_writer = self._shared.run_writer
        if not run_writer.has_heritage:
            return False  # as in most runs: and a prompt takes long to digest
        key = step_key(name, canonical(inputs))
        return run_writer.step(key) is not None or run_writer.reusable(key, name) is not None

    async def note(self, kind: str, text: str) -> None:
        await self._shared.run_writer.note(kind, text)


def step_key(name: str, inputs: str) -> str:
    return hashlib.sha256(f"{name}\n{inputs}".encode()).hexdigest()[:32]


_adapters: dict[Any, TypeAdapter[Any]] = {}  # by type: making one costs more than many a step


def _adapter(returns: type[T]) -> TypeAdapter[T]:
    adapter = _adapters.get(returns)
    if adapter is None:
        adapter = _adapters[returns] = TypeAdapter(returns)
    return adapter
