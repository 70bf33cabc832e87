"""Computes the scores of recorded scenarios again, from the recorded findings. Scenarios are not run again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from memorybench.core.plans import Performed
from memorybench.core.records import digest
from memorybench.core.trials import Outcome
from memorybench.suites.replayed_steps import (
    CannotRescore,
    Contradiction,
    RecordedRun,
    ReplayedSteps,
    Rescored,
    Rescorer,
)

from .attempts import AttemptReport, attempt_name, performed_attempt
from .phases import PhaseReport, is_consistent
from .plan import HygienePlan, make_trial, script_trials
from .plays import Store
from .scenario import Scenario


def _no_store(*_: Any) -> Any:
    raise CannotRescore("the run does not record the result of the scenario")


@dataclass(frozen=True, slots=True)
class _HygieneRescorer(Rescorer):
    run: RecordedRun

    async def rescore(self, outcome: Outcome, case: Mapping[str, Any], steps: ReplayedSteps) -> Rescored:
        spec, trial, scenario = self.run.run.spec, outcome.trial, self._scenario(case, "scores")
        phase = trial.labels.get("phase", "")
        expected = make_trial(scenario, trial.subject, phase, trial.variant)
        if phase == "real_model":
            performed = _rescore_attempt(scenario, steps)
            return Rescored(performed, trial=expected)
        script = next((one for one in script_trials(scenario) if one.variant == trial.variant), None)
        if script is None or script.phase != phase:
            raise Contradiction(f"the scenario has no script {trial.variant!r}")
        store = Store(trial.subject, _no_store)
        plan = HygienePlan((scenario,), store, seed=spec.get("seed") or 0, run=self.run.run.id)
        self._check_reports(scenario, steps)
        performed = await plan._perform(scenario, script, steps)
        return Rescored(performed, are_inputs_known=spec.get("seed") is not None, trial=expected)

    def _scenario(self, case: Mapping[str, Any], wanted: str) -> Scenario:
        """Return the recorded scenario. Raise CannotRescore if there is none; its message names what is `wanted`."""
        spec = self.run.run.spec
        if spec.get("mode", "scenarios") != "scenarios":
            raise CannotRescore(f"{wanted} of a hygiene run of the mode {spec['mode']} cannot be computed again")
        if "assertions" not in case:
            raise CannotRescore("a public bundle does not contain the scenario")
        try:
            return Scenario.model_validate(case)
        except ValidationError:
            if self.run.is_of_this_version:
                raise
            raise CannotRescore("another version of memorybench made this run, whose scenario is invalid now") from None

    def _check_reports(self, scenario: Scenario, steps: ReplayedSteps) -> None:
        """Raise Contradiction if the recorded result of a phase contradicts its findings."""
        recorded = (step for key in steps.keys if (step := steps.recorded.get(key)) is not None)
        for step in recorded:
            if step.name != "phase":
                continue
            phase, report = step.inputs["phase"], PhaseReport.model_validate(step.result)
            if is_consistent(report, scenario, is_violation=phase == "violation"):
                continue
            if not self.run.is_of_this_version:
                raise CannotRescore("another version of memorybench made this run, and may name results differently")
            raise Contradiction(f"the recorded result of the phase {phase} does not follow from its findings")

    def trials_of_case(self, case: Mapping[str, Any] | None) -> list[tuple[str, int]]:
        if case is None:
            raise CannotRescore("the bundle does not contain the case of a failed trial")
        spec, scenario = self.run.run.spec, self._scenario(case, "the trials")
        if spec.get("agent"):
            return [(attempt_name(repeat), 1) for repeat in range(1, (spec.get("repeats") or 1) + 1)]
        scripts = script_trials(scenario, self_checks=bool(spec.get("mutants", True)))
        return [(script.variant, 1) for script in scripts]


def _rescore_attempt(scenario: Scenario, steps: ReplayedSteps) -> Performed:
    step = steps.next("agent")
    if step.inputs.get("scenario") != digest(scenario):
        raise Contradiction("the recorded attempt of the agent belongs to another scenario")
    return performed_attempt(scenario, AttemptReport.model_validate(step.result))


def rescorer(run: RecordedRun) -> _HygieneRescorer:
    return _HygieneRescorer(run)
