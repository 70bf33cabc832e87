"""What a suite gives to the engine: a plan of jobs. A job performs steps."""

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
    """Progress: how many sessions of a haystack have been added to a subject's memory."""

    benchmark: str
    subject: str
    haystack: str
    done: int
    total: int
    haystacks: int
    """The number of haystacks that are added to the memory in this process."""
    unit: str = "sessions"


class Watch(Protocol):
    """Receives the progress of a run, to show it. An error in it does not stop the run."""

    def add_outcome(self, outcome: Outcome) -> None: ...

    def add_sessions(self, adding: Adding) -> None: ...


class StepOptions(TypedDict, total=False):
    on: Subject | None
    """The subject that is called. Its limits and retries apply."""
    paid: bool
    """Whether the work may cost money. If so, an attempt is recorded before it starts."""
    highest_cost: Callable[[], float | None] | None
    """Returns the most that the work can cost, in dollars; None if unknown."""
    shared: bool
    """Whether any run of the results folder may reuse the recorded step."""
    after: Callable[[], Awaitable[object]] | None
    """Awaited before the work, if the step is not recorded: for example the ingest that a search needs."""


class Steps(Protocol):
    """Performs named work once. If the journal has its result, that is returned and the work is not repeated."""

    async def once(
        self,
        name: str,
        inputs: Mapping[str, Any],
        work: Callable[[], Awaitable[T]],
        returns: type[T],
        **options: Unpack[StepOptions],
    ) -> T:
        """Return the recorded result of step `name` with these `inputs`; if none, call `work` and record its result.

        Parse inside `work`, so that a reply that cannot be parsed is not recorded.
        """
        ...

    def is_recorded(self, name: str, inputs: Mapping[str, Any]) -> bool:
        """Return whether the journal has the result of this step."""
        ...

    def is_inherited(self, name: str, inputs: Mapping[str, Any], *, shared: bool = False) -> bool:
        """Return whether an earlier process or another run recorded this step."""
        ...

    async def note(self, kind: str, text: str) -> None:
        """Record a note for the report, such as a scope that could not be cleared."""
        ...

    def show_adding(self, adding: Adding) -> None:
        """Show the progress of adding sessions. Nothing is recorded."""
        ...

    def check_stopping(self) -> None:
        """Raise an error if the run is stopping. For long work that can be repeated; any thread may call it."""
        ...


NOTHING_SHOWN = Exhibit()


@dataclass(frozen=True, slots=True)
class Performed:
    """The result of a job. `unscored` is set if the subject did its work, but judge or code could not score it."""

    scores: tuple[Score, ...] = ()
    shown: Exhibit = NOTHING_SHOWN
    unscored: Failure | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """The work for one trial."""

    trial: Trial
    perform: Callable[[Steps], Awaitable[Performed]]
    ordinal: int
    """The position of the trial in reports, independent of the order in which jobs are performed."""
    case: Case | Callable[[], Case | None] | None = None
    """The case, recorded with the first outcome so that a report needs no dataset. It may be a function, which is
    called only then. The function returns None if the case is a result of the job and the job failed; a later attempt
    then records it."""
    shown: Exhibit = NOTHING_SHOWN
    """The texts that a report shows if the job fails."""
    spends: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """Concurrency, rate and retries of one subject."""

    concurrency: int | None = None
    per_process: bool = False
    """Whether `concurrency` applies to each process of a run by itself, because the subject runs in the process."""
    per_second: float | None = None
    tries: int = TRIES
    first_delay: float = FIRST_DELAY
    longest_delay: float = LONGEST_DELAY


@dataclass(frozen=True, slots=True)
class Plan:
    """All jobs of a run, with their limits and metrics."""

    jobs: Iterable[Job]
    """The jobs. It may be a generator: the engine keeps only the jobs in progress."""
    size: int
    metrics: tuple[Metric, ...] = ()
    limits: Mapping[str, Limits] = field(default_factory=dict)
    """The limits by key of the subject. The defaults apply to a subject without an entry."""
    opening: Callable[[Steps], Awaitable[None]] | None = None
    """Called before the first job, for example to test the judge; None: nothing to do."""
    closing: Callable[[Steps], Awaitable[None]] | None = None
    """Called after the last job, to clean up; None: nothing to do."""
