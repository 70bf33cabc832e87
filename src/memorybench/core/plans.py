"""The plan that a suite gives to the engine. A plan has one job per trial, and a job consists of steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol, TypedDict, TypeVar, Unpack

from msgspec import Struct, field

from .measures import Metric
from .retry_defaults import FIRST_DELAY, LONGEST_DELAY, TRIES
from .trials import Case, Exhibit, Failure, Outcome, Score, Subject, Trial

T = TypeVar("T")


class Adding(Struct, frozen=True):
    """Progress to show: how many sessions of a haystack have been added to a subject's memory."""

    benchmark: str
    subject: str
    haystack: str
    done: int
    total: int
    haystacks: int
    """How many haystacks this process has to add to the memory in total."""
    unit: str = "sessions"


class Watch(Protocol):
    """Receives the progress of a run, to show it. An exception that it raises is ignored."""

    def add_outcome(self, outcome: Outcome) -> None: ...

    def add_sessions(self, adding: Adding) -> None: ...


class StepOptions(TypedDict, total=False):
    on: Subject | None
    """The subject that the work calls. Its limits and retries apply; None: the default limits."""
    paid: bool
    """Whether the work may cost money. If so, it needs budget, and an attempt is recorded before it starts."""
    highest_cost: Callable[[], float | None] | None
    """A function that returns the most that the work can cost, in dollars, or None if that is unknown."""
    shared: bool
    """Whether any run of the results folder may reuse the recorded step."""
    after: Callable[[], Awaitable[object]] | None
    """A function to await before the work, such as the ingest that a search needs. Not called if the step is
    recorded."""


class Steps(Protocol):
    """Performs the steps of a job. A step whose result is in the journal is not performed again."""

    async def once(
        self,
        name: str,
        inputs: Mapping[str, Any],
        work: Callable[[], Awaitable[T]],
        returns: type[T],
        **options: Unpack[StepOptions],
    ) -> T:
        """Return the recorded result of the step with this name and these inputs; if none, call `work` and record it.

        `work` should also parse the reply of the service, so that a reply that cannot be parsed raises an error and is
        not recorded.
        """
        ...

    def is_recorded(self, name: str, inputs: Mapping[str, Any]) -> bool:
        """Return whether this run has recorded the result of the step with this name and these inputs."""
        ...

    def is_inherited(self, name: str, inputs: Mapping[str, Any], *, shared: bool = False) -> bool:
        """Return whether `once` would return a result of an earlier process of this run, or of the run in `--reuse`.

        With `shared`, a result of any run of the results folder counts. May be False for a step that this process
        recorded.
        """
        ...

    async def note(self, kind: str, text: str) -> None:
        """Record a note for the report, such as a scope that could not be cleared."""
        ...

    def show_adding(self, adding: Adding) -> None:
        """Show the progress of adding sessions. Nothing is recorded."""
        ...

    def check_stopping(self) -> None:
        """Raise Interrupted if the run is stopping. Long work that can be repeated may call this, from any thread."""
        ...


NOTHING_SHOWN = Exhibit()


class Performed(Struct, frozen=True):
    """The result of a job. `unscored` says why the result could not be scored although the subject did its work."""

    scores: tuple[Score, ...] = ()
    shown: Exhibit = NOTHING_SHOWN
    unscored: Failure | None = None


class Job(Struct, frozen=True):
    """The work for one trial."""

    trial: Trial
    perform: Callable[[Steps], Awaitable[Performed]]
    ordinal: int
    """The position of the trial in reports, independent of the order in which jobs are performed."""
    case: Case | Callable[[], Case | None] | None = None
    """The case, or a function that returns it. The case is recorded with its first outcome, so that a report does not
    need the dataset. The function is called only then. It returns None if the job failed before it created the case; a
    later attempt then records the case."""
    shown: Exhibit = NOTHING_SHOWN
    """The texts that a report shows if the job fails; otherwise it shows `Performed.shown`."""
    spends: bool = False


class Limits(Struct, frozen=True):
    """Concurrency, rate and retries of one subject."""

    concurrency: int | None = None
    per_process: bool = False
    """Whether each process of a run may make `concurrency` calls, because each has its own copy of the subject. If
    False, all processes together may."""
    per_second: float | None = None
    tries: int = TRIES
    first_delay: float = FIRST_DELAY
    longest_delay: float = LONGEST_DELAY


class Plan(Struct, frozen=True):
    """All jobs of a run, with their limits and metrics."""

    jobs: Iterable[Job]
    """The jobs. It may be a generator: the engine keeps only the jobs in progress."""
    size: int
    metrics: tuple[Metric, ...] = ()
    limits: Mapping[str, Limits] = field(default_factory=dict)
    """The limits of each subject, by `Subject.key`. A subject without an entry has the default `Limits()`."""
    opening: Callable[[Steps], Awaitable[None]] | None = None
    """Called before the first job, for example to test the judge; None: nothing to do."""
    closing: Callable[[Steps], Awaitable[None]] | None = None
    """Called after the last job if the run is complete, to clean up; None: nothing to do."""
