"""Scores the recorded steps of a run again, to check its scores. No subject is called, and nothing is written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from msgspec import Struct, field
from pydantic import TypeAdapter, ValidationError

from memorybench import __version__
from memorybench.core.contracts import Completion
from memorybench.core.conversation import Turn
from memorybench.core.errors import MemorybenchError, ServiceError, Unreadable
from memorybench.core.plans import Adding, Performed
from memorybench.core.questions import Dataset
from memorybench.core.records import canonical
from memorybench.core.trials import Outcome, Subject, Trial
from memorybench.datasets.audit import AuditDataset
from memorybench.engine.steps import step_key
from memorybench.journal.rows import Run
from memorybench.journal.run_reader import CLEARING
from memorybench.judging.canaries import STEP as CANARY
from memorybench.judging.canaries import Canary
from memorybench.judging.judge import Verdict
from memorybench.secrets.redaction import REDACTED

T = TypeVar("T")
_replayed_reply: ContextVar[str | None] = ContextVar("replayed reply", default=None)
"""The recorded reply that `SilentModel` returns, so that the code of the step parses it as in the run."""


class CannotRescore(MemorybenchError):
    """The scores of a trial cannot be computed again; the message says why."""


class Contradiction(MemorybenchError):
    """Two things that the run recorded contradict each other; the message says which."""


class ReplayedStep(Protocol):
    """A recorded step."""

    name: str
    inputs: Any
    result: Any


class ReplayedSteps(Struct):
    """The recorded steps of one trial. Today's code gets their results in place of performing the steps.

    A step is found by its key, which is the same only if today's code makes the same inputs. If no key matches, for
    example because a prompt is not available, the next recorded step of that name is used, and `other_inputs` counts
    it.
    """

    keys: Sequence[str]
    """The keys of the trial's steps, in the order in which the trial asked for them."""
    recorded: Mapping[str, ReplayedStep]
    """By key: the recorded steps of the whole run."""
    is_strict: bool = False
    """If True, a step is found by its key only, never by its name."""
    same_inputs: list[str] = field(default_factory=list)
    """The keys of steps that were found by their key: today's code makes the recorded inputs."""
    other_inputs: int = 0
    failed: list[str] = field(default_factory=list)
    """The names of steps that today's code asks for and that failed in the recorded trial, so they have no result."""
    missing: list[str] = field(default_factory=list)
    """The names of steps that today's code asks for and that the recorded trial did not ask for."""
    other_verdicts: list[str] = field(default_factory=list)
    """The names of steps whose recorded reply, parsed again, does not give the recorded verdict."""
    redacted_verdicts: int = 0
    """The number of verdicts that cannot be parsed again, because a secret was removed from the reply."""
    _used: set[int] = field(default_factory=set)

    async def once(
        self, name: str, inputs: Mapping[str, Any], work: Callable[[], Awaitable[T]], returns: type[T], **options: Any
    ) -> T:
        key = step_key(name, canonical(inputs))
        if inputs.get("attempt", 1) > 1 and key not in self.keys and self.failed[-1:] == [name]:
            # a judge is asked again only after an unreadable reply, not after another error
            raise Unreadable(f'the step "{name}" failed, and the run did not repeat it')
        step = self._find(name, key)
        if step is None:
            # the outcome also names the keys of steps that failed, such as by an unreadable reply of the judge
            (self.failed if key in self.keys else self.missing).append(name)
            raise Unreadable(f'the run has not recorded the step "{name}"')
        try:
            result = TypeAdapter(returns).validate_json(canonical(step.result))
        except ValidationError as error:
            raise CannotRescore(f"the recorded result of step {name} has an invalid structure") from error
        if isinstance(result, Verdict):
            await self._read_again(name, result, work)
        return result

    async def _read_again(self, name: str, verdict: Verdict, work: Callable[[], Awaitable[object]]) -> None:
        """Parse the recorded reply of a judge again, and note whether the verdict is the recorded one."""
        token = _replayed_reply.set(verdict.reply or verdict.reason)
        try:
            is_same = await work() == verdict
        except Unreadable:
            is_same = False
        finally:
            _replayed_reply.reset(token)
        if REDACTED in verdict.reply or REDACTED in verdict.reason:
            self.redacted_verdicts += not is_same
        elif not is_same:
            self.other_verdicts.append(name)

    def next(self, name: str) -> ReplayedStep:
        """Return the next unused step of that name, whatever its inputs are. Raise Contradiction if there is none."""
        step = self._find(name, "")
        if step is None:
            raise Contradiction(f'the trial has a result, but its step "{name}" is not recorded')
        return step

    def model_of(self, *names: str) -> Subject | None:
        """Return the model that was asked in the first step with one of these names; None if there is no such step."""
        for key in self.keys:
            step = self.recorded.get(key)
            if step is not None and step.name in names:
                return Subject.model_validate(step.inputs["model"])
        return None

    def unused(self) -> list[str]:
        """Return the names of recorded steps that today's code did not ask for. Steps that clean up are left out."""
        left = [self.recorded[key] for place, key in enumerate(self.keys) if self._is_left(place)]
        return [step.name for step in left if step.name not in CLEARING]

    @property
    def has_failures(self) -> bool:
        """Whether a step of the recorded trial failed, so it has no recorded result."""
        return any(key not in self.recorded for key in self.keys)

    def is_recorded(self, name: str, inputs: Mapping[str, Any]) -> bool:
        return step_key(name, canonical(inputs)) in self.recorded

    def is_inherited(self, name: str, inputs: Mapping[str, Any], *, shared: bool = False) -> bool:
        """Return whether the trial has a recorded step with these inputs that is not used yet."""
        key = step_key(name, canonical(inputs))
        return any(self.keys[place] == key for place in range(len(self.keys)) if self._is_left(place))

    async def note(self, kind: str, text: str) -> None:
        return None

    def show_adding(self, adding: Adding) -> None:
        return None

    def check_stopping(self) -> None:
        return None

    def _find(self, name: str, key: str) -> ReplayedStep | None:
        for place, own in enumerate(self.keys):
            if own == key and place not in self._used:
                self._used.add(place)
                if own in self.recorded:
                    self.same_inputs.append(own)
                return self.recorded.get(own)
        if key and key in self.keys:  # asked for twice
            return self.recorded.get(key)
        if self.is_strict:
            return None
        for place, own in enumerate(self.keys):
            if self._is_left(place) and self.recorded[own].name == name:
                self._used.add(place)
                self.other_inputs += bool(key)
                return self.recorded[own]
        return None

    def _is_left(self, place: int) -> bool:
        return place not in self._used and self.keys[place] in self.recorded


