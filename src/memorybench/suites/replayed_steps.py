"""Scores the recorded steps of a run again, to check its scores. No subject is called, and nothing is written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

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
from memorybench.judging.canaries import STEP as CANARY
from memorybench.judging.canaries import CanaryReport
from memorybench.judging.judge import Verdict
from memorybench.judging.prompts import JudgePrompt
from memorybench.secrets.redaction import REDACTED

T = TypeVar("T")
_AT_THE_END = ("clearing", "clear")
"""Steps that clean up after a trial. They change no score."""
_replayed_reply: ContextVar[str | None] = ContextVar("replayed reply", default=None)
"""The recorded reply that a `SilentModel` gives again, so that the code of the step reads it as it did first."""


class CannotRescore(MemorybenchError):
    """The scores of a trial cannot be computed again; the text says why."""


class Contradiction(MemorybenchError):
    """What is recorded cannot have happened as the run says; the text says why."""


class ReplayedStep(Protocol):
    """A recorded step."""

    name: str
    inputs: Any
    result: Any


@dataclass(slots=True)
class ReplayedSteps:
    """The `Steps` of one trial that was recorded. A step is found by its key, else by its name and place.

    The key tells that the code would make the same inputs today. Where it cannot know them, because a prompt is not at
    hand for example, the next step of that name is taken, and `other_inputs` counts it.
    """

    keys: Sequence[str]
    """Of the outcome, in the order in which the trial asked for them."""
    recorded: Mapping[str, ReplayedStep]
    """By key: the steps of the run."""
    is_strict: bool = False
    """Whether a step is found by its key only."""
    same_inputs: list[str] = field(default_factory=list)
    """The keys of steps whose inputs the code makes again."""
    other_inputs: int = 0
    failed: list[str] = field(default_factory=list)
    """The names of steps that the trial asked for and that have no result."""
    missing: list[str] = field(default_factory=list)
    """The names of steps that the code asks for and the trial did not."""
    other_verdicts: list[str] = field(default_factory=list)
    """The names of steps whose recorded reply, read again, does not give the recorded verdict."""
    redacted_verdicts: int = 0
    """Verdicts that cannot be read again, because a secret was removed from the reply."""
    _used: set[int] = field(default_factory=set)

    async def once(
        self, name: str, inputs: Mapping[str, Any], work: Callable[[], Awaitable[T]], returns: type[T], **options: Any
    ) -> T:
        key = step_key(name, canonical(inputs))
        if inputs.get("attempt", 1) > 1 and key not in self.keys and self.failed[-1:] == [name]:
            # a judge is not asked again if its first call failed otherwise than by an unreadable reply
            raise Unreadable(f"step {name} was not asked for again")
        step = self._find(name, key)
        if step is None:
            # the key of a call that failed, such as an unreadable reply of the judge, is one of the outcome
            (self.failed if key in self.keys else self.missing).append(name)
            raise Unreadable(f"step {name} is not recorded")
        try:
            result = TypeAdapter(returns).validate_json(canonical(step.result))
        except ValidationError as error:
            raise CannotRescore(f"the result of step {name} does not have its form") from error
        if isinstance(result, Verdict):
            await self._read_again(name, result, work)
        return result

    async def _read_again(self, name: str, verdict: Verdict, work: Callable[[], Awaitable[object]]) -> None:
        """Perform the step with the recorded reply, and compare the verdict."""
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
        """Return the next step of that name, whatever its inputs are."""
        step = self._find(name, "")
        if step is None:
            raise Contradiction(f"step {name} is not recorded")
        return step

    def model_of(self, *names: str) -> Subject | None:
        """Return the model that the first step of these names asked; None if there is none."""
        for key in self.keys:
            step = self.recorded.get(key)
            if step is not None and step.name in names:
                return Subject.model_validate(step.inputs["model"])
        return None

    def unused(self) -> list[str]:
        """Return the names of recorded steps that no score was computed from."""
        left = [self.recorded[key] for place, key in enumerate(self.keys) if self._is_left(place)]
        return [step.name for step in left if step.name not in _AT_THE_END]

    @property
    def has_failures(self) -> bool:
        """Whether the trial asked for steps that have no result."""
        return any(key not in self.recorded for key in self.keys)

    def is_recorded(self, name: str, inputs: Mapping[str, Any]) -> bool:
        return step_key(name, canonical(inputs)) in self.recorded

    def is_inherited(self, name: str, inputs: Mapping[str, Any], *, shared: bool = False) -> bool:
        """Return whether the step is the one that comes next: a second reply was asked for without a first."""
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


@dataclass(frozen=True, slots=True)
class Rescored:
    """What a trial scores by the code of today."""

    performed: Performed
    is_whole: bool = True
    """Whether all scores are known; otherwise those of `performed` are, and others cannot be computed here."""
    are_inputs_known: bool = False
    """Whether the code knows what each step depends on, so that no recorded step may have other inputs."""
    trial: Trial | None = None
    """The trial that the case gives, with its labels; None: it is not computed."""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run whose scores are computed again."""

    run: Run
    cases: Mapping[tuple[str, str], Mapping[str, Any]]
    """By benchmark and id."""
    steps: Mapping[str, ReplayedStep]
    datasets: Mapping[str, Dataset] = field(default_factory=dict)
    """By benchmark. Data that is not on this machine, or has another fingerprint than the run recorded, is left out."""
    audit_datasets: Mapping[str, AuditDataset] = field(default_factory=dict)
    """By id: conversations with the recorded fingerprint, from this machine or from the recorded text."""
    _judges: dict[str, Subject | None] = field(default_factory=dict)

    @property
    def data(self) -> Mapping[str, Dataset | AuditDataset]:
        return {**self.datasets, **self.audit_datasets}

    def knows_inputs(self, steps: ReplayedSteps) -> bool:
        """Return whether the code knows what the replayed steps depend on. Another version may have other prompts."""
        return self.knows_judge(steps) and (not steps.other_inputs or self.is_of_this_version)

    def knows_judge(self, steps: ReplayedSteps) -> bool:
        """Return whether it is known which failed steps of the trial were calls of the judge.

        It is known if the run has no judge, if no step of the trial failed, or if a step of the run recorded the
        settings of the judge.
        """
        name = self.run.spec.get("judge")
        return not name or not steps.has_failures or self._recorded_judge(str(name)) is not None

    def judge(self, steps: ReplayedSteps) -> SilentModel | None:
        """Return the judge of a trial; None if the run has none.

        If no verdict of the trial is recorded, its settings are those in other trials.
        """
        name = self.run.spec.get("judge")
        if not name:
            return None
        model = steps.model_of(*VERDICTS) or self._recorded_judge(str(name)) or Subject(role="model", name=str(name))
        if model.name != name:
            raise Contradiction(f"a verdict is of {model.name}, and the run says {name}")
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


