"""From a hygiene spec to a run: scenarios, a store, and an agent where one was asked for and paid for."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from memorybench import __version__
from memorybench.agents.recording import watch
from memorybench.catalog.catalog import Catalog
from memorybench.catalog.files import SCENARIOS
from memorybench.core.agents import ToolCall
from memorybench.core.errors import BadInput
from memorybench.core.plans import Limits, Plan
from memorybench.core.records import Record, canonical
from memorybench.core.stores import StoredFact
from memorybench.core.trials import Subject
from memorybench.engine.budget import Budget
from memorybench.engine.run import Ending, Watch, perform
from memorybench.journal.rows import Fingerprint, Run
from memorybench.journal.run_reader import RunReader
from memorybench.journal.run_writer import RunWriter
from memorybench.mcp import check_sdk
from memorybench.processes.programs import temporary_folder
from memorybench.secrets.credentials import credential_in
from memorybench.suites.hygiene.attempts import AttemptReport, Attempts
from memorybench.suites.hygiene.drafts import Phase, draft, write_draft
from memorybench.suites.hygiene.measures import MEASURES
from memorybench.suites.hygiene.plan import HygienePlan, Store, playings
from memorybench.suites.hygiene.scenario import Scenario
from memorybench.suites.hygiene.scenarios import scenarios_in
from memorybench.suites.hygiene.script import USER
from memorybench.text.spelling import suggestion

from .agents import ChosenAgent, choose_agent
from .environment import environment, redactor
from .models import Chosen
from .providers import lines
from .running import blocking, saved_run, saved_spec
from .stores import ChosenStore, choose_store

SUITE = "hygiene"
REFERENCE = "reference"
SET = "scenarios"
TRANSCRIPTS = "transcripts"
_OWN = Path("scenarios")


class HygieneSpec(Record):
    """All that a run depends on. Saved with it: `--resume` needs nothing else."""

    scenarios: tuple[str, ...] = ()
    """Ids; none: all that are found."""
    folders: tuple[str, ...] = ()
    store: str = REFERENCE
    seed: int = 0
    mutants: bool = True
    agent: str | None = None
    """None: scripts are played, and no model takes part."""
    model: str | None = None
    repeats: int = Field(default=1, ge=1)
    config_dirs: tuple[str, ...] = ()
    allow_code: bool = False
    reuse: str | None = None


@dataclass(frozen=True, slots=True)
class PreparedHygiene:
    """Everything is resolved, nothing is opened."""

    spec: HygieneSpec
    scenarios: tuple[Scenario, ...]
    store: ChosenStore
    agent: ChosenAgent | None
    """Who is put to the scenarios; None: nobody, or nobody agreed to the cost yet."""
    consent: bool
    """Whether the user has agreed to what an agent costs. Never saved: it is asked for at every start."""
    fingerprints: Mapping[str, Fingerprint]

    @property
    def reuse(self) -> str | None:
        return self.spec.reuse

    @property
    def subject(self) -> str:
        return self.spec.agent or self.store.name

    @property
    def blocked(self) -> bool:
        return self.spec.agent is not None and not self.consent

    @property
    def models(self) -> tuple[Chosen | None, ...]:
        return (self.agent.model if self.agent else None,)

    @property
    def planned(self) -> int:
        return sum(self._phases().values())

    def _phases(self) -> Counter[str]:
        if self.spec.agent is not None:
            asked = sum(scenario.real_model is not None for scenario in self.scenarios)
            return Counter({"real_model": asked * self.spec.repeats})
        checks = self.spec.mutants
        return Counter(one.phase for scenario in self.scenarios for one in playings(scenario, self_checks=checks))

    def totals(self) -> dict[tuple[str, str], int]:
        return {(SET, self.subject): self.planned}

    def row(self, run_id: str) -> Run:
        phases = self._phases()
        return Run(
            id=run_id,
            suite=SUITE,
            spec={
                **self.spec.model_dump(mode="json"),
                "benchmarks": [SET],
                "subjects": [self.subject],
                "questions": {SET: self.planned},
                "selected": {
                    "passed": phases["well_behaved"] + phases["violation"] + phases["real_model"],
                    "caught": phases["violation"],
                    "mutation_score": phases["mutant"],
                    "adoption": phases["real_model"],
                    "restraint": phases["real_model"],
                },
                "titles": {scenario.id: scenario.title for scenario in self.scenarios},
            },
            fingerprints=self.fingerprints,
            program=f"memorybench {__version__}",
            planned=self.planned,
        )

    async def perform(
        self, run_writer: RunWriter, output: Path, *, concurrency: int, budget: Budget, watch: Watch | None
    ) -> Ending:
        if self.blocked:
            await perform(self._blocked_plan(), run_writer, concurrency=concurrency, budget=budget, watch=watch)
            return Ending("blocked", False, self.planned)
        async with AsyncExitStack() as stack:
            plan = await self._plan(stack)
            ending = await perform(plan, run_writer, concurrency=concurrency, budget=budget, watch=watch)
        if self.agent is not None:
            await asyncio.to_thread(_write_transcripts, output, run_writer.run.id)
        return ending

    def _blocked_plan(self) -> Plan:
        """Opens neither store nor agent."""
        store = Store(Subject(role="store", name=self.store.name), self.store.open)
        attempts = self._attempts(store)
        return Plan(jobs=attempts.blocked_jobs(), size=attempts.size, metrics=MEASURES)

    async def _plan(self, stack: AsyncExitStack) -> Plan:
        store = Store(await self._store_subject(), self.store.open)
        if self.agent is None:
            checks = self.spec.mutants
            return HygienePlan(self.scenarios, store, benchmark=SET, seed=self.spec.seed, self_checks=checks).plan()
        agent = await self.agent.open(stack)
        from memorybench.mcp.store_server import serve_store

        attempts = self._attempts(store)
        jobs = attempts.jobs(agent, serve_store(self.store.open))
        limits = {agent.subject.key: Limits(concurrency=1, tries=1)}  # a second try would pay for all of it again
        return Plan(jobs=jobs, size=attempts.size, metrics=MEASURES, limits=limits)

    def _attempts(self, store: Store) -> Attempts:
        """Trials are called by names alone: so a blocked one is the same when it is let through."""
        agent = Subject(role="agent", name=self.subject)
        return Attempts(self.scenarios, store, agent, repeats=self.spec.repeats, benchmark=SET, seed=self.spec.seed)

    async def _store_subject(self) -> Subject:
        """What the store calls itself, with its version: only an open one knows."""
        with temporary_folder("memorybench-") as folder:
            async with self.store.open(folder) as opened:
                return opened.subject


def prepare_hygiene(spec: HygieneSpec, folder: Path, *, consent: bool = False) -> PreparedHygiene:
    catalog = Catalog(folder, [Path(place) for place in spec.config_dirs])
    store = choose_store(catalog, spec.store, allow_code=spec.allow_code)
    scenarios = find_scenarios(spec.scenarios, spec.folders, folder)
    marks = {"store": Fingerprint.of(store.described())}
    agent = None
    if spec.agent is not None:
        marks["agent"] = Fingerprint.of(f"{lines(catalog.agent(spec.agent).plain())}\nmodel {spec.model}")
        if consent:
            agent = choose_agent(catalog, spec.agent, spec.model, allow_code=spec.allow_code)
    elif spec.model is not None or spec.repeats > 1:
        raise BadInput("--model" if spec.model else "--repeats", "is for an agent", expected="--agent NAME beside it")
    marks |= {f"scenario {scenario.id}": Fingerprint.of(canonical(scenario)) for scenario in scenarios}
    return PreparedHygiene(spec, scenarios, store, agent, consent, marks)


def hygiene_again(run_id: str, output: Path, *, consent: bool = False) -> PreparedHygiene:
    return prepare_hygiene(saved_spec(HygieneSpec, saved_run(run_id, output, SUITE)), Path(), consent=consent)


def _write_transcripts(output: Path, run_id: str) -> None:
    """What each agent was asked, said and did, prompt by prompt: claims about it can be checked there."""
    folder = output / run_id / TRANSCRIPTS
    with RunReader.open(output, thorough=False) as run_reader:
        for inputs, result in run_reader.step_records(run_id, "agent"):
            report = AttemptReport.model_validate_json(result)
            told = json.loads(inputs)
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = folder / f"{told['title']}-{told['repeat']}.json"
            file.write_text(report.model_dump_json(indent=2), encoding="utf-8")


def record(
    name: str, command: Sequence[str], store: str, to: Path, *, shows: Phase, catalog: Catalog, allow_code: bool
) -> tuple[int, str | None]:
    """Runs a command behind the recorder, on a store of its own, and writes what it did as a scenario draft.

    How many calls it made, and what looks like a credential in the draft.
    """
    if to.exists():
        raise BadInput(str(to), "is there already", remedy="name another file with --to")
    check_sdk("hygiene record")
    chosen = choose_store(catalog, store, allow_code=allow_code)
    with temporary_folder("memorybench-record-") as folder:
        calls, held = blocking(_watched(chosen, command, folder))
    made = json.loads(redactor().clean(json.dumps(draft(name, calls, held, shows=shows), ensure_ascii=False)))
    write_draft(to, made)
    return len(calls), credential_in(json.dumps(made, ensure_ascii=False))


async def _watched(
    chosen: ChosenStore, command: Sequence[str], folder: Path
) -> tuple[Sequence[ToolCall], Sequence[StoredFact]]:
    from memorybench.mcp.store_server import serve_store

    calls = await watch(command, serve_store(chosen.open), folder, folder=Path.cwd(), environment=environment())
    async with chosen.open(folder) as store:
        return calls, await store.list(USER)


def find_scenarios(ids: Sequence[str], folders: Sequence[str], folder: Path) -> tuple[Scenario, ...]:
    """Bundled ones, those in ./scenarios, and those of the folders named; all, or the ones with these ids."""
    own = [folder / _OWN] if (folder / _OWN).is_dir() else []
    named = [Path(place) for place in folders]
    found = {scenario.id: scenario for scenario in scenarios_in(SCENARIOS, *own, *named)}
    for id in ids:
        if id not in found:
            raise BadInput(
                "", f'no scenario "{id}"', remedy=f"{suggestion(id, list(found))} (memorybench hygiene list)"
            )
    return tuple(found[id] for id in ids) if ids else tuple(found.values())
