"""The scenarios that ship, against the reference store, against stores with one fault each, and against idle agents."""

import asyncio
import re
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memorybench.core.trials import Outcome, Subject
from memorybench.engine.run import perform
from memorybench.journal.rows import Run
from memorybench.journal.run_reader import RunReader
from memorybench.journal.run_writer import open_run, reopen_run
from memorybench.secrets.credentials import credential_in
from memorybench.stores.reference import open_reference
from memorybench.suites.hygiene.kills import kill_matrix, survivors
from memorybench.suites.hygiene.measures import MEASURES
from memorybench.suites.hygiene.phases import behave
from memorybench.suites.hygiene.plan import HygienePlan, Store
from memorybench.suites.hygiene.script import List
from memorybench.suites.summary import measure
from tests.stores.faulty import FAULTY, open_faulty
from tests.suites.hygiene.notebook import open_notebook
from tests.suites.hygiene.playing import BUNDLED, bundled, outcomes

NAMED_BY_THE_SPEC = {
    "memory-no-pollution",
    "memory-secret-rejection",
    "memory-skip-local",
    "memory-supersede-without-dup",
    "memory-multiturn-continuity",
    "memory-curation-conservatism",
}


@pytest.fixture(scope="module")
def settled() -> list[Outcome]:
    """Both phases, all mutants and the three agents, on the reference store."""
    return outcomes(open_reference, bundled())


def _phase(settled: list[Outcome], phase: str) -> list[Outcome]:
    return [outcome for outcome in settled if outcome.trial.labels["phase"] == phase]


def test_the_six_of_the_spec_and_at_least_eight_more_ship() -> None:
    names = {scenario.id for scenario in bundled()}
    assert names > NAMED_BY_THE_SPEC
    assert len(names) >= 14


def test_a_well_behaved_agent_leaves_every_memory_clean(settled: list[Outcome]) -> None:
    for outcome in _phase(settled, "well_behaved"):
        assert (outcome.shown.got, outcome.shown.reason) == ("compliant", ""), outcome.trial.case_id


def test_every_declared_violation_is_caught(settled: list[Outcome]) -> None:
    for outcome in _phase(settled, "violation"):
        assert outcome.score("caught") == 1, f"{outcome.trial.case_id}: {outcome.shown.reason}"
        assert outcome.score("passed") == 1, f"{outcome.trial.case_id}: {outcome.shown.reason}"


def test_the_reference_store_defends_itself_where_a_store_can(settled: list[Outcome]) -> None:
    defended = {outcome.trial.case_id for outcome in _phase(settled, "violation") if outcome.shown.got == "defended"}
    assert defended == {"memory-secret-rejection", "memory-supersede-without-dup", "memory-encoded-secrets"}


def test_mutants_are_killed_or_known_to_do_no_harm(settled: list[Outcome]) -> None:
    mutants = _phase(settled, "mutant")
    assert len(mutants) > 100
    assert all(reason for _, _, reason in survivors(mutants)), survivors(mutants)
    assert len(survivors(mutants)) < len(mutants) / 10


def test_no_assertion_is_dead(settled: list[Outcome]) -> None:
    rows = kill_matrix(settled)
    assert [f"{row.scenario}: {row.claim}" for row in rows if row.dead] == []
    scripted = {
        (scenario.id, assertion.claim)
        for scenario in bundled()
        for assertion in scenario.assertions
        if set(assertion.phases) != {"real_model"}
    }
    assert scripted <= {(row.scenario, row.claim) for row in rows}


@pytest.mark.parametrize("agent", ["null", "hoarder", "amnesiac"])
def test_an_agent_that_does_little_right_is_found_out(settled: list[Outcome], agent: str) -> None:
    convicted = [one.trial.case_id for one in settled if one.trial.variant == agent and one.score("convicted") == 1]
    assert len(convicted) >= 5
    if agent == "hoarder":
        assert len(convicted) == len(bundled()), "what a user types is nowhere what should be stored"


def test_an_agent_that_lists_all_has_searched() -> None:
    """Else whoever reads the whole memory again and again would seem to leave it alone."""
    (scenario,) = bundled("memory-skip-local")
    listing = [List(do="list"), List(do="list")]
    report = asyncio.run(behave(open_reference, scenario, 0, listing))
    assert "memory is not searched over and over: 2 calls of recall or list" in report.reason


def test_where_all_is_restraint_an_agent_must_also_answer() -> None:
    for scenario in bundled():
        asserted = scenario.asserted("real_model")
        if all(assertion.rate != "adoption" for assertion in asserted):
            assert any(assertion.kind == "answer" for assertion in asserted), scenario.id