class Rescored(Struct, frozen=True):
    """The scores of a recorded trial, computed again by today's code."""

    performed: Performed
    is_whole: bool = True
    """Whether all scores could be computed. If False, `performed` has only some of them."""
    are_inputs_known: bool = False
    """Whether today's code must make the recorded inputs of every step. If so, a step with other inputs is an error."""
    trial: Trial | None = None
    """The trial with its labels, as made from the recorded case; None if it was not made."""


class RecordedRun(Struct, frozen=True):
    """The recorded data of a run whose scores are computed again."""

    run: Run
    cases: Mapping[tuple[str, str], Mapping[str, Any]]
    """The recorded cases, by benchmark and case id."""
    steps: Mapping[str, ReplayedStep]
    datasets: Mapping[str, Dataset] = field(default_factory=dict)
    """The datasets, by benchmark, that are on this machine and have the recorded fingerprint."""
    audit_datasets: Mapping[str, AuditDataset] = field(default_factory=dict)
    """The audit datasets, by id, that have the recorded fingerprint. They are read from this machine or from the text
    that the run recorded."""
    _judges: dict[str, Subject | None] = field(default_factory=dict)

    @property
    def data(self) -> Mapping[str, Dataset | AuditDataset]:
        return {**self.datasets, **self.audit_datasets}

    def knows_inputs(self, steps: ReplayedSteps) -> bool:
        """Return whether today's code must make the recorded inputs of each of these steps.

        False if some inputs differ and another version made the run, or if `knows_judge` is False.
        """
        return self.knows_judge(steps) and (not steps.other_inputs or self.is_of_this_version)

    def knows_judge(self, steps: ReplayedSteps) -> bool:
        """Return whether it is known which failed steps of the trial were calls of the judge.

        It is known if the run has no judge, if no step of the trial failed, or if a step of the run recorded the
        settings of the judge.
        """
        name = self.run.spec.get("judge")
        return not name or not steps.has_failures or self._recorded_judge(str(name)) is not None

    def judge(self, steps: ReplayedSteps) -> SilentModel | None:
        """Return a model that gives the recorded replies of a trial's judge; None if the run has no judge.

        If the trial has no recorded verdict, the settings of the judge are taken from other trials.
        """
        name = self.run.spec.get("judge")
        if not name:
            return None
        model = steps.model_of(*VERDICTS) or self._recorded_judge(str(name)) or Subject(role="model", name=str(name))
        if model.name != name:
            raise Contradiction(f"a recorded verdict is by {model.name}, but the judge of the run is {name}")
        return SilentModel(model)

    def _recorded_judge(self, name: str) -> Subject | None:
        if name not in self._judges:
            asked = (step.inputs["model"] for step in self.steps.values() if step.name in VERDICTS)
            models = (Subject.model_validate(model) for model in asked)
            self._judges[name] = next((model for model in models if model.name == name), None)
        return self._judges[name]

    @property
    def is_of_this_version(self) -> bool:
        return self.run.program == f"memorybench {__version__}"


