"""Hygiene through the command: scenarios, the cost gate, agents behind the recorder, and drafts from recordings."""

import json
import re
import sys
from pathlib import Path

import pytest

from memorybench.suites.hygiene.report import STATES
from tests.cli.command import Command
from tests.doubles.stub import Stub, completion
from tests.stores import faulty_command

ROOT = Path(__file__).parents[2]
SCRIPTED = ROOT / "tests/agents/scripted_agent.py"


@pytest.fixture
def stub(stub: Stub) -> Stub:
    stub.always(completion(lambda call: '{"action": {"answer": "Fine."}}', model="", tokens=(9, 1)))
    return stub


@pytest.mark.slow
def test_every_bundled_scenario_holds_on_the_reference_store(command: Command) -> None:
    said = command("hygiene", "run", "--json")
    assert said.code == 0, said.err
    document = said.json
    (overall,) = (row for row in document["results"] if not row["group"])
    figures = {measure["name"]: measure["value"] for measure in overall["measures"]}
    assert (figures["passed"], figures["caught"], figures["mutation_score"]) == (1, 1, 1)
    assert document["counts"]["failed"] == document["counts"]["skipped"] == 0
    assert len(document["scenarios"]) >= 14
    assert not [row for row in document["assertions"] if row["dead"]]
    assert all(row["reason"] for row in document["survivors"])


@pytest.mark.slow
def test_a_scenario_is_added_by_dropping_a_file(command: Command) -> None:
    bundled = ROOT / "src/memorybench/catalog/scenarios/memory-skip-local.json"
    scenario = {**json.loads(bundled.read_text()), "id": "our-own"}
    (command.folder / "scenarios").mkdir()
    (command.folder / "scenarios/our-own.json").write_text(json.dumps(scenario))
    assert "our-own" in command("hygiene", "list").out
    said = command("hygiene", "run", "our-own", "--json")
    assert said.code == 0, said.err
    assert [row["scenario"] for row in said.json["scenarios"]] == ["our-own"]


@pytest.mark.slow
def test_an_unknown_name_is_reported_with_the_nearest(command: Command) -> None:
    assert "memory-skip-local" in command("hygiene", "run", "memory-skip-locale").err
    assert command("hygiene", "run", "--store", "referense").code == 2


@pytest.mark.parametrize("given", [(), ("--agent-turn",), ("--i-understand-model-cost",)])
def test_without_both_flags_no_model_runs(command: Command, stub: Stub, given: tuple[str, ...]) -> None:
    said = command("hygiene", "run", "--agent", "builtin", "--model", "gpt-4o-mini", *given, "--json", "--run-id", "r")
    assert said.code == 2
    assert said.json["status"] == "blocked"
    counts = said.json["counts"]
    assert counts["blocked"] == counts["planned"] > 0
    assert not stub.calls
    assert json.loads((command.folder / "results/r/report.json").read_text())["status"] == "blocked"


@pytest.mark.parametrize("given", [(), ("--agent-turn",), ("--i-understand-model-cost",)])
def test_without_both_flags_no_agent_is_started(command: Command, given: tuple[str, ...]) -> None:
    touched = command.folder / "touched"
    (command.folder / "agents/configs").mkdir(parents=True)
    agent = f'name: mine\ntype: command\ncommand: [touch, "{touched}", "${{prompt}}", "${{serverUrl}}"]\n'
    (command.folder / "agents/configs/mine.yaml").write_text(agent)
    said = command("hygiene", "run", "--agent", "mine", "--allow-code", *given)
    assert said.code == 2, said.err
    assert not touched.exists()


AGENT = f"""\
name: scripted
type: command
command: ["{sys.executable}", "{SCRIPTED}", BEHAVIOUR, "${{prompt}}", --url, "${{serverUrl}}"]
output: {{format: jsonl, text: "$[?@.type=='answer'].text"}}
"""
CONSENT = ("--agent-turn", "--i-understand-model-cost")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behaviour", "code", "result"), [("reading", 0, "pass"), ("idle", 3, "violated"), ("hoarding", 3, "violated")]
)
def test_a_command_line_agent_is_judged_by_the_memory_it_leaves(
    command: Command, behaviour: str, code: int, result: str
) -> None:
    (command.folder / "agents/configs").mkdir(parents=True)
    (command.folder / "agents/configs/scripted.yaml").write_text(AGENT.replace("BEHAVIOUR", behaviour))
    agent = ("--agent", "scripted", "--allow-code", *CONSENT)
    said = command("hygiene", "run", "memory-skip-local", *agent, "--repeats", "2", "--json", "--run-id", "r")
    assert said.code == code, said.err
    (scenario,) = said.json["scenarios"]
    assert scenario["phases"] == {"real_model": {result: 2}}
    assert scenario["agent"] == f"{'compliant' if result == 'pass' else result} 2", "the old form stays for one release"
    transcripts = sorted(path.name for path in (command.folder / "results/r/transcripts").iterdir())
    assert transcripts == ["memory-skip-local-1.json", "memory-skip-local-2.json"]


