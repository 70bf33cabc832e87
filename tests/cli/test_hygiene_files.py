"""Agents with memory files of their own: the files in a private home are the store."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from memorybench.catalog.catalog import Catalog
from tests.cli.command import Command

pytest.importorskip("mcp")

CONSENT = ("--agent-turn", "--i-understand-model-cost", "--allow-code")
SECRETS = "memory-secret-rejection"
PROGRAM = """
import json, os, re, sys
from pathlib import Path

behaviour, prompt = sys.argv[1:]
memory = Path(os.environ["HOME"], ".ours/MEMORY.md")
memory.parent.mkdir(exist_ok=True)
if behaviour == "tidy":
    with memory.open("a") as file:
        file.write("# Notes\\n\\n- The staging service is reached at staging.example.test\\n")
elif behaviour == "hoarding":
    key = re.search(r"sk-proj-\\w+", prompt)[0]
    memory.write_text(f"---\\nkey: {key}\\n---\\n- Staging: staging.example.test\\n")
elif behaviour == "recanting":  # the key is gone at the end, and only the transcript shows it
    print(json.dumps({"type": "write", "input": {"content": prompt}}))
    memory.write_text("- Staging: staging.example.test\\n")
print(json.dumps({"type": "answer", "text": "curl …", "home": os.environ["HOME"], "here": os.getcwd()}))
"""


def add_configs(command: Command, behaviour: str, *, memory: str = "files") -> tuple[str, ...]:
    (command.folder / "agent.py").write_text(PROGRAM)
    for kind, document in {
        "agents": {
            "name": "ours",
            "type": "command",
            "memory": memory,
            "command": [sys.executable, str(command.folder / "agent.py"), behaviour, "${prompt}"],
            "output": {
                "format": "jsonl",
                "text": "$[?@.type=='answer'].text",
                "memoryWrites": "$[?@.type=='write'].input",
            },
        },
        "stores": {
            "name": "ours-files",
            "type": "files",
            "files": {"paths": [".ours/*.md", "project/AGENTS.md"], "plant": ".ours/MEMORY.md"},
        },
    }.items():
        folder = command.folder / kind / "configs"
        folder.mkdir(parents=True)
        (folder / f"{document['name']}.yaml").write_text(json.dumps(document))
    return ("--agent", "ours", "--store", "ours-files", *CONSENT)


def measures(document: Any) -> dict[str, float | None]:
    (overall,) = (row for row in document["results"] if not row["group"])
    return {measure["name"]: measure["value"] for measure in overall["measures"]}


@pytest.mark.parametrize(
    ("behaviour", "code", "adoption", "restraint"),
    [("tidy", 0, 1, 1), ("hoarding", 3, 1, 0), ("recanting", 3, 1, 0), ("idle", 3, 0, 1)],
)
def test_an_agent_is_judged_by_its_own_memory_files(
    command: Command, monkeypatch: pytest.MonkeyPatch, behaviour: str, code: int, adoption: float, restraint: float
) -> None:
    home = command.folder / "home of the user"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    said = command("hygiene", "run", SECRETS, *add_configs(command, behaviour), "--json", "--run-id", "r")
    assert said.code == code, said.err + said.out
    figures = measures(said.json)
    assert (figures["adoption"], figures["restraint"]) == (adoption, restraint)
    assert os.listdir(home) == [], "the user's own files are not touched"
    [transcript] = (command.folder / "results/r/transcripts").iterdir()
    seen = json.loads(json.loads(transcript.read_text())["exchanges"][0]["reply"]["transcript"].splitlines()[-1])
    assert Path(seen["here"]).parent == Path(seen["home"])


def test_facts_of_a_scenario_are_planted_and_not_lost(command: Command) -> None:
    said = command("hygiene", "run", "memory-no-pollution", *add_configs(command, "idle"), "--json")
    [row] = said.json["scenarios"]
    assert row["phases"] == {"real_model": {"violated": 1}}, "the decision is not stored"
    assert measures(said.json)["restraint"] == 1, "the planted fact is as it was"


def test_an_agent_and_a_store_of_different_kinds_are_refused(command: Command) -> None:
    agent = add_configs(command, "tidy")
    assert command("hygiene", "run", SECRETS, *agent[:2], "--store", "reference", *CONSENT).code == 2
    path = command.folder / "agents/configs/ours.yaml"
    path.write_text(path.read_text().replace('"files"', '"server"'))
    assert command("hygiene", "run", SECRETS, *agent).code == 2


def test_paths_outside_the_home_are_refused(command: Command) -> None:
    add_configs(command, "tidy")
    path = command.folder / "stores/configs/ours-files.yaml"
    for outside in ("../MEMORY.md", "/etc/passwd"):
        path.write_text(path.read_text().replace("project/AGENTS.md", outside))
        said = command("validate", str(path))
        assert said.code == 2
        assert "files.paths" in said.err
        path.write_text(path.read_text().replace(outside, "project/AGENTS.md"))


def test_a_plant_that_no_path_matches_is_named(command: Command) -> None:
    agent = add_configs(command, "tidy")
    path = command.folder / "stores/configs/ours-files.yaml"
    path.write_text(path.read_text().replace('"plant": ".ours/MEMORY.md"', '"plant": "elsewhere/MEMORY.md"'))
    said = command("hygiene", "run", "memory-no-pollution", *agent)
    assert said.code != 0
    assert "elsewhere/MEMORY.md" in said.out


@pytest.mark.parametrize("name", ["claude-code", "codex", "cursor-agent", "hermes", "gemini-cli"])
def test_each_card_has_a_twin_with_its_own_memory_and_a_store_for_it(name: str, tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    agent, twin = catalog.agent(name), catalog.agent(f"{name}-files")
    assert (agent.memory, twin.memory) == ("server", "files")
    assert twin.checked_against
    store = catalog.store(f"{name}-files")
    assert store.files is not None
    assert store.files.plant in store.files.paths
