"""A trial, which is one case for one subject, and its outcome."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

from pydantic import Field

from .records import Record, digest

Status = Literal["scored", "unscored", "failed", "skipped", "blocked"]
STATUSES: tuple[Status, ...] = ("scored", "unscored", "failed", "skipped", "blocked")


class Subject(Record):
    """What is measured or called: a provider, a model, a store or an agent. Its settings never contain a secret."""

    role: str
    name: str
    settings: Mapping[str, Any] = Field(default_factory=dict)

    @cached_property
    def key(self) -> str:
        return digest([self.role, self.name, self.settings])

    @cached_property
    def _plain(self) -> Any:
        return self.model_dump(mode="json")

    def plain(self) -> Any:
        return self._plain  # cached: one subject is part of the inputs of thousands of steps


class Case(Record):
    """The base class of what subjects are tested with: Question, Probe, ExtractionCase and Scenario extend it."""

    id: str
    labels: Mapping[str, str] = Field(default_factory=dict)


class Trial(Record):
    suite: str
    case_id: str
    subject: Subject
    labels: Mapping[str, str] = Field(default_factory=dict)
    variant: str = ""
    benchmark: str = ""
    """The dataset, case set or scenario set that the case is from."""
    cluster: str = ""
    """A name that dependent trials have in common, such as those of one haystack. Empty: the trial is independent."""
    repeat: int = 1
    """The number of the repeat, from 1; higher than 1 only with `--repeats`. The key of repeat 1 does not contain it,
    so that it equals the key of the same trial in a run without repeats."""

    @cached_property
    def key(self) -> str:
        parts = [self.suite, self.benchmark, self.case_id, self.subject.key, self.variant]
        return digest(parts if self.repeat == 1 else [*parts, self.repeat])

    @property
    def repeat_name(self) -> str:
        return f"repeat {self.repeat}" if self.repeat > 1 else ""

    @property
    def item(self) -> tuple[str, str, str, str]:
        """Benchmark, subject name, case id and variant, which are the same in all repeats of a trial."""
        return self.benchmark, self.subject.name, self.case_id, self.variant


class Score(Record):
    name: str
    value: float
    reason: str = ""


class Failure(Record):
    """Why a trial has no score. `traceback` is None unless the error was unexpected."""

    kind: str
    message: str
    traceback: str | None = None


class Exhibit(Record):
    """The texts of one trial that a report shows. The steps of the trial have the full data."""

    asked: str = ""
    expected: str = ""
    got: str = ""
    context: str = ""
    reason: str = ""
    memories_shown: int | None = None
    """How many of the retrieved memories the answering model saw; None if that is not recorded."""


class Outcome(Record):
    trial: Trial
    status: Status
    scores: tuple[Score, ...] = ()
    steps: tuple[str, ...] = ()
    """The keys of the steps that this outcome depends on."""
    failure: Failure | None = None
    shown: Exhibit = Exhibit()

    def score(self, name: str) -> float | None:
        return self._values.get(name)

    @cached_property
    def _values(self) -> dict[str, float]:
        """The values of the scores by name. If two scores have the same name, the first one counts."""
        return {score.name: score.value for score in reversed(self.scores)}