VERDICTS = ("judge", CANARY, "entail", "support")
"""Steps whose result is a verdict."""
CheckJudge = Callable[[ReplayedSteps, Subject, int], Coroutine[Any, Any, tuple[Sequence[JudgePrompt], CanaryReport]]]
"""From recorded steps, a judge and the most canaries to the prompts of the run and the counts of verdicts."""


class Rescorer(Protocol):
    """Computes scores again. A suite's `rescoring` module has a function `rescorer(run)` that returns one."""

    @property
    def changed_cases(self) -> Callable[[Any], Sequence[str]] | None:
        """Returns the ids of cases that are not those of a Dataset or AuditDataset; None if this cannot be told."""
        return None

    @property
    def selected_cases(self) -> Callable[[Any], Collection[str]] | None:
        """Returns the ids of cases that the settings of the run select from a Dataset or AuditDataset."""
        return None

    @property
    def trials_of_case(self) -> Callable[[Mapping[str, Any]], Collection[tuple[str, int]]] | None:
        """Returns the variant and repeat of each trial that a recorded case implies; None: one trial per repeat."""
        return None

    @property
    def check_judge(self) -> CheckJudge | None:
        """Counts the recorded verdicts on canaries again; None: the suite does not check a judge with them."""
        return None

    @property
    def judge_calls(self) -> Callable[[Mapping[str, Any]], int] | None:
        """Returns how many verdicts a trial of a recorded case needs: the number of canaries depends on it."""
        return None

    @property
    def derived_settings(self) -> Callable[[], Mapping[str, Any]] | None:
        """Returns the values of settings that follow from the cases of a whole run, and from data that is available."""
        return None

    async def rescore(self, outcome: Outcome, case: Mapping[str, Any], steps: ReplayedSteps) -> Rescored:
        """Return what the trial scores. Raise CannotRescore if that is unknown, Lacking if it is to be skipped."""
        ...


@dataclass(frozen=True, slots=True)
class SilentModel:
    """Stands in for a model whose replies are recorded. It gives that of the replayed step, and no other."""

    subject: Subject

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> Completion:
        reply = _replayed_reply.get()
        if reply is None:
            raise ServiceError(f"{self.subject.name} is not called while recorded steps are scored again")
        return Completion(text=reply, finish="stop", model=self.subject.name)

    def highest_cost(self, turns: Sequence[Turn], *, schema: Mapping[str, Any] | None = None) -> float | None:
        return 0.0
