"""Prepares a run from a hygiene spec: scenarios, a store, and an agent if the user named one and accepted its cost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.core.plans import Limits, Plan
from memorybench.core.records import canonical
from memorybench.core.trials import Subject
from memorybench.core.uses import Use
from memorybench.files.names import inside
from memorybench.files.writing import write_file
from memorybench.journal.rows import Fingerprint
from memorybench.journal.run_reader import RunReader
from memorybench.suites.estimates import unpriced_calls
from memorybench.suites.shards import ShardPart, Unit, choose_units
from memorybench.suites.spec import with_folders
from memorybench.suites.suite import Opening, PreparedRun, RunPlace
from memorybench.suites.wiring import ResolvedStore, Wiring
from memorybench.text.spelling import suggestion

from .assertions_memory import Sql
from .attempts import NEEDS_CONSENT, AttemptReport, Attempts, check_kinds, choose_server
from .measures import MEASURES
from .plan import SET, HygienePlan, script_trials
from .plays import Store, open_subject
from .scenario import Scenario
from .scenarios import load_scenarios
from .spec import HygieneSpec, new_seed

if TYPE_CHECKING:
    from memorybench.wiring.agents import ResolvedAgent

TRANSCRIPTS = "transcripts"
BUNDLED_SCENARIOS, OWN_SCENARIOS = "scenarios", Path("scenarios")


def prepare(spec: HygieneSpec, wiring: Wiring, place: RunPlace) -> PreparedRun:
    spec = spec.model_copy(update={"seed": _find_seed(spec, place)})
    consent = spec.agent_turn and spec.i_understand_model_cost
    if spec.agent is None and (spec.agent_turn or spec.i_understand_model_cost):
        raise BadInput("--agent-turn", "no agent is named", remedy="add --agent NAME")
    store = wiring.store(spec.store)
    scenarios = find_scenarios(spec.scenarios, spec.folders, wiring)
    _check_queries(scenarios, wiring)
    fingerprints = {"store": store.described()}
    agent = tools = None
    if spec.agent is not None:
        tools = store.choose_tools(spec.tools)
        fingerprints["agent"] = f"{wiring.describe_agent(spec.agent)}\nmodel {spec.model}"
        if consent:
            agent = wiring.agent(spec.agent, spec.model)
    elif spec.model is not None or spec.repeats > 1 or spec.tools is not None:
        given = "--model" if spec.model else "--tools" if spec.tools else "--repeats"
        raise BadInput(given, "no agent is named", remedy="add --agent NAME, or leave out this flag")
    spec = spec.model_copy(update={"tools": tools})  # a resumed run keeps the choice
    fingerprints |= {f"scenario {scenario.id}": canonical(scenario) for scenario in scenarios}
    run = _HygieneRun(spec, scenarios, store, agent)
    part, performed = None, scenarios
    if spec.shard is not None:
        part = choose_units(spec.shard, run.units())
        performed = tuple(scenario for scenario in scenarios if (SET, scenario.id) in part)
    planned = sum(run.count_phases(performed).values())
    subject = spec.agent or store.name
    blocked = spec.agent is not None and not consent
    return PreparedRun(
        spec=spec,
        totals={(SET, subject): planned},
        subjects=(subject,),
        fingerprints={name: Fingerprint.of(text) for name, text in fingerprints.items()},
        metrics=MEASURES,
        open_plan=run.open_plan,
        cases={SET: frozenset(scenario.id for scenario in performed)},
        details=run.details(performed),
        models=(agent.model if agent else None,),
        estimate=lambda: (
            unpriced_calls(SET, subject, "agent" if spec.agent else "scenario", planned, spends=spec.agent is not None),
        ),
        hints={with_folders(("memorybench", "list", "--stores"), spec): "which other stores can be tested"},
        blocked=NEEDS_CONSENT if blocked else "",
        part=None
        if part is None
        else ShardPart(
            part,
            len(run.units()),
            {(SET, subject): sum(run.count_phases(scenarios).values())},
            run.details(scenarios),
        ),
    )


def _find_seed(spec: HygieneSpec, place: RunPlace) -> int:
    """Return the seed of the run: that of the spec; else 0 for a shard, that of a reused run, or a random one."""
    if spec.seed is not None:
        return spec.seed
    if spec.shard is not None:
        return 0  # all parts of a run plant the same values
    if spec.reuse is not None:
        with RunReader.open(place.results, thorough=False) as run_reader:
            return int(run_reader.run(spec.reuse).spec.get("seed") or 0)
    return new_seed()


def find_scenarios(ids: Sequence[str], folders: Sequence[str], wiring: Wiring) -> tuple[Scenario, ...]:
    """Return the scenarios with these ids, or all if there are no ids.

    They come from memorybench itself, from ./scenarios and from `folders`. Raise BadInput for an unknown id.
    """
    own = [OWN_SCENARIOS] if OWN_SCENARIOS.is_dir() else []
    places = [wiring.bundled_file(BUNDLED_SCENARIOS), *own, *(Path(folder) for folder in folders)]
    known = {scenario.id: scenario for scenario in load_scenarios(*places)}
    for id in ids:
        if id not in known:
            raise BadInput(
                "",
                f'no scenario "{id}"',
                remedy=f"{suggestion(id, list(known))} `memorybench hygiene list` shows all".lstrip(),
            )
    return tuple(known[id] for id in ids) if ids else tuple(known.values())


def _check_queries(scenarios: Sequence[Scenario], wiring: Wiring) -> None:
    """Raise ConsentRequired for SQL in scenarios that memorybench does not provide, unless the user allows it."""
    bundled = {path.stem for path in wiring.bundled_file(BUNDLED_SCENARIOS).glob("*.json")}
    for scenario in scenarios:
        if scenario.id not in bundled:
            queries = [
                Use(assertion.query, f"assertions.{index}.query")
                for index, assertion in enumerate(scenario.assertions)
                if isinstance(assertion, Sql)
            ]
            wiring.require_code(f'scenario "{scenario.id}"', queries)


class _HygieneRun(Struct, frozen=True):
    """The spec of a run with its scenarios, store and agent."""

    spec: HygieneSpec
    scenarios: tuple[Scenario, ...]
    store: ResolvedStore
    agent: ResolvedAgent | None
    """The agent; None if the spec names none, or the user has not accepted its cost."""

    def count_phases(self, scenarios: Sequence[Scenario]) -> Counter[str]:
        if self.spec.agent is not None:
            attempts = sum(scenario.real_model is not None for scenario in scenarios)
            return Counter({"real_model": attempts * self.spec.repeats})
        checks = self.spec.mutants
        return Counter(one.phase for scenario in scenarios for one in script_trials(scenario, self_checks=checks))

    def units(self) -> set[Unit]:
        """The scenarios that have trials. With an agent, only scenarios with prompts do."""
        has_agent = self.spec.agent is not None
        return {(SET, one.id) for one in self.scenarios if not has_agent or one.real_model is not None}

    def details(self, scenarios: Sequence[Scenario]) -> dict[str, Any]:
        """The data about these scenarios that the run records for its report."""
        phases = self.count_phases(scenarios)
        return {
            "selected": {
                "passed": phases["well_behaved"] + phases["violation"] + phases["real_model"],
                "caught": phases["violation"],
                "mutation_score": phases["mutant"],
                "adoption": phases["real_model"],
                "restraint": phases["real_model"],
                "refused_by_store": phases["real_model"],
            },
            "titles": {scenario.id: scenario.title for scenario in scenarios},
        }

    async def open_plan(self, opening: Opening) -> Plan:
        if self.spec.agent is not None and self.agent is None:  # blocked: neither store nor agent is opened
            attempts = self._attempts(Store(Subject(role="store", name=self.store.name), self.store.open), opening)
            return Plan(jobs=attempts.jobs(None, None), size=attempts.size, metrics=MEASURES)
        store = await open_subject(self.store)
        if self.agent is None:
            opening.check_subject(store.subject)
            seed, self_checks = self.spec.seed or 0, self.spec.mutants
            return HygienePlan(self.scenarios, store, seed, self_checks, run=opening.run_id).plan()
        agent = await self.agent.open(opening.stack)
        check_kinds(agent, store)
        attempts = self._attempts(store, opening)
        jobs = attempts.jobs(agent, choose_server(self.store, self.spec.tools))
        limits = {agent.subject.key: Limits(concurrency=1, tries=1)}  # a second try would pay for all of it again
        return Plan(jobs=jobs, size=attempts.size, metrics=MEASURES, limits=limits)

    def _attempts(self, store: Store, opening: Opening) -> Attempts:
        """Return the trials with the agent. Their subject has only its name, so that a blocked trial can run later."""
        return Attempts(
            self.scenarios,
            store,
            Subject(role="agent", name=self.spec.agent or self.store.name),
            repeats=self.spec.repeats,
            seed=self.spec.seed or 0,
            run=opening.run_id,
            tools=self.spec.tools or "ours",
        )


def write_transcripts(place: RunPlace) -> None:
    """Write one JSON file per attempt, with its prompts, replies, calls and findings, to the folder of the run."""
    folder = place.folder / TRANSCRIPTS
    with RunReader.open(place.results, thorough=False) as run_reader:
        for inputs, result in run_reader.step_records(place.run_id, "agent"):
            report = AttemptReport.model_validate_json(result)
            step = json.loads(inputs)
            file = inside(folder, f"{step['title']}-{step['repeat']}.json", TRANSCRIPTS)
            write_file(file, report.model_dump_json(indent=2))
