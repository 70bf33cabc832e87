"""Plays scenarios without an engine: every step is done when it is first asked for."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import memorybench.catalog
from memorybench.core.errors import Lacking, ServiceError
from memorybench.core.records import digest
from memorybench.core.trials import Failure, Outcome, Status, Subject
from memorybench.suites.hygiene.evidence import OpenStore
from memorybench.suites.hygiene.plan import HygienePlan, Store
from memorybench.suites.hygiene.scenario import Scenario
from memorybench.suites.hygiene.scenarios import scenarios_in

BUNDLED = Path(memorybench.catalog.__file__).parent / "scenarios"


def bundled(*names: str) -> tuple[Scenario, ...]:
    return tuple(scenario for scenario in scenarios_in(BUNDLED) if not names or scenario.id in names)


def scenario(**changes: Any) -> Scenario:
    """A small one, valid as it is."""
    whole = {
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
    return Scenario.model_validate(whole | changes)


class _Recorded:
    def __init__(self) -> None:
        self._done: dict[str, Any] = {}

    async def once(
        self,
        name: str,
        inputs: Mapping[str, Any],
        work: Callable[[], Awaitable[Any]],
        returns: type[Any],
        **_: object,
    ) -> Any:
        key = digest([name, inputs])
        if key not in self._done:
            self._done[key] = (await work()).model_dump_json()
        return returns.model_validate_json(self._done[key])

    def is_recorded(self, name: str, inputs: Mapping[str, Any]) -> bool:
        return digest([name, inputs]) in self._done

    def is_inherited(self, name: str, inputs: Mapping[str, Any], *, shared: bool = False) -> bool:
        return False

    async def note(self, kind: str, text: str) -> None:
        raise AssertionError("nothing is noted here")


def outcomes(open_store: OpenStore, scenarios: Sequence[Scenario], *, self_checks: bool = True) -> list[Outcome]:
    store = Store(Subject(role="store", name="under-test"), open_store)
    return asyncio.run(_performed(HygienePlan(scenarios, store, self_checks=self_checks)))


async def _performed(plan: HygienePlan) -> list[Outcome]:
    steps, settled = _Recorded(), []
    for job in plan.plan().jobs:
        status: Status = "scored"
        try:
            performed = await job.perform(steps)
        except (Lacking, ServiceError) as error:
            status = "skipped" if isinstance(error, Lacking) else "failed"
            failure = Failure(kind=type(error).__name__, message=str(error))
            settled.append(Outcome(trial=job.trial, status=status, failure=failure))
        else:
            settled.append(Outcome(trial=job.trial, status=status, scores=performed.scores, shown=performed.shown))
    return settled