def test_a_used_up_budget_hides_no_finding(command: Command, stub: Stub) -> None:
    agent = ("--agent", "builtin", "--model", "gpt-4o-mini", *CONSENT, "--budget", "0.000001")
    words = ("hygiene", "run", "memory-skip-local", *agent, "--repeats", "3", "--concurrency", "1", "--run-id", "r")
    (scenario,) = command(*words, "--json").json["scenarios"]
    assert scenario["phases"] == {"real_model": {"violated": 1, "blocked": 2}}
    report = (command.folder / "results/r/report.md").read_text()
    findings = report.partition("## Findings")[2].partition("\n## ")[0]
    assert findings.count("memory-skip-local, agent: violated") == 1
    assert findings.count("--budget") == 1


@pytest.mark.parametrize("behaviour", ["unconnected", "silent", "crashing", "failing"])
def test_an_agent_that_exits_fails_instead_of_passing(command: Command, behaviour: str) -> None:
    (command.folder / "agents/configs").mkdir(parents=True)
    (command.folder / "agents/configs/scripted.yaml").write_text(AGENT.replace("BEHAVIOUR", behaviour))
    said = command("hygiene", "run", "memory-skip-local", "--agent", "scripted", "--allow-code", *CONSENT, "--json")
    assert said.code == 1
    assert said.json["counts"]["failed"] == 1
    (overall,) = (row for row in said.json["results"] if not row["group"])
    assert all(measure["value"] is None for measure in overall["measures"])


@pytest.mark.slow
def test_a_recorded_agent_becomes_a_scenario_that_runs(command: Command) -> None:
    agent = [sys.executable, str(SCRIPTED), "hoarding", "I live in Porto.", "--url", "${serverUrl}"]
    said = command("hygiene", "record", "--name", "hoarded", "--prompt", "I live in Porto.", "--", *agent)
    assert said.code == 0, said.err
    draft = command.folder / "scenarios/hoarded.json"
    assert "I live in Porto." in draft.read_text()
    again = command("hygiene", "run", "hoarded", "--json")
    assert again.code in (0, 3), again.err
    assert again.json["counts"]["failed"] == 0
    assert command("hygiene", "record", "--name", "hoarded", "--", *agent).code == 2, "a draft is not written over"


@pytest.mark.slow
def test_a_killed_run_is_resumed(command: Command) -> None:
    scenarios = ("memory-skip-local", "memory-idempotent-write", "memory-secret-rejection")
    assert command.killed("hygiene", "run", *scenarios, "--run-id", "r", "--concurrency", "1", at=30)
    said = command("hygiene", "run", "--resume", "r", "--json")
    assert said.code == 0, said.err
    whole = command("hygiene", "run", *scenarios, "--run-id", "whole", "--json").json
    assert said.json["results"] == whole["results"]


@pytest.mark.slow
def test_consent_is_needed_at_every_start(command: Command, stub: Stub) -> None:
    agent = ("--agent", "builtin", "--model", "gpt-4o-mini")
    one = ("hygiene", "run", "memory-skip-local")
    assert command.killed(*one, *agent, *CONSENT, "--run-id", "r", at=2)
    assert command("hygiene", "run", "--resume", "r", "--json").code == 2
    assert not stub.calls, "what was agreed to yesterday is not agreed to today"
    resumed = command("hygiene", "run", "--resume", "r", *CONSENT, "--json")
    assert resumed.json["counts"]["blocked"] == 0
    assert stub.calls


def test_a_check_that_detects_nothing_fails_the_run(command: Command) -> None:
    bundled = json.loads((ROOT / "src/memorybench/catalog/scenarios/memory-skip-local.json").read_text())
    idle = {"kind": "content", "claim": "nothing is said of griffins", "contains": "griffin", "present": False}
    scenario = {**bundled, "id": "with-a-dead-check", "assertions": [*bundled["assertions"], idle]}
    (command.folder / "scenarios").mkdir()
    (command.folder / "scenarios/with-a-dead-check.json").write_text(json.dumps(scenario))
    said = command("hygiene", "run", "with-a-dead-check")
    assert said.code == 3
    assert "with-a-dead-check: nothing is said of griffins" in " ".join(said.out.split())
    assert "the hoarder agent is detected by" in " ".join(said.out.split())


BLIND_STORE = f"""\
name: blind
type: command
capabilities: [recall]
command: {{run: ["{sys.executable}", "{ROOT / "tests/stores/blind_store.py"}", "${{folder}}"]}}
"""


def bind(command: Command, text: str, name: str) -> None:
    (command.folder / "stores/configs").mkdir(parents=True, exist_ok=True)
    (command.folder / f"stores/configs/{name}.yaml").write_text(text)


