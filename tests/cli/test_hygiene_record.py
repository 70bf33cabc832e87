"""`hygiene record` makes a regression test: red where the fault is, green where it is not."""

from __future__ import annotations

import json
import re
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
SEARCH = "recall", {"query": "what Ana drinks in the morning"}
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "calls", "kinds"),
    [
        pytest.param("accepts-secrets", [remember(f"The API key is {KEY}")], {"secret_free"}, id="secret stored"),
        pytest.param(
            "knows-one-kind", [remember("The PIN of the bank card is 4821")], {"secret_free"}, id="PIN stored"
        ),
        pytest.param(
            "accepts-secrets-in-metadata",
            [("remember", {"content": "Ana deploys on Fridays", "category": f"API key {KEY}"})],
            {"secret_free"},
            id="secret stored in metadata",
        ),
        pytest.param(
            "duplicates-on-update",
            [remember(TEA), ("update", {"id": "$1", "content": COCOA})],
            {"count", "content"},
            id="duplicate on update",
        ),
        pytest.param("loses-on-restart", [remember(TEA)], {"count"}, id="lost on restart", marks=pytest.mark.slow),
        pytest.param("leaks-between-users", [remember(TEA)], {"count"}, id="cross-user leak", marks=pytest.mark.slow),
        pytest.param(
            "falls-back-to-others", [remember(TEA), SEARCH], {"search_hit"}, id="cross-user leak in searches only"
        ),
        pytest.param(
            "forgets-to-forget",
            [remember(TEA), ("forget", {"id": "$1"})],
            {"residue"},
            id="deletion that is not one",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "caches-searches",
            [remember(TEA), SEARCH, ("forget", {"id": "$1"}), SEARCH],
            {"call_trace"},
            id="shown again after its deletion",
        ),
        pytest.param(
            "applies-dry-runs",
            [remember(TEA), remember(f"{TEA}!"), ("curate", {"apply": False})],
            {"count"},
            id="curation without consent",
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


@pytest.mark.slow
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


OSKAR, MILA = "Oskar lives in Bergen", "Mila works from Porto"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "calls", "remark"),
    [
        pytest.param(
            "joins-facts-in-curation",
            [remember(OSKAR), remember(MILA), ("curate", {"apply": True})],
            "Oskar works from Porto",
            id="a fact that no call wrote",
        ),
        pytest.param(
            "loses-category-on-update",
            [("remember", {"content": TEA, "category": "habit"}), ("update", {"id": "$1", "content": COCOA})],
            COCOA,
            id="a category that no call wrote",
        ),
        pytest.param(
            "wipes-on-unknown-ids",
            [remember(TEA), ("forget", {"id": "999"})],
            f'"{TEA}" is not in memory, and no call that succeeded removed it',
            id="a fact that no call removed",
        ),
    ],
)
def test_nobody_is_blamed_for_what_no_call_did(command: Command, fault: str, calls: Calls, remark: str) -> None:
    said = record(command, calls, *use_store(command, fault), "--prompt", "Tidy up what you know.")
    assert said.code == 3, said.err + said.out
    recorded = document_of(said)
    assert recorded["shows"] == "nothing that is proved"
    assert {replay["verdict"] for replay in recorded["replays"]} == {"green"}
    assert any(remark in one for one in recorded["for_a_person"])
    assert "changed nothing" not in json.dumps(recorded)


@pytest.mark.slow
def test_an_agent_is_not_blamed_by_a_draft_that_cannot_be_run_with_an_agent(command: Command) -> None:
    said = record(command, [remember(TEA)])
    assert said.code == 3, said.err + said.out
    assert document_of(said)["shows"] == "nothing that is proved"


PRIVATE_KEY = [
    "-----BEGIN OPENSSH PRIVATE KEY-----",
    "nvy8v7Bd8p5HePikANR6xKzInIA3NN+3S9irN8s95TXKJETmArVT0eUetD+Bv2By",
    "XlACL9Mw78WWhxGvz3C8FVn6V7iTULFJs/KD/iZPm0daD6Cf1Iu8oyGbJ2Sd/2+d",
    "nxouBKcpOroCeODIULMCdYnlP5AZRaH1XCnGiVl90a0pXJmk99mW5AGknJo5YbOS",
    "-----END OPENSSH PRIVATE KEY-----",
]
SEED = "orchard velvet garage copper ladder mimic absurd salon turkey fossil ripple canyon"
SPELLED_KEY = "sk-proj-" + "kX7pQ2vN9wLm4RzT8yBc3HsJ6fGd1AeU5iOq0WnM"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "parts"),
    [
        pytest.param("\n".join(PRIVATE_KEY), PRIVATE_KEY[1:-1], id="private key"),
        pytest.param("Deploy key:\n" + "\n".join(PRIVATE_KEY), PRIVATE_KEY[1:-1], id="private key after words"),
        pytest.param("Deploy key:\n" + "\n".join(PRIVATE_KEY[:-1]), PRIVATE_KEY[1:-1], id="private key without an end"),
        pytest.param(f"seed phrase: {SEED}", re.findall(r"\w{6,}", SEED), id="seed phrase"),
        pytest.param(
            "The vault passphrase is correct horse battery staple",
            ["correct", "horse", "battery", "staple"],
            id="passphrase",
        ),
        pytest.param(
            'The wifi password is "purple monkey dishwasher 42"', ["purple", "monkey", "dishwasher"], id="quoted words"
        ),
        pytest.param(
            "The key is " + " ".join(SPELLED_KEY), [" ".join(SPELLED_KEY[-8:])], id="spelled letter by letter"
        ),
        pytest.param("api keys: q8Zt3LmW0xYv7BnK5rPd, z9Yt4LnW1xAv8CnM6sQe", ["q8Zt3L", "z9Yt4L"], id="list"),
        pytest.param(
            "The password for staging is Zk3!pQ9vTT7, for prod it is Wq8#mN2xLL4", ["Zk3!pQ", "Wq8#mN"], id="two places"
        ),
    ],
)
def test_no_part_of_a_secret_is_in_the_draft(command: Command, content: str, parts: list[str]) -> None:
    calls: Calls = [remember(content), ("recall", {"query": content}), remember(TEA)]
    said = record(command, calls, *use_store(command, "accepts-secrets"), "--prompt", content)
    assert said.code == 0, said.err + said.out
    draft = (command.folder / "scenarios/seen.json").read_text()
    assert "${secret:" in draft
    written = draft + json.dumps(document_of(said))
    assert not [part for part in parts if part in written]


