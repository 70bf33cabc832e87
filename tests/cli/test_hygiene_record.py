"""`hygiene record` makes a regression test: red where the fault is, green where it is not."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command, Said
from tests.stores import faulty_command

pytest.importorskip("mcp")

SCRIPTED = Path(__file__).parents[1] / "agents/scripted_agent.py"
KEY = "sk-proj-" + "Ab3dE6gH" * 5
TEA, COCOA = "Ana drinks tea in the morning", "Ana drinks cocoa in the morning"
Calls = list[tuple[str, dict[str, Any]]]


def use_store(command: Command, fault: str) -> tuple[str, ...]:
    """Make the store "ours" have this fault; `none` is the fix."""
    folder = command.folder / "stores/configs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ours.yaml").write_text(faulty_command.config("ours", fault))
    return ("--store", "ours", "--allow-code")


def record(command: Command, calls: Calls, *options: str, json_output: bool = True) -> Said:
    agent = [sys.executable, str(SCRIPTED), "playing", json.dumps(calls), "--url", "${serverUrl}"]
    output = ("--json",) if json_output else ()
    return command("hygiene", "record", "--name", "seen", *options, *output, "--", *agent)


def document_of(said: Said) -> Any:
    """The JSON after the output of the agent, which has our standard streams only in a real terminal."""
    return json.loads(said.out[said.out.index("{\n") :])


def remember(content: str) -> tuple[str, dict[str, Any]]:
    return "remember", {"content": content}


@pytest.mark.parametrize(
    ("fault", "calls", "kinds"),
    [
        pytest.param("accepts-secrets", [remember(f"The API key is {KEY}")], {"secret_free"}, id="secret stored"),
        pytest.param(
            "duplicates-on-update",
            [remember(TEA), ("update", {"id": "$1", "content": COCOA})],
            {"count", "content"},
            id="duplicate on update",
        ),
        pytest.param("loses-on-restart", [remember(TEA)], {"count"}, id="lost on restart", marks=pytest.mark.slow),
        pytest.param("leaks-between-users", [remember(TEA)], {"count"}, id="cross-user leak", marks=pytest.mark.slow),
        pytest.param(
            "forgets-to-forget",
            [remember(TEA), ("forget", {"id": "$1"})],
            {"residue"},
            id="deletion that is not one",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_recorded_incident_is_red_on_the_fault_and_green_on_the_fix(
    command: Command, fault: str, calls: Calls, kinds: set[str]
) -> None:
    said = record(command, calls, *use_store(command, fault))
    assert said.code == 0, said.err + said.out
    recorded = document_of(said)
    assert recorded["shows"] == "a fault of the store"
    assert [(replay["store"], replay["verdict"]) for replay in recorded["replays"]] == [
        ("ours", "red"),
        ("reference", "green"),
    ]
    text = (command.folder / "scenarios/seen.json").read_text()
    assert KEY not in text
    assert kinds <= {assertion["kind"] for assertion in json.loads(text)["assertions"]}
    assert command("validate", "scenarios/seen.json").code == 0

    run = ("hygiene", "run", "seen")
    red = command(*run, *use_store(command, fault), "--no-mutants", "--json")
    assert red.code == 3, red.err
    green = command(*run, *use_store(command, "none"), "--no-mutants", "--json")
    assert green.code == 0, green.out
    whole = command(*run, "--json")
    assert whole.code == 0, whole.out
    assert not [row for row in whole.json["assertions"] if row["dead"]]


def test_a_sound_store_is_not_accused_of_what_its_agent_did(command: Command) -> None:
    """The store refused the key. The agent attempted it, so the draft is red on that agent, and green on the store."""
    said = record(
        command, [remember(f"The API key is {KEY}"), remember(TEA)], "--prompt", f"Use {KEY}. Ana drinks tea."
    )
    assert said.code == 0, said.err + said.out
    recorded = document_of(said)
    assert recorded["shows"] == "a fault of the agent"
    assert [(replay["store"], replay["verdict"]) for replay in recorded["replays"]] == [
        ("reference", "green"),
        ("reference, with the calls of the agent", "red"),
    ]
    draft = json.loads((command.folder / "scenarios/seen.json").read_text())
    assert draft["real_model"]["prompts"] == ["Use ${secret:api_key}. Ana drinks tea."]
    assert command("hygiene", "run", "seen", "--json").code == 0


def test_well_behaved_calls_become_a_test_that_is_green(command: Command) -> None:
    calls: Calls = [remember(TEA), ("recall", {"query": "tea"}), ("update", {"id": "$1", "content": COCOA})]
    said = record(command, calls, "--shows", "well_behaved", json_output=False)
    assert said.code == 0, said.err
    assert "replayed on reference: green" in said.out
    assert command("hygiene", "run", "seen", "--json").code == 0


def test_what_cannot_become_an_assertion_is_listed_for_a_person(command: Command) -> None:
    calls: Calls = [remember(TEA), ("recall", {"query": "zebra"}), ("forget", {"id": "999"})]
    said = record(command, calls, "--shows", "well_behaved")
    recorded = document_of(said)
    assert [replay["verdict"] for replay in recorded["replays"]] == ["green"]
    assert any("forget" in remark for remark in recorded["for_a_person"])
    assert any("zebra" in remark for remark in recorded["for_a_person"])
