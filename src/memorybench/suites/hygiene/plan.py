"""Scenarios × phases, mutants and idle agents as jobs. Each is played in one recorded step."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from memorybench.core.errors import Lacking
from memorybench.core.plans import Job, Limits, Performed, Plan, Steps
from memorybench.core.records import Record, digest
from memorybench.core.trials import Exhibit, Score, Subject, Trial

from .driver import keeps_source
from .evidence import OpenStore
from .kills import kill_scores
from .measures import MEASURES
from .mutants import AGENTS, mutants_of
from .phases import PhaseReport, behave, violate
from .scenario import Scenario
from .script import Script
from .skips import skip_scores, unseen

UNDONE_BY_THE_STORE = "the store ends as it does without it, and no call is missing"
NO_SOURCE = "the store keeps no source of a fact: what is put there is gone, and does no harm"


class Kept(Record):
    """What a store keeps with a fact, beside what its capabilities say."""

    source: bool


@dataclass(frozen=True, slots=True)
class Store:
    """What is under test, and how it is opened on a folder of its own."""

    subject: Subject
    open: OpenStore
    spends: bool = False
    """Its calls may cost money."""


@dataclass(frozen=True, slots=True)
class Playing:
    """One script of one scenario."""

    phase: Literal["well_behaved", "violation", "mutant", "agent"]
    variant: str
    """The phase, or the name of the mutant or agent."""
    about: str
    script: Script
    needs_source: bool = False


@dataclass(frozen=True, slots=True)
class HygienePlan:
    scenarios: Sequence[Scenario]
    store: Store
    benchmark: str = "scenarios"
    """The name of the scenario set."""
    seed: int = 0
    """What is planted grows from it."""
    self_checks: bool = True
    """Whether mutants and idle agents are played, too."""
    limits: Mapping[str, Limits] = field(default_factory=dict)

    def plan(self) -> Plan:
        jobs = list(self._jobs())
        return Plan(jobs=jobs, size=len(jobs), metrics=MEASURES, limits=self.limits)

    def _jobs(self) -> Iterator[Job]:
        ordinal = 0
        for scenario in self.scenarios:
            for playing in playings(scenario, self_checks=self.self_checks):
                yield Job(
                    trial=self._trial(scenario, playing),
                    perform=partial(self._perform, scenario, playing),
                    ordinal=ordinal,
                    case=scenario,
                    shown=_shown(scenario, playing),
                    spends=self.store.spends,
                )
                ordinal += 1

    async def _perform(self, scenario: Scenario, playing: Playing, steps: Steps) -> Performed:
        if playing.phase in ("mutant", "agent"):
            await self._played_well(steps, scenario)
        report = await self._played(steps, scenario, playing)
        if playing.needs_source and not report.killed and not await self._keeps_source(steps):
            raise Lacking(NO_SOURCE)
        if report.result == "skipped":
            raise Lacking(report.reason)
        match playing.phase:
            case "well_behaved":
                scores = [_passed(report.result == "compliant", report), *skip_scores(report.findings)]
            case "violation":
                scores = _violation_scores(scenario, report)
            case "mutant":
                declared = scenario.deterministic.equivalent.get(playing.variant)
                scores = _mutant_scores(declared, report, await self._played_well(steps, scenario))
            case "agent":
                scores = [Score(name="convicted", value=float(report.killed), reason=report.reason)]
        reason = "; ".join(part for part in (report.reason, unseen(report.findings)) if part)
        shown = _shown(scenario, playing).model_copy(update={"got": report.result, "reason": reason})
        return Performed(scores=tuple(scores), shown=shown)

    async def _played_well(self, steps: Steps, scenario: Scenario) -> PhaseReport:
        """What a mutant is held against. Where the well-behaved script fails by itself, a worse one shows nothing."""
        report = await self._played(steps, scenario, _well_behaved(scenario))
        if report.result != "compliant":
            raise Lacking(f"the well-behaved script is {report.result} on this store: a worse one shows nothing")
        return report

    async def _keeps_source(self, steps: Steps) -> bool:
        store = self.store

        async def probe() -> Kept:
            return Kept(source=await keeps_source(store.open))

        kept = await steps.once("probe", {"store": store.subject}, probe, Kept, on=store.subject, paid=store.spends)
        return kept.source

    async def _played(self, steps: Steps, scenario: Scenario, playing: Playing) -> PhaseReport:
        """Once for each script, whoever asks."""
        inputs = {
            "store": self.store.subject,
            "scenario": digest(scenario),
            "phase": playing.variant,
            "script": digest([step.plain() for step in playing.script]),
            "seed": self.seed,
        }

        def play() -> Awaitable[PhaseReport]:
            if playing.phase == "violation":
                return violate(self.store.open, scenario, self.seed)
            return behave(self.store.open, scenario, self.seed, playing.script)

        store = self.store
        return await steps.once("phase", inputs, play, PhaseReport, on=store.subject, paid=store.spends)

    def _trial(self, scenario: Scenario, playing: Playing) -> Trial:
        return Trial(
            suite="hygiene",
            benchmark=self.benchmark,
            case_id=scenario.id,
            subject=self.store.subject,
            variant=playing.variant,
            labels={"scenario": scenario.id, "phase": playing.phase, "contract": scenario.contract},
            cluster=scenario.id,
        )


def playings(scenario: Scenario, *, self_checks: bool = True) -> Iterator[Playing]:
    """All that is done with a scenario without a model."""
    yield _well_behaved(scenario)
    yield Playing("violation", "violation", "does the declared harm", scenario.deterministic.violation.steps)
    if not self_checks:
        return
    for mutant in mutants_of(scenario):
        yield Playing("mutant", mutant.name, mutant.about, mutant.script, mutant.needs_source)
    for name, script_of in AGENTS.items():
        yield Playing("agent", name, f"the {name} agent", script_of(scenario))


def _well_behaved(scenario: Scenario) -> Playing:
    return Playing("well_behaved", "well_behaved", "does as it should", scenario.deterministic.well_behaved)


def _violation_scores(scenario: Scenario, report: PhaseReport) -> list[Score]:
    """A stable contract is kept by a store that defends itself, where that is what the scenario expects first."""
    must_defend = scenario.contract == "stable" and scenario.deterministic.violation.expectation == "defend-or-detect"
    good = ("defended",) if must_defend else ("defended", "detected")
    caught = Score(name="caught", value=float(report.result in ("defended", "detected")))
    return [
        _passed(report.result in good, report),
        caught,
        *kill_scores(report.findings),
        *skip_scores(report.findings),
    ]


def _mutant_scores(declared: str | None, report: PhaseReport, original: PhaseReport) -> list[Score]:
    """An equivalent mutant has no part in the mutation score: nobody could kill it."""
    if not report.killed:
        reason = declared or (UNDONE_BY_THE_STORE if report.harmless_beside(original) else None)
        if reason is not None:
            return [Score(name="equivalent", value=1.0, reason=reason)]
    killed = Score(name="killed", value=float(report.killed), reason=report.reason)
    return [killed, *kill_scores(report.findings)]


def _passed(passed: bool, report: PhaseReport) -> Score:
    return Score(name="passed", value=float(passed), reason="" if passed else report.reason)


def _shown(scenario: Scenario, playing: Playing) -> Exhibit:
    expected = {
        "well_behaved": "compliant",
        "violation": "defended or detected",
        "mutant": "violated",
        "agent": "violated, in some scenario",
    }
    return Exhibit(asked=f"{scenario.title}: {playing.about}", expected=expected[playing.phase])
