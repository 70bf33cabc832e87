"""What a suite hands to the engine: jobs made of steps that are each done once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from .measures import Metric
from .trials import Case, Exhibit, Failure, Score, Subject, Trial

T = TypeVar("T")


class Steps(Protocol):
    """Performs named work once: what the journal holds is returned, never done again."""

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
        """The recorded result of `name` on `inputs`, or that of `work`, recorded before it is returned.

        `on` names whose limits and retries hold; `paid` work leaves an intent row before it starts;
        `after` is awaited first where there is work to do: search comes after ingest, and a recorded
        search needs none. Parse inside `work`: what it returns is recorded as finished.
        """
        ...

    def recorded(self, name: str, inputs: Mapping[str, Any]) -> bool:
        """Whether the journal holds that step."""
        ...

    def inherited(self, name: str, inputs: Mapping[str, Any]) -> bool:
        """Whether an earlier process, or another run, has left that step to this one."""
        ...

    async def note(self, kind: str, text: str) -> None:
        """Tells the report something that is no step, e.g. a leaked scope."""
        ...


NOTHING_SHOWN = Exhibit()


@dataclass(frozen=True, slots=True)
class Performed:
    """What a job found. With `unscored`, the subject did its part but the instrument could not decide."""

    scores: tuple[Score, ...] = ()
    shown: Exhibit = NOTHING_SHOWN
    unscored: Failure | None = None


@dataclass(frozen=True, slots=True)
class Job:
    trial: Trial
    perform: Callable[[Steps], Awaitable[Performed]]
    ordinal: int
    """Its place in reports, whatever the order of work."""
    case: Case | None = None
    """Journaled with the outcome, so that a report needs no dataset."""
    shown: Exhibit = NOTHING_SHOWN
    """What a report shows where the job fails."""
    spends: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """How hard one subject may be driven, and how patiently it is asked again."""

    concurrency: int | None = None
    per_second: float | None = None
    tries: int = 4
    first_delay: float = 0.5
    longest_delay: float = 120.0


@dataclass(frozen=True, slots=True)
class Plan:
    jobs: Iterable[Job]
    """May be a generator: the engine never holds more than it works on."""
    size: int
    metrics: tuple[Metric, ...] = ()
    limits: Mapping[str, Limits] = field(default_factory=dict)
    """By subject key; a subject without an entry has the default limits."""
    opening: Callable[[Steps], Awaitable[None]] | None = None
    """Performed before the first job: what the instrument must know about itself."""
    closing: Callable[[Steps], Awaitable[None]] | None = None
    """Performed when every job is settled: puts away what the jobs have used."""
