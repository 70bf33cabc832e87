"""What a suite hands to the engine: a plan of jobs, which are made of steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict, TypeVar, Unpack

from .measures import Metric
from .retry_defaults import FIRST_DELAY, LONGEST_DELAY, TRIES
from .trials import Case, Exhibit, Failure, Outcome, Score, Subject, Trial

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Adding:
    """How many sessions of a haystack were added to a subject's memory."""

    benchmark: str
    subject: str
    haystack: str
    done: int
    total: int
    haystacks: int
    """Number of haystacks that the memory gets in this process."""
    unit: str = "sessions"


class Watch(Protocol):
    """Follows a run, to show its progress. An error in it does not stop the run."""

    def add_outcome(self, outcome: Outcome) -> None: ...

    def add_sessions(self, adding: Adding) -> None: ...


class StepOptions(TypedDict, total=False):
    on: Subject | None
    """The subject whose limits and retries apply."""
    paid: bool
    """Record an attempt before the work starts."""
    highest_cost: Callable[[], float | None] | None
    """Returns the most that paid work can cost, in dollars; None if unknown."""
    shared: bool
    """Any run of the results folder may reuse the step."""
    after: Callable[[], Awaitable[object]] | None
    """Awaited before the work: a search needs an ingest first, and a recorded search needs none."""


class Steps(Protocol):
    """Performs named work once: a step in the journal is returned, not repeated."""

    async def once(
        self,
        name: str,
        inputs: Mapping[str, Any],
        work: Callable[[], Awaitable[T]],
        returns: type[T],
        **options: Unpack[StepOptions],
    ) -> T:
        """Return the recorded result of `name` with `inputs`; otherwise call `work` and record its result first.

        Parse inside `work`, so that a reply that cannot be parsed is not recorded.
        """
        ...

    def is_recorded(self, name: str, inputs: Mapping[str, Any]) -> bool:
        """Return whether the step is in the journal."""
        ...

    def is_inherited(self, name: str, inputs: Mapping[str, Any], *, shared: bool = False) -> bool:
        """Return whether an earlier process or another run recorded that step."""
        ...

    async def note(self, kind: str, text: str) -> None:
        """Record a remark for the report, such as a scope that could not be cleared."""
        ...

    def show_adding(self, adding: Adding) -> None:
        """Show that sessions were added. Nothing is recorded."""
        ...

    def check_stopping(self) -> None:
        """Raise an error if the run is stopping: for long work that is repeated on resume. Any thread may call it."""
        ...


NOTHING_SHOWN = Exhibit()


@dataclass(frozen=True, slots=True)
class Performed:
    """The result of a job. With `unscored`, the subject did its part but the instrument could not decide."""

    scores: tuple[Score, ...] = ()
    shown: Exhibit = NOTHING_SHOWN
    unscored: Failure | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """The work on one trial."""

    trial: Trial
    perform: Callable[[Steps], Awaitable[Performed]]
    ordinal: int
    """Its place in reports, independent of the order of work."""
    case: Case | Callable[[], Case | None] | None = None
    """Recorded once with an outcome, so that a report needs no dataset. A function is called only then.

    It returns None if the case is a result of the job, and the job failed: a later attempt then records it.
    """
    shown: Exhibit = NOTHING_SHOWN
    """What a report shows if the job fails."""
    spends: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """Concurrency, rate and retries of one subject."""

    concurrency: int | None = None
    per_process: bool = False
    """Whether each process of a run has its own `concurrency`: the subject is in the process."""
    per_second: float | None = None
    tries: int = TRIES
    first_delay: float = FIRST_DELAY
    longest_delay: float = LONGEST_DELAY


@dataclass(frozen=True, slots=True)
class Plan:
    """All jobs of a run, with their limits and metrics."""

    jobs: Iterable[Job]
    """May be a generator: the engine stores only the jobs in progress."""
    size: int
    metrics: tuple[Metric, ...] = ()
    limits: Mapping[str, Limits] = field(default_factory=dict)
    """By subject key; the default limits apply to a subject without an entry."""
    opening: Callable[[Steps], Awaitable[None]] | None = None
    """Performed before the first job, for example to test the judge."""
    closing: Callable[[Steps], Awaitable[None]] | None = None
    """Performed after the last job, to clean up."""
