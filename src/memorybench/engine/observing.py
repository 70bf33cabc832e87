"""Protocols for observers of a run: code that receives its steps and trials, such as the sender of spans."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from memorybench.core.spending import NOTHING, Spending
from memorybench.core.trials import Outcome, Subject, Trial


class EndedStep(Struct, frozen=True):
    """A step that this process performed. Observers are not told about steps whose result was in the journal."""

    name: str
    subject: Subject | None
    inputs: str
    """The inputs as JSON. They may contain secrets."""
    result: str | None
    """The result as JSON without secrets; None if the step failed."""
    started: str
    """When the first try began, in ISO 8601."""
    ended: int
    """When the step ended, in nanoseconds since 1970."""
    seconds: float
    """How long the subject worked in the try that succeeded; 0 if none did."""
    tries: int = 1
    spent: Spending = NOTHING
    error: BaseException | None = None


class TrialObserver(Protocol):
    """Receives the steps of one trial, or of the work before the first or after the last trial."""

    def add_step(self, step: EndedStep) -> None:
        """Receive a step after it is recorded in the journal, or has failed."""
        ...

    def end(self, outcome: Outcome | None) -> None:
        """Receive the outcome of the trial; None if the run was interrupted. Not called for work outside of trials."""
        ...


class Observer(Protocol):
    """Receives the trials of a run. Errors that it raises are ignored."""

    def start(self, trial: Trial | None) -> TrialObserver:
        """Return the observer of a trial; `trial` is None for the work before the first and after the last trial."""
        ...
