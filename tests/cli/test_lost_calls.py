"""Calls that were lost when a process was killed: every command shows what they may have cost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from memorybench.reporting.formatting import lost_calls, money, total_cost
from memorybench.suites.run_costs import RunCosts
from tests.bundles.editing import RUNS
from tests.cli.command import Command
from tests.doubles.stub import Stub, completion, in_flight, until_gone

PRICE = 0.0035
"""What a call with 1000 tokens in and 100 out costs."""
LABELS = [{"question": f"Which number is {n}?", "answer": "one", "response": "two", "label": "no"} for n in range(4)]
MEMORY = "- The user lives in Berlin.\n- The user lives in Munich.\n"
DATASET = {
    "id": "mine",
    "conversations": [
        {
            "id": "c",
            "turns": [{"role": "user", "content": "My dentist is Dr. Kim.", "timestamp": "2024-03-02"}],
            "facts": [{"id": "d", "content": "The user's dentist is Dr. Kim", "timestamp": "2024-03-02", "turn": 1}],
        }
    ],
}


def replay(command: Command, stub: Stub, *words: str, journal: str) -> dict[str, Any]:
    """Kill a command while a call is in flight, and repeat it; return its JSON document.

    Check that its text shows the same costs, and that `runs` does.
    """
    stub.always(until_gone())
    assert command.killed_when(*words, ready=in_flight(stub, 1))
    stub.always(completion(lambda call: "{}" if b"numbered" in call.body else "yes", tokens=(1000, 100)))
    document: dict[str, Any] = command(*words, "--json").json
    costs = document.get("rejudge") or document.get("costs") or document
    found = RunCosts(**{name: costs[name] for name in RunCosts.model_fields})
    lost = found.possibly_charged_twice
    assert lost > 0
    assert found.possibly_spent == pytest.approx(lost * PRICE)
    shown = " ".join(command(*words).out.split())
    assert f"{money(found.known_cost)}, possibly {money(lost * PRICE)} more; {lost_calls(lost)}" in shown
    (listed,) = command("runs", "--results", journal, "--json").json
    assert {name: listed[name] for name in RunCosts.model_fields} == found.plain()
    return document


def test_a_judge_that_is_calibrated(command: Command, stub: Stub) -> None:
    (command.folder / "labels.jsonl").write_text("\n".join(map(json.dumps, LABELS)))
    words = ("judge", "calibrate", "labels.jsonl", "--judge-model", "gpt-4o", "--concurrency", "1")
    document = replay(command, stub, *words, journal="results")
    assert document["known_cost"] == pytest.approx(len(LABELS) * PRICE)


@pytest.mark.slow
def test_a_model_that_verifies_probes(command: Command, stub: Stub) -> None:
    (command.folder / "mine.json").write_text(json.dumps(DATASET))
    words = ("audit", "probes", "mine.json", "--probe-model", "gpt-4o", "--concurrency", "1")
    replay(command, stub, *words, journal="audit-results")


@pytest.mark.slow
def test_a_model_that_scans_a_memory(command: Command, stub: Stub) -> None:
    (command.folder / "MEMORY.md").write_text(MEMORY)
    words = ("hygiene", "scan", "MEMORY.md", "--model", "gpt-4o", "--results", "scans")
    replay(command, stub, *words, journal="scans")
    sarif = command(*words, "--format", "sarif").json["runs"][0]
    assert sarif["properties"]["costs"]["possibly_charged_twice"] > 0


@pytest.mark.slow
def test_a_model_that_judges_a_bundle(command: Command, stub: Stub) -> None:
    shutil.copy(Path(__file__).parents[2] / "data/sample-dataset.json", command.folder / "dataset.json")
    command.once(*(word.replace("DATASET", "dataset.json") for word in RUNS["judged"]), "--run-id", "judged")
    assert command("bundle", "judged", "--output", "judged.mbz").code == 0
    words = ("verify", "judged.mbz", "--rejudge", "gpt-4o", "--sample", "3", "--concurrency", "1")
    document = replay(command, stub, *words, journal="verify-results")
    assert document["rejudge"]["cost"] == pytest.approx(3 * PRICE)


def test_a_listed_run(command: Command, stub: Stub) -> None:
    words = ("eval", "--providers", "oracle", "--end", "2", "--answering-model", "gpt-4o", "--concurrency", "1")
    stub.always(until_gone())
    assert command.killed_when(*words, "--judge-model", "none", "--run-id", "r", ready=in_flight(stub, 1))
    stub.always(completion("Paris", tokens=(1000, 100)))
    for _ in range(2):
        (listed,) = command("runs", "--json").json
        assert listed["possibly_charged_twice"] == 1
        assert listed["possibly_spent"] > 0
        assert total_cost(listed["known_cost"], 0, listed["possibly_spent"]) in command("runs").out
        assert command("eval", "--resume", "r").code == 0
