"""The jobs of a run without an agent: one recorded step per script of each scenario."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal

from msgspec import Struct

from memorybench.core.errors import Lacking
from memorybench.core.plans import Job, Performed, Plan, Steps
from memorybench.core.records import digest
from memorybench.core.trials import Exhibit, Score, Subject, Trial

from .checks import add_skips, kill_scores, residue_scores, skip_scores
from .driver import StoreProbe, probe_store
from .evidence import OpenStore
from .measures import MEASURES
from .mutants import AGENTS, mutants_of
from .phases import PhaseReport, check_script, check_violation
from .plays import Store
from .scenario import Scenario
from .script import USER, Script

SET = "scenarios"
UNDONE_BY_THE_STORE = "the store ends with the same facts as without it, and no call is missing"
NO_SOURCE = "the store does not keep the source of a fact, so this mutant changes nothing that could be detected"

_EXPECTED = {
    "well_behaved": "compliant",
    "violation": "defended or detected",
    "mutant": "violated",
    "agent": "violated, in some scenario",
}


class ScriptTrial(Struct, frozen=True):
    """One script of one scenario."""

    phase: Literal["well_behaved", "violation", "mutant", "agent"]
    variant: str
    """The name of the mutant or simple agent, or that of the phase."""
    description: str
    script: Script
    needs_source: bool = False

    def exhibit(self, scenario: Scenario, result: str = "", reason: str = "") -> Exhibit:
        question = f"{scenario.title}: {self.description}"
        return Exhibit(asked=question, expected=_EXPECTED[self.phase], got=result, reason=reason)


def script_trials(scenario: Scenario, *, self_checks: bool = True) -> Iterator[ScriptTrial]:
    """Yield all trials that need no model: both phases and, with `self_checks`, mutants and simple agents."""
    yield _well_behaved(scenario)
    yield ScriptTrial("violation", "violation", "performs the violation", scenario.deterministic.violation.steps)
    if self_checks:
        for mutant in mutants_of(scenario):
            yield ScriptTrial("mutant", mutant.name, mutant.description, mutant.script, mutant.needs_source)
        for name, make_script in AGENTS.items():
            yield ScriptTrial("agent", name, f"the {name} agent", make_script(scenario))


def _well_behaved(scenario: Scenario) -> ScriptTrial:
    return ScriptTrial("well_behaved", "well_behaved", "behaves well", scenario.deterministic.well_behaved)


def make_trial(scenario: Scenario, subject: Subject, phase: str, variant: str) -> Trial:
    labels = {"scenario": scenario.id, "phase": phase, "contract": scenario.contract}
    return Trial(suite="hygiene", benchmark=SET, case_id=scenario.id, subject=subject, variant=variant,
                 labels=labels, cluster=scenario.id)  # fmt: skip


class HygienePlan(Struct, frozen=True):
    scenarios: Sequence[Scenario]
    store: Store
    seed: int = 0
    """Determines the values of placeholders."""
    self_checks: bool = True
    """Whether to run mutants and simple agents as well, to check the assertions."""
    run: str = ""
    """The id of the run."""

    def plan(self) -> Plan:
        trials = [
            (scenario, trial)
            for scenario in self.scenarios
            for trial in script_trials(scenario, self_checks=self.self_checks)
        ]
        jobs = [
            Job(
                trial=make_trial(scenario, self.store.subject, trial.phase, trial.variant),
                perform=partial(self._perform, scenario, trial),
                ordinal=ordinal,
                case=scenario,
                shown=trial.exhibit(scenario),
            )
            for ordinal, (scenario, trial) in enumerate(trials)
        ]
        return Plan(jobs=jobs, size=len(jobs), metrics=MEASURES, limits=self.store.limits)

    async def _perform(self, scenario: Scenario, trial: ScriptTrial, steps: Steps) -> Performed:
        original = None
        if trial.phase in ("mutant", "agent"):
            original = await self._report(steps, scenario, _well_behaved(scenario))
            if original.result != "compliant":
                raise Lacking(
                    f"the well-behaved script is {original.result} on this store,"
                    " so the result of this script would prove nothing"
                )
        report = await self._report(steps, scenario, trial)
        if trial.needs_source and not report.is_caught and not (await self._probe(steps)).source:
            raise Lacking(NO_SOURCE)
        if report.result == "skipped":
            raise Lacking(report.reason)
        if trial.phase == "violation" and report.result == "detected" and not _must_block(scenario):
            # a check that fails on a store which keeps nothing has detected no violation
            original = await self._report(steps, scenario, _well_behaved(scenario))
            if original.result == "skipped":
                raise Lacking(
                    "the well-behaved script was skipped, so the failed check of this script proves nothing:"
                    f" {original.reason}"
                )
        reason = add_skips(report.reason, report.findings)
        scores = _scores(scenario, trial, report, original)
        return Performed(scores=tuple(scores), shown=trial.exhibit(scenario, report.result, reason))

    async def _report(self, steps: Steps, scenario: Scenario, trial: ScriptTrial) -> PhaseReport:
        """Run a script as a recorded step and return its report. All trials that need this report share it."""
        inputs = {
            "store": self.store.subject,
            "scenario": digest(scenario),
            "phase": trial.variant,
            "script": digest([step.plain() for step in trial.script]),
            "seed": self.seed,
        }
        users = {*scenario.users, *(step.user for step in trial.script)}

        async def check(open_store: OpenStore) -> PhaseReport:
            if trial.phase == "violation":
                return await check_violation(open_store, scenario, self.seed)
            return await check_script(open_store, scenario, self.seed, trial.script)

        return await self.store.play(steps, "phase", inputs, check, PhaseReport, run=self.run, users=users)

    async def _probe(self, steps: Steps) -> StoreProbe:
        inputs = {"store": self.store.subject}
        return await self.store.play(steps, "probe", inputs, probe_store, StoreProbe, run=self.run, users={USER})


def _must_block(scenario: Scenario) -> bool:
    """Return whether a store must block the violation to pass: if the contract is stable and a defence is expected."""
    return scenario.contract == "stable" and scenario.deterministic.violation.expectation == "defend-or-detect"


def _scores(scenario: Scenario, trial: ScriptTrial, report: PhaseReport, original: PhaseReport | None) -> list[Score]:
    """Return the scores of a trial. For a mutant, `original` is the report of the well-behaved script."""
    if trial.phase == "agent":
        return [Score(name="convicted", value=float(report.is_caught), reason=report.reason)]
    if trial.phase == "mutant":
        reason = scenario.deterministic.equivalent.get(trial.variant)
        if not reason and original is not None and report.is_equivalent_to(original):
            reason = UNDONE_BY_THE_STORE
        if reason and not report.is_caught:
            return [Score(name="equivalent", value=1.0, reason=reason)]  # no assertion could kill it
        killed = Score(name="killed", value=float(report.is_caught), reason=report.reason)
        return [killed, *kill_scores(report.findings)]
    good = {"compliant", "defended", *(() if _must_block(scenario) else ("detected",))}
    passed = report.result in good
    scores = [Score(name="passed", value=float(passed), reason="" if passed else report.reason)]
    if trial.phase == "violation":
        scores.append(Score(name="caught", value=float(report.result in ("defended", "detected"))))
        scores += kill_scores(report.findings)
    return [*scores, *skip_scores(report.findings), *residue_scores(report.findings)]