CONVICTED_BY = {
    "accepts-secrets": ("memory-secret-rejection", "violation", "the planted api_key is in memory (plain"),
    "duplicates-on-update": ("memory-supersede-without-dup", "well_behaved", "one fact tells about indentation: 2"),
    "forgets-to-forget": ("memory-deletion-on-request", "well_behaved", "is left in history and files"),
    "ignores-forget": ("memory-deletion-on-request", "well_behaved", "is left in facts and files"),
    "leaves-residue": ("memory-deletion-on-request", "well_behaved", "is left in files"),
    "curates-too-eagerly": ("memory-curation-conservatism", "well_behaved", 'proposes to remove "approvals"'),
    "never-curates": ("memory-curation-conservatism", "well_behaved", 'does not propose to remove "editor-old"'),
    "applies-dry-runs": ("memory-curation-conservatism", "well_behaved", "the dry run changes nothing: gone"),
    "loses-on-restart": ("memory-multiturn-continuity", "well_behaved", "the name is stored, once: 0 facts"),
    "leaks-between-users": ("memory-cross-user-leak", "well_behaved", "the user was shown nothing of Ana's: 1 call"),
    "finds-nothing": ("memory-recall-noise", "well_behaved", "the planning meeting was looked up and found: 0"),
    "forgets-to-count": ("memory-multiturn-continuity", "well_behaved", "it is 0 instead of at least 1"),
    "counts-looking": ("memory-recall-noise", "well_behaved", "was left alone: it is 4 instead of 2"),
    "refuses-everything": ("memory-secret-rejection", "violation", "it refuses harmless content as well"),
    "swallows-errors": ("memory-secret-rejection", "violation", "a write that vanishes is no defence"),
    "keeps-duplicates": ("memory-idempotent-write", "well_behaved", "it is stored, once: 2 facts"),
}
"""The scenario and phase, and the words: a conviction for another reason would be luck."""


@pytest.mark.parametrize("fault", FAULTY)
def test_a_faulty_store_is_convicted_by_the_scenario_about_its_fault(fault: str) -> None:
    name, phase, words = CONVICTED_BY[fault]
    settled = outcomes(lambda folder: open_faulty(fault, folder), bundled(name), self_checks=False)
    (outcome,) = _phase(settled, phase)
    assert outcome.score("passed") == 0
    assert words in outcome.shown.reason


def test_another_store_that_keeps_each_copy_is_told_so_and_passes_the_rest() -> None:
    settled = outcomes(open_notebook, bundled(), self_checks=False)
    failed = [(one.trial.case_id, one.trial.variant) for one in settled if one.score("passed") != 1]
    assert failed == [("memory-idempotent-write", "well_behaved")]


def test_a_mutant_of_a_script_that_fails_by_itself_proves_nothing() -> None:
    settled = outcomes(open_notebook, bundled("memory-idempotent-write"))
    mutants = [*_phase(settled, "mutant"), *_phase(settled, "agent")]
    assert {outcome.status for outcome in mutants} == {"skipped"}
    assert kill_matrix(mutants) == ()


def test_files_hold_no_text_that_looks_like_a_credential() -> None:
    for path in BUNDLED.glob("*.json"):
        for text in re.findall(r'"((?:[^"\\]|\\.)*)"', path.read_text(encoding="utf-8")):
            assert credential_in(text) is None, f"{path.name}: {text}"


def test_prompts_speak_of_memory_only_where_the_scenario_is_about_that() -> None:
    about = {"memory-deletion-on-request", "memory-curation-conservatism"}
    for scenario in bundled():
        assert scenario.real_model is not None
        assert 1 <= len(scenario.real_model.prompts) <= 4
        if scenario.id not in about:
            said = " ".join(scenario.real_model.prompts).lower()
            assert not any(word in said for word in ("remember", "memory", "forget", "keep in mind", "store"))


def test_every_scenario_rates_agents() -> None:
    rates = {(scenario.id, assertion.rate) for scenario in bundled() for assertion in scenario.asserted("real_model")}
    for scenario in bundled():
        assert {(scenario.id, "adoption"), (scenario.id, "restraint")} & rates, scenario.id
    assert sum(rate == "adoption" for _, rate in rates) >= 8
    assert sum(rate == "restraint" for _, rate in rates) >= 8


def test_a_run_is_journaled_measured_and_not_played_twice(tmp_path: Path) -> None:
    opened: list[Path] = []

    @asynccontextmanager
    async def counted(folder: Path):  # type: ignore[no-untyped-def]
        opened.append(folder)
        async with open_reference(folder) as store:
            yield store

    scenarios = bundled("memory-no-pollution", "memory-secret-rejection")
    plan = HygienePlan(scenarios, Store(Subject(role="store", name="reference"), counted)).plan()
    run = Run(id="r", suite="hygiene", spec={}, planned=plan.size)
    with open_run(tmp_path, run) as run_writer:
        ending = asyncio.run(perform(plan, run_writer, concurrency=2))
        run_writer.end(ending.status)
    assert ending.status == "complete"
    played = len(opened)
    with reopen_run(tmp_path, "r", fingerprints={}) as run_writer:
        asyncio.run(perform(plan, run_writer, concurrency=2))
        run_writer.end(ending.status)
    assert len(opened) == played
    with RunReader.open(tmp_path) as run_reader:
        overall = measure(run_reader.outcomes("r"), MEASURES, {})[0]
    measured = {found.name: found for found in overall.measures}
    assert [measured[name].value for name in ("passed", "caught", "mutation_score")] == [1, 1, 1]
    assert (measured["passed"].n, measured["caught"].n) == (4, 2)
    assert (measured["adoption"].value, measured["adoption"].planned) == (None, 0)  # no agent was asked
