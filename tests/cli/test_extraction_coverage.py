"""Coverage says whether the facts of one side, taken together, state each fact of the other side."""

import json
import sys
from typing import Any

import pytest

from tests.cli.command import Command, Said
from tests.doubles.stub import Call, Stub, completion

ATOMS = {
    "Likes green tea": "tea",
    "likes green tea": "tea",
    "Is fond of green tea": "tea",
    "Works as a chef": "chef",
    "Lives in Rome": "rome",
    "Lives in Rome and works as a chef": "rome chef",
    "Katja lives in Vienna since 2018": "vienna 2018",
    "Katja lives in Vienna": "vienna",
    "Hates milk": "milk",
}
"""What each fact says."""


def oracle(call: Call) -> str:
    """Answers whether the notes in the first block together say all that the note in the second block says."""
    prompt = call.json["messages"][-1]["content"]
    if "What the user said" in prompt:
        return "no"
    first, second = (prompt.split(f"<{name} ")[1].split("\n</")[0] for name in ("answer", "response"))

    def atoms(notes: str) -> set[str]:
        return {atom for line in notes.splitlines()[1:] for atom in ATOMS[line.rpartition(": ")[2]].split()}

    return "yes" if atoms(second) <= atoms(first) else "no"


def measured(command: Command, before: Any, after: Any, output: Any, *more: str) -> dict[str, dict[str, Any]]:
    """Runs an extractor with this output on one case; returns the measures by name."""
    old = {(category, text) for category, texts in before.items() for text in texts}
    new = {(category, text) for category, texts in after.items() for text in texts}
    case = {
        "id": "one",
        "existing_memory": before,
        "conversation": "User: Hello.",
        "expected_output": after,
        "expected_facts": [f"{category}: {text}" for category, text in sorted(new - old)],
        "superseded": [f"{category}: {text}" for category, text in sorted(old - new)],
    }
    (command.folder / "cases.json").write_text(json.dumps([case]))
    program = command.folder / "extract.py"
    program.write_text(f"print({json.dumps(json.dumps(output))})")
    asked = ("cases.json", "--extractor-command", f"{sys.executable} {program}", "--run-id", "r", "--no-targets")
    return measures_of(command("extraction", "run", *asked, "--json", *more))


def measures_of(said: Said) -> dict[str, dict[str, Any]]:
    (overall,) = (row for row in said.json["results"] if not row["group"])
    return {measure["name"]: measure for measure in overall["measures"]}


def food(*texts: str) -> dict[str, list[str]]:
    return {"food": [*texts]}


TEA, CHEF, ROME, BOTH = "Likes green tea", "Works as a chef", "Lives in Rome", "Lives in Rome and works as a chef"
SINCE, NOW = "Katja lives in Vienna since 2018", "Katja lives in Vienna"
NOTES: dict[str, list[str]] = {"food": [], "notes": []}
EXAMPLES = {
    "a paraphrase of a matched fact": ({}, food(TEA), food(TEA, "Is fond of green tea"), 1, 1),
    "a paraphrase of a kept fact": (food(TEA), food(TEA, CHEF), food(TEA, "Is fond of green tea", CHEF), 1, 1),
    "a part of a matched fact": ({}, food(BOTH), food(BOTH, CHEF), 1, 1),
    "a fact within a matched one": ({}, food(CHEF, BOTH), food(BOTH), 1, 1),
    "a fact of two matched ones": ({}, food(CHEF, ROME), food(CHEF, ROME, BOTH), 1, 1),
    "two matched facts say a third": ({}, food(CHEF, ROME, BOTH), food(CHEF, ROME), 1, 1),
    "a piece twice": ({}, food(SINCE), food(NOW, NOW), 1, 0),
    "a misfiled fact twice": (NOTES, NOTES | food(TEA), {"notes": [TEA, "likes green tea"]}, 1, 1),
    "another fact": ({}, food(TEA, CHEF), food(TEA, "Hates milk"), 1 / 2, 1 / 2),
}  # fmt: skip
"""The memory before, the expected one, the output, and the true coverage: precision and recall."""


@pytest.mark.parametrize(("before", "after", "output", "precision", "recall"), EXAMPLES.values(), ids=EXAMPLES.keys())
def test_coverage_compares_each_fact_with_all_facts_of_the_other_side(
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    before: Any,
    after: Any,
    output: Any,
    precision: float,
    recall: float,
) -> None:
    with Stub() as stub:
        stub.always(completion(oracle, model="", tokens=(1, 1)))
        monkeypatch.setenv("VLLM_BASE_URL", f"{stub.url}/v1")
        judged = measured(command, before, after, output, "--judge-model", "vllm/stub", "--canaries", "0")
    assert judged["coverage_precision"]["value"] == precision
    assert judged["coverage_recall"]["value"] == recall
    assert judged["undecided"]["value"] == 0
    assert command("bundle", "r", "--output", "r.mbz").code == 0
    assert command("verify", "r.mbz").code == 0


@pytest.mark.parametrize(("before", "after", "output", "precision", "recall"), EXAMPLES.values(), ids=EXAMPLES.keys())
def test_without_a_judge_coverage_is_an_interval_that_contains_the_truth(
    command: Command, before: Any, after: Any, output: Any, precision: float, recall: float
) -> None:
    measures = measured(command, before, after, output)
    for name, truth in (("coverage_precision", precision), ("coverage_recall", recall)):
        one = measures[name]
        assert one["value"] == truth if one["value"] is not None else one["low"] <= truth <= one["high"]
    assert None in (measures["coverage_precision"]["value"], measures["coverage_recall"]["value"])


def test_without_a_judge_nothing_is_covered_by_an_empty_memory(command: Command) -> None:
    assert measured(command, {}, food("Likes green tea"), {})["coverage_recall"]["value"] == 0


def test_without_a_judge_nothing_is_supported_by_an_empty_memory(command: Command) -> None:
    assert measured(command, {}, {}, food("Likes green tea"))["coverage_precision"]["value"] == 0


def test_a_resumed_run_asks_only_the_questions_about_coverage_that_could_not_be_read(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Stub() as stub:
        stub.always(completion("perhaps so", model="", tokens=(1, 1)))
        monkeypatch.setenv("VLLM_BASE_URL", f"{stub.url}/v1")
        judge = ("--judge-model", "vllm/stub", "--canaries", "0")
        measures = measured(command, {}, food(TEA), food(TEA, "Is fond of green tea"), *judge)
        assert measures["coverage_precision"]["value"] is None
        assert measures["coverage_precision"]["low"] <= 1 <= measures["coverage_precision"]["high"]
        assert (measures["coverage_recall"]["value"], measures["unreadable"]["value"]) == (1, 1)
        asked = len(stub.calls)
        stub.always(completion(oracle, model="", tokens=(1, 1)))
        said = command("extraction", "run", "--resume", "r", "--allow-code", "--json")
        assert measures_of(said)["coverage_precision"]["value"] == 1
        assert len(stub.calls) - asked == 1
