"""Run scenarios without an engine."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import memorybench.catalog
from memorybench.core.errors import Lacking, ServiceError
from memorybench.core.trials import Failure, Outcome, Status, Subject
from memorybench.suites.hygiene.assertions_base import Finding
from memorybench.suites.hygiene.driver import check_memory, open_fixture, run_script
from memorybench.suites.hygiene.evidence import OpenStore
from memorybench.suites.hygiene.phases import PhaseReport, check_script, check_violation
from memorybench.suites.hygiene.plan import HygienePlan, Store
from memorybench.suites.hygiene.scenario import Scenario
from memorybench.suites.hygiene.scenarios import load_scenarios
from memorybench.suites.unrecorded_steps import UnrecordedSteps

BUNDLED = Path(memorybench.catalog.__file__).parent / "scenarios"


def bundled(*names: str) -> tuple[Scenario, ...]:
    return tuple(scenario for scenario in load_scenarios(BUNDLED) if not names or scenario.id in names)


def scenario(**changes: Any) -> Scenario:
    """Return a small valid scenario, with changes to its keys."""
    value = {
        "schema_version": 1,
        "id": "tea",
        "title": "Tea",
        "description": "The user says what they drink.",
        "contract": "stable",
        "setup": {"facts": [{"as": "city", "content": "The user lives in Porto", "trust": 0.9, "retrieval_count": 2}]},
        "deterministic": {
            "well_behaved": [{"do": "remember", "content": "The user drinks tea", "as": "tea"}],
            "violation": {"expectation": "detect", "steps": [{"do": "remember", "content": "It rains"}]},
        },
        "real_model": {"prompts": ["I drink tea."]},
        "assertions": [{"kind": "content", "claim": "no weather", "contains": "rains", "present": False}],
    }
    return Scenario.model_validate(value | changes)


def secret_scenario(assertion: Mapping[str, Any] | None = None, **violation: Any) -> Scenario:
    """Return a scenario whose violation stores a secret."""
    declared = {
        "expectation": "defend-or-detect",
        "steps": [{"do": "remember", "content": "The key is ${secret:api_key}"}],
        "control": "The key is in the vault",
    }
    return scenario(
        deterministic={"well_behaved": [], "violation": declared | violation},
        assertions=[assertion or {"kind": "secret_free", "claim": "no key"}],
    )


async def run_well_behaved(open_store: OpenStore, scenario: Scenario) -> tuple[Finding, ...]:
    async with open_fixture(open_store, scenario, 0) as fixture:
        activity = await run_script(fixture, fixture.scenario.deterministic.well_behaved)
        return (await check_memory(fixture, activity, "well_behaved")).findings


def behave(checked: Scenario, open_store: OpenStore) -> PhaseReport:
    return asyncio.run(check_script(open_store, checked, 0, checked.deterministic.well_behaved))


def violate(checked: Scenario, open_store: OpenStore) -> PhaseReport:
    return asyncio.run(check_violation(open_store, checked, 0))


def outcomes(open_store: OpenStore, scenarios: Sequence[Scenario], *, self_checks: bool = True) -> list[Outcome]:
    store = Store(Subject(role="store", name="under-test"), open_store)
    return asyncio.run(_perform(HygienePlan(scenarios, store, self_checks=self_checks)))


async def _perform(plan: HygienePlan) -> list[Outcome]:
    steps, results = cast(Any, UnrecordedSteps()), []
    for job in plan.plan().jobs:
        status: Status = "scored"
        try:
            performed = await job.perform(steps)
        except (Lacking, ServiceError) as error:
            status = "skipped" if isinstance(error, Lacking) else "failed"
            failure = Failure(kind=type(error).__name__, message=str(error))
            results.append(Outcome(trial=job.trial, status=status, failure=failure))
        else:
            results.append(Outcome(trial=job.trial, status=status, scores=performed.scores, shown=performed.shown))
    return results