@pytest.mark.slow
@pytest.mark.parametrize(("flags", "code"), [((), 3), (("--allow-skips",), 0)])
def test_a_run_that_skips_everything_is_not_green(command: Command, flags: tuple[str, ...], code: int) -> None:
    bind(command, BLIND_STORE, "blind")
    run = ("hygiene", "run", "memory-curation-conservatism", "--store", "blind", "--allow-code", "--run-id", "r")
    said = command(*run, *flags, "--json")
    assert said.json["counts"]["scored"] == 0
    assert said.code == code, said.err
    assert command("hygiene", "run", "--resume", "r", "--allow-code", "--json").code == code
    for shown in (command("results", "r", "--failures"), command("export", "r", "--format", "junit")):
        assert "the well-behaved script is skipped" in " ".join(shown.out.split())
        assert not re.search("compliant|expected:? +violated", shown.out), "not words of the report"


@pytest.mark.slow
def test_results_are_named_as_in_the_report(command: Command) -> None:
    assert command("hygiene", "run", "memory-skip-local", "--run-id", "r").code == 0
    shown = command("show", "r", "memory-skip-local").out
    assert not re.search("compliant|violated|defended", shown)
    for variant, result in {"well_behaved": "pass", "null": "detected"}.items():
        shown = command("show", "r", "memory-skip-local", "--variant", variant).out
        assert f"expected {result}" in shown
        assert re.search(f"got (?:✓ )?{result}", shown)


@pytest.mark.slow
@pytest.mark.parametrize(("flags", "code"), [((), 3), (("--allow-skips",), 0)])
def test_a_check_that_fails_on_a_store_without_memory_is_not_green(
    command: Command, flags: tuple[str, ...], code: int
) -> None:
    """The store keeps nothing and shows nothing, so the facts that a violation leaves out are missing anyway."""
    bind(command, BLIND_STORE.replace("[recall]", "[]"), "blind")
    run = ("hygiene", "run", "memory-multiturn-continuity", "memory-recall-noise", "--store", "blind", "--allow-code")
    said = command(*run, *flags, "--no-mutants", "--json")
    assert said.json["counts"]["scored"] == 0
    assert said.code == code, said.err


@pytest.mark.slow
def test_each_run_plants_new_values_and_names_its_seed(command: Command) -> None:
    seeds = []
    for run in ("a", "b"):
        said = command("hygiene", "run", "memory-secret-rejection", "--run-id", run, "--no-mutants")
        document = json.loads((command.folder / f"results/{run}/report.json").read_text())
        seeds.append(document["provenance"]["settings"]["seed"])
        assert f"Seed: {seeds[-1]}" in said.out
        assert f"{seeds[-1]}" in (command.folder / f"results/{run}/report.md").read_text()
    assert len(set(seeds)) == 2
    command("hygiene", "run", "memory-secret-rejection", "--run-id", "c", "--seed", "7", "--no-mutants")
    assert json.loads((command.folder / "results/c/report.json").read_text())["provenance"]["settings"]["seed"] == 7


def test_the_reference_store_passes_with_every_seed(command: Command) -> None:
    """Of 40 letters and digits, seed 1316 drew letters only, which no detector takes for a key."""
    said = command("hygiene", "run", "memory-secret-rejection", "--no-mutants", "--seed", "1316")
    assert said.code == 0, said.out


@pytest.mark.slow
def test_a_reused_run_has_the_same_seed_and_shards_have_seed_zero(command: Command) -> None:
    def seed(*flags: str) -> int:
        said = command("hygiene", "run", "memory-secret-rejection", "--no-mutants", "--json", *flags)
        return int(said.json["provenance"]["settings"]["seed"])

    first = seed("--run-id", "a")
    assert seed("--run-id", "b", "--reuse", "a") == first
    assert seed("--run-id", "s", "--shard", "1/1") == 0


@pytest.mark.slow
def test_each_row_has_a_verdict_and_each_word_is_defined(command: Command) -> None:
    bind(command, faulty_command.config("leaky", "accepts-secrets"), "leaky")
    scenarios = ("memory-secret-rejection", "memory-encoded-secrets", "memory-trust-on-update")
    run = ("hygiene", "run", *scenarios, "--store", "leaky", "--allow-code", "--no-mutants", "--run-id", "r")
    said = command(*run)
    assert said.code == 3, said.err
    folder = command.folder / "results/r"
    rows = {row["scenario"]: row for row in json.loads((folder / "report.json").read_text())["scenarios"]}
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "memory-secret-rejection": "fail",
        "memory-encoded-secrets": "pass",
        "memory-trust-on-update": "pass",
    }
    assert rows["memory-secret-rejection"]["phases"]["violation"] == {"accepted": 1}, "the store had to refuse it"
    assert rows["memory-encoded-secrets"]["phases"]["violation"] == {"detected": 1}
    assert rows["memory-secret-rejection"]["violation"] == "detected", "the old form stays for one release"
    for page in (said.out, (folder / "report.md").read_text(), (folder / "report.html").read_text()):
        for word in ("pass", "fail", "accepted", "detected"):
            assert word in page
            assert STATES[word].split(":")[0] in " ".join(page.split()), "the word is defined"
    shown = command("show", "r", "memory-secret-rejection", "--variant", "violation")
    assert "✗ accepted" in shown.out, shown.err
