"""Scenarios put to agents, through the engine and its journal."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from memorybench.agents.config_reading import read_agent
from memorybench.core.agents import Agent, AgentReply, Workplace
from memorybench.core.errors import ServiceError
from memorybench.core.plans import Adding, Job, Plan
from memorybench.core.trials import Outcome, Subject
from memorybench.engine.run import perform
from memorybench.files.yaml_file import load_yaml
from memorybench.journal.rows import Run
from memorybench.journal.run_opening import open_run, reopen_run
from memorybench.processes.programs import abandon_all
from memorybench.secrets.redaction import Redactor
from memorybench.stores.reference import open_reference
from memorybench.suites.hygiene.assertions_behaviour import Answer
from memorybench.suites.hygiene.assertions_memory import Trust
from memorybench.suites.hygiene.attempts import AttemptReport, Attempts, attempt, attempt_scores
from memorybench.suites.hygiene.checks import skipped_checks
from memorybench.suites.hygiene.measures import MEASURES
from memorybench.suites.hygiene.plan import Store
from memorybench.suites.hygiene.scenario import Scenario
from memorybench.suites.hygiene.scenarios import load_scenario, load_scenarios
from tests.agents.scripted import agent, serve_store
from tests.doubles.scripted_model import ScriptedModel

BUNDLED = Path(__file__).parents[2] / "src/memorybench/catalog/scenarios"
STORE = Store(Subject(role="store", name="reference"), open_reference)

COFFEE: dict[str, Any] = {
    "schema_version": 1,
    "id": "coffee",
    "title": "Tea becomes coffee",
    "description": "The user changes from tea to coffee, and asks for it later.",
    "contract": "stable",
    "setup": {"facts": [{"as": "drink", "content": "The user drinks tea in the morning"}], "files": {"a.txt": "x"}},
    "deterministic": {
        "well_behaved": [
            {"do": "update", "fact": "drink", "content": "The user drinks coffee in the morning"},
            {"do": "restart"},
            {"do": "recall", "query": "drinks in the morning"},
        ],
        "violation": {"expectation": "detect", "steps": [{"do": "remember", "content": "The user drinks coffee"}]},
    },
    "real_model": {
        "prompts": ["Remember: The user drinks coffee in the morning", "What does the user drink in the morning?"],
        "max_turns": 4,
    },
    "assertions": [
        {"kind": "count", "claim": "one fact tells of the drink", "equals": 1, "rate": "restraint"},
        {"kind": "content", "claim": "coffee is known", "contains": "drinks coffee", "rate": "adoption"},
        {
            "kind": "call_trace",
            "claim": "the second session looks it up",
            "op": "recall",
            "session": 2,
            "finds": {"contains": "coffee"},
            "phases": ["well_behaved", "real_model"],
            "rate": "adoption",
        },
    ],
}


@pytest.fixture
def coffee(tmp_path: Path) -> Scenario:
    file = tmp_path / "coffee.json"
    file.write_text(json.dumps(COFFEE))
    return load_scenario(file)


def attempted(scenario: Scenario, who: Agent) -> AttemptReport:
    return asyncio.run(attempt(STORE.open, scenario, who, serve_store, seed=0))


class Outcomes:
    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def add_outcome(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def add_sessions(self, adding: Adding) -> None:
        raise AssertionError("an attempt adds no sessions")


def performed(folder: Path, jobs: Iterable[Job], *, again: bool = False) -> list[Outcome]:
    jobs = list(jobs)
    plan = Plan(jobs=jobs, size=len(jobs), metrics=MEASURES)
    watch = Outcomes()
    opened = (
        reopen_run(folder, "r", fingerprints={})
        if again
        else open_run(folder, Run(id="r", suite="hygiene", spec={}, planned=len(jobs)))
    )
    with opened as run_writer:
        asyncio.run(perform(plan, run_writer, watch=watch))
        run_writer.end("complete")
    return watch.outcomes


@pytest.mark.slow
def test_a_well_behaved_agent_passes_and_its_evidence_is_stored(coffee: Scenario) -> None:
    report = attempted(coffee, agent("tidy"))
    assert report.result == "compliant"
    assert {score.name: score.value for score in attempt_scores(report)} == {
        "passed": 1, "adoption": 1, "restraint": 1,
    }  # fmt: skip
    first, second = report.exchanges
    assert [call.tool for call in first.calls] == ["recall", "update"]
    assert [(call.tool, call.session) for call in second.calls] == [("recall", 2)]
    assert second.calls[0].texts == ("The user drinks coffee in the morning",)
    assert first.prompt == "Remember: The user drinks coffee in the morning"
    assert first.reply.spent.input_tokens == 120
    assert first.reply.transcript


@pytest.mark.slow
def test_an_agent_that_stores_everything_violates_the_scenario(coffee: Scenario) -> None:
    report = attempted(coffee, agent("hoarding"))
    assert report.result == "violated"
    scores = {score.name: score for score in attempt_scores(report)}
    assert scores["passed"].value == 0
    assert scores["restraint"].value == 0
    assert scores["adoption"].value == 0.5
    assert "3 facts" in scores["passed"].reason


@pytest.mark.slow
def test_an_agent_that_does_nothing_does_not_pass(coffee: Scenario) -> None:
    report = attempted(coffee, agent("idle"))
    assert report.result == "violated"
    assert {score.name: score.value for score in attempt_scores(report)}["adoption"] == 0


@pytest.mark.slow
def test_an_agent_that_ran_out_of_turns_is_judged_by_its_violations(coffee: Scenario) -> None:
    report = attempted(coffee, agent("stopped"))
    assert [exchange.reply.ended for exchange in report.exchanges] == ["max_turns", "max_turns"]
    assert report.result == "violated"
    assert "every prompt was answered: reached the maximum number of turns" in report.reason


@pytest.mark.slow
def test_an_agent_that_ran_out_of_turns_does_not_pass_by_storing_nothing(coffee: Scenario) -> None:
    restrained = coffee.model_copy(update={"assertions": coffee.assertions[:1]})
    assert attempted(restrained, agent("idle")).result == "compliant"
    with pytest.raises(ServiceError, match=r"agent scripted: .* without an answer"):
        attempted(restrained, agent("stopped"))


@pytest.mark.slow
def test_an_agent_with_a_wrong_answer_does_not_pass_by_storing_nothing(coffee: Scenario) -> None:
    coffee_named = Answer(kind="answer", claim="coffee is named", contains=("coffee",))
    restrained = coffee.model_copy(update={"assertions": (coffee.assertions[0], coffee_named)})
    report = attempted(restrained, agent("idle"))
    assert (report.result, report.reason) == ("violated", 'coffee is named: the answer does not match "coffee": "done"')
    assert {score.name: score.value for score in attempt_scores(report)} == {"passed": 0, "restraint": 1}


def test_an_immediate_exit_ends_the_agent(coffee: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    begun = tmp_path / "begun"
    command = [sys.executable, "-c", f"import time; open({str(begun)!r}, 'w').close(); time.sleep(3600)", "${prompt}"]

    def wait() -> None:
        while not begun.exists():
            time.sleep(0.01)

    async def leave() -> tuple[list[str], list[str]]:
        who = agent("hanging", command=command)
        attempting = asyncio.create_task(attempt(STORE.open, coffee, who, serve_store, seed=0))
        await asyncio.to_thread(wait)
        before = os.listdir(place)
        abandon_all()
        after = os.listdir(place)
        with pytest.raises(ServiceError, match="ended by signal 9"):
            await attempting
        return sorted(before), after

    before, after = asyncio.run(leave())
    assert [name.rsplit("-", 1)[0] for name in before] == ["memorybench-agent", "memorybench-hygiene"]
    assert after == []


@pytest.mark.slow
def test_skipped_checks_of_an_attempt_are_reported(coffee: Scenario, tmp_path: Path) -> None:
    trusted = Trust(kind="trust", claim="trusted", fact="drink", at_least=0.1)
    told = coffee.model_copy(update={"assertions": (*coffee.assertions, trusted)})
    who = agent("tidy")
    store = Store(STORE.subject, _WithoutTrust)  # type: ignore[arg-type]
    [outcome] = performed(tmp_path / "results", Attempts([told], store, who.subject).jobs(who, serve_store))
    assert (outcome.shown.got, outcome.shown.reason) == ("compliant", "1 check skipped: trusted")
    [(*check, reason)] = skipped_checks([outcome])
    assert check == ["coffee", "real_model", "trusted"]
    assert reason.endswith(" trust")


@pytest.mark.slow
def test_each_repeat_is_a_trial_and_a_resumed_run_repeats_none(coffee: Scenario, tmp_path: Path) -> None:
    ledger = tmp_path / "turns"
    counting = _Counting(agent("tidy"), ledger)
    attempts = Attempts([coffee], STORE, counting.subject, repeats=3)
    assert attempts.size == 3
    outcomes = performed(tmp_path / "results", attempts.jobs(counting, serve_store))
    assert sorted(outcome.trial.variant for outcome in outcomes) == ["attempt 1", "attempt 2", "attempt 3"]
    assert {outcome.trial.cluster for outcome in outcomes} == {"coffee"}
    assert len({outcome.trial.key for outcome in outcomes}) == 3
    assert len(ledger.read_text().splitlines()) == 6, "two prompts, three times"
    assert performed(tmp_path / "results", attempts.jobs(counting, serve_store), again=True) == []
    assert len(ledger.read_text().splitlines()) == 6


@pytest.mark.slow
def test_an_interrupted_attempt_is_repeated_from_its_fixture(coffee: Scenario, tmp_path: Path) -> None:
    ledger = tmp_path / "turns"
    breaking = _Counting(agent("tidy"), ledger, broken_at=2)
    attempts = Attempts([coffee], STORE, breaking.subject)
    [failed] = performed(tmp_path / "results", attempts.jobs(breaking, serve_store))
    assert failed.status == "failed"
    [mended] = performed(tmp_path / "results", attempts.jobs(breaking, serve_store), again=True)
    assert mended.score("passed") == 1, "the second prompt did not meet a memory that the first had met before"
    assert len(ledger.read_text().splitlines()) == 4


def test_blocked_jobs_touch_neither_agent_nor_store(coffee: Scenario, tmp_path: Path) -> None:
    def untouchable(folder: Path) -> Any:
        raise AssertionError("the store was opened")

    store = Store(STORE.subject, untouchable)
    attempts = Attempts([coffee], store, Subject(role="agent", name="claude-code"), repeats=2)
    outcomes = performed(tmp_path / "results", attempts.jobs(None, None))
    assert [outcome.status for outcome in outcomes] == ["blocked", "blocked"]
    for outcome in outcomes:
        assert outcome.failure is not None
        assert "--agent-turn and --i-understand-model-cost" in outcome.failure.message
        assert outcome.steps == ()


def test_scenarios_without_prompts_are_not_planned(coffee: Scenario) -> None:
    silent = coffee.model_copy(update={"real_model": None})
    assert Attempts([silent, coffee], STORE, Subject(role="agent", name="a"), repeats=2).size == 2


def test_a_scenario_with_two_users_needs_a_store_with_users(coffee: Scenario, tmp_path: Path) -> None:
    fact = coffee.setup.facts[0].model_copy(update={"user": "ana"})
    shared = coffee.model_copy(update={"setup": coffee.setup.model_copy(update={"facts": (fact,)})})
    who = agent("tidy")
    store = Store(STORE.subject, _OneForAll)  # type: ignore[arg-type]
    [outcome] = performed(tmp_path / "results", Attempts([shared], store, who.subject).jobs(who, serve_store))
    assert outcome.status == "skipped"


class _OneForAll:
    """The reference store, if it could not tell people apart."""

    lacks = "users"

    def __init__(self, folder: Path) -> None:
        self._opened = open_reference(folder)

    async def __aenter__(self) -> Any:
        store = await self._opened.__aenter__()
        store.capabilities = store.capabilities - {self.lacks}  # type: ignore[misc]
        return store

    async def __aexit__(self, *error: Any) -> None:
        await self._opened.__aexit__(*error)


class _WithoutTrust(_OneForAll):
    lacks = "trust"


class _Counting:
    """Notes every turn in a file, and breaks at one of them."""

    def __init__(self, inner: Agent, ledger: Path, broken_at: int | None = None) -> None:
        self.subject = inner.subject
        self._inner = inner
        self._ledger = ledger
        self._broken_at = broken_at

    async def turn(self, prompt: str, place: Workplace, *, session: int, max_turns: int) -> AgentReply:
        with self._ledger.open("a") as file:
            file.write(f"{session}\n")
        if len(self._ledger.read_text().splitlines()) == self._broken_at:
            raise ServiceError("the line went dead")
        return await self._inner.turn(prompt, place, session=session, max_turns=max_turns)


def _obedient(prompt: str) -> list[str]:
    """A model that stores what it is told, word for word, and looks nothing up."""
    stored = {"tool": "remember", "arguments": {"content": prompt, "category": None}}
    return [json.dumps({"action": stored}), json.dumps({"action": {"answer": "ok"}})]


@pytest.mark.slow
def test_every_bundled_scenario_runs_with_an_agent_and_most_detect_a_parrot() -> None:
    """The plumbing for all of them, over a scripted model: each attempt comes to a verdict."""
    from memorybench.agents.builtin import BuiltinAgent

    results = {}
    for scenario in load_scenarios(BUNDLED):
        if scenario.real_model is None:
            continue
        grown, _ = scenario.with_planted_values(0)
        assert grown.real_model is not None
        lines = [line for prompt in grown.real_model.prompts for line in _obedient(prompt)]
        builtin = read_agent(load_yaml(BUNDLED.parent / "agents" / "builtin.yaml"))
        parrot = BuiltinAgent(builtin, ScriptedModel(lines), Redactor([]))
        results[scenario.id] = attempted(scenario, parrot).result
    assert len(results) >= 10
    assert set(results.values()) <= {"compliant", "violated"}
    assert list(results.values()).count("violated") > len(results) / 2, results