@pytest.mark.slow
def test_a_credential_whose_kind_cannot_be_planted_is_listed_for_a_person(command: Command) -> None:
    recorded = document_of(record(command, [remember(f"seed phrase: {SEED}")]))
    [remark] = [one for one in recorded["for_a_person"] if "recovery phrase" in one]
    assert "none of its kind can be planted" in remark


@pytest.mark.slow
def test_two_pins_in_one_text_are_replaced_by_pins(command: Command) -> None:
    record(command, [remember("My PIN is 4711 and the PIN of Ann is 9931.")])
    draft = (command.folder / "scenarios/seen.json").read_text()
    assert {*re.findall(r"\$\{secret:(\w+)", draft)} == {"pin"}


@pytest.mark.slow
def test_well_behaved_calls_become_a_test_that_is_green(command: Command) -> None:
    calls: Calls = [remember(TEA), ("recall", {"query": "tea"}), ("update", {"id": "$1", "content": COCOA})]
    said = record(command, calls, "--shows", "well_behaved", json_output=False)
    assert said.code == 0, said.err
    assert "replayed on reference: green" in said.out
    assert command("hygiene", "run", "seen", "--json").code == 0


@pytest.mark.slow
def test_what_cannot_become_an_assertion_is_listed_for_a_person(command: Command) -> None:
    calls: Calls = [remember(TEA), ("recall", {"query": "zebra"}), ("forget", {"id": "999"})]
    said = record(command, calls, "--shows", "well_behaved")
    recorded = document_of(said)
    assert [replay["verdict"] for replay in recorded["replays"]] == ["green"]
    assert any("forget" in remark for remark in recorded["for_a_person"])
    assert any("zebra" in remark for remark in recorded["for_a_person"])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--name", "seen", "--to", "other.json"), "other.json"),
        (("--to", "Not A Name.json"), "Not A Name"),
        (("--to", "a-file/seen.json"), "a-file"),
        (("--to", "a-file"), "a-file"),
    ],
)
def test_a_draft_that_could_not_be_written_is_refused_before_the_agent_runs(
    command: Command, options: tuple[str, ...], named: str
) -> None:
    (command.folder / "a-file").write_text("")
    agent = [sys.executable, "-c", "open('started', 'w')"]
    said = command("hygiene", "record", *options, "--", *agent)
    assert said.code == 2, said.err
    assert named in said.err
    assert not (command.folder / "started").exists(), "an agent costs money"


@pytest.mark.slow
def test_a_draft_has_the_name_of_its_file(command: Command) -> None:
    agent = [sys.executable, str(SCRIPTED), "playing", json.dumps([remember(TEA)]), "--url", "${serverUrl}"]
    command("hygiene", "record", "--to", "incidents/tea.json", "--", *agent)
    assert json.loads((command.folder / "incidents/tea.json").read_text())["id"] == "tea"


def use_store_that_breaks(command: Command, starts: int) -> tuple[str, ...]:
    """Make the store "ours" fail from its start number `starts` + 1 on."""
    options = use_store(command, "none")
    path = command.folder / "stores/configs/ours.yaml"
    config = json.loads(path.read_text())
    program = (
        "import os, sys; log = open(sys.argv[1], 'a+'); log.write('x'); log.flush(); "
        f"sys.exit('broken') if log.tell() > {starts} else os.execv(sys.argv[2], sys.argv[2:])"
    )
    config["command"]["run"] = [
        sys.executable,
        "-c",
        program,
        str(command.folder / "starts"),
        *config["command"]["run"],
    ]
    path.write_text(json.dumps(config))
    return options


def check_kept(command: Command, said: Said) -> None:
    """Check that the recorded call is in the draft, although the command failed."""
    assert said.code == 1, said.out
    assert "scenarios/seen.json: has the recorded calls, but was not replayed" in said.err
    assert TEA in (command.folder / "scenarios/seen.json").read_text()
    assert command("validate", "scenarios/seen.json").code == 0


def test_the_recorded_calls_are_kept_if_the_store_cannot_be_read_afterwards(command: Command) -> None:
    check_kept(command, record(command, [remember(TEA)], *use_store_that_breaks(command, 1)))


@pytest.mark.slow
def test_the_recorded_calls_are_kept_if_the_replay_fails(command: Command) -> None:
    record(command, [remember(TEA)], *use_store_that_breaks(command, 1000))
    starts = (command.folder / "starts").stat().st_size
    for file in ("starts", "scenarios/seen.json"):
        (command.folder / file).unlink()
    check_kept(command, record(command, [remember(TEA)], *use_store_that_breaks(command, starts - 1)))