VERDICTS = ("judge", CANARY, "entail", "cover", "support")
"""Names of steps whose result is a verdict."""


class Rescorer:
    """Computes the scores of recorded trials again. `rescorer(run)` in a suite's `rescoring` module returns one.

    A suite overrides what it can compute; the other methods return None.
    """

    def changed_cases(self, dataset: Any) -> Sequence[str] | None:
        """Return the ids of recorded cases that differ from a dataset; None if the suite cannot compare them."""
        return None

    def selected_cases(self, dataset: Any) -> Collection[str] | None:
        """Return the ids of the cases that the run's settings select from a dataset; None if the suite cannot tell."""
        return None

    def trials_of_case(self, case: Mapping[str, Any] | None) -> Collection[tuple[str, int]] | None:
        """Return variant and repeat of each trial of a recorded case; None: one trial per repeat.

        `case` is None if the case is not recorded.
        """
        return None

    def canaries(self) -> Sequence[Canary] | None:
        """Return all canaries of the run's judge prompts, in their order; None if the suite asks no canaries."""
        return None

    def judge_calls(self, case: Mapping[str, Any]) -> int | None:
        """Return how many verdicts a trial of a case needs, to compute the number of canaries; None if unknown."""
        return None

    def derived_settings(self) -> Mapping[str, Any] | None:
        """Return the settings that follow from the cases and the data; None if the suite cannot derive any."""
        return None

    async def rescore(self, outcome: Outcome, case: Mapping[str, Any], steps: ReplayedSteps) -> Rescored:
        """Return the scores of a trial, computed again.

        Raise CannotRescore if they cannot be computed, Lacking if today's code would skip the trial.
        """
        raise CannotRescore("the suite cannot compute scores again")


class SilentModel(Struct, frozen=True):
    """Replaces a model when steps are replayed. It returns the recorded reply of the step, and calls nothing."""

    subject: Subject

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> Completion:
        reply = _replayed_reply.get()
        if reply is None:
            raise ServiceError(f"{self.subject.name} is not called while recorded steps are scored again")
        return Completion(text=reply, finish="stop", model=self.subject.name)

    def highest_cost(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> float | None:
        return 0.0
