"""Protocols for code that follows a run while it is performed, such as the sender of OpenTelemetry spans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from memorybench.core.spending import NOTHING, Spending
from memorybench.core.trials import Outcome, Subject, Trial


@dataclass(frozen=True, slots=True)
class EndedStep:
    """A step that this process performed. Steps taken from the journal are not observed."""

    name: str
    subject: Subject | None
    inputs: str
    """The inputs as JSON. They may contain secrets."""
    result: str | None
    """The result as JSON without secrets; None if the step failed."""
    started: str
    """When the engine began to call the subject, in ISO 8601."""
    ended: int
    """When the step ended, in nanoseconds since 1970."""
    seconds: float
    """How long the subject worked in the last try."""
    tries: int = 1
    spent: Spending = NOTHING
    error: BaseException | None = None


class TrialObserver(Protocol):
    """Follows one trial, or the work before the first and after the last trial."""

    def add_step(self, step: EndedStep) -> None:
        """Receive a step, after the journal has recorded it."""
        ...

    def end(self, outcome: Outcome | None) -> None:
        """Receive the outcome; None if the run was interrupted, or if this is not a trial."""
        ...


class Observer(Protocol):
    """Follows a run. An error in it does not stop the run."""

    def start(self, trial: Trial | None) -> TrialObserver:
        """Return the observer of a trial; `trial` is None for the work before the first and after the last trial."""
        ...
