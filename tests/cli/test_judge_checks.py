"""Canaries are sized to the run, and a judge that fails them is named first, with the accuracy corrected for it."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import memorybench
from memorybench.judging.canaries import RIGHT, choose_canaries
from memorybench.judging.prompts import JUDGE_PROMPTS, named_prompt
from tests.cli.command import Command
from tests.cli.test_audit import SAMPLE
from tests.doubles.refusals import refused
from tests.doubles.stub import Call, Stub, completion

RUN = ("eval", "--providers", "bm25", "oracle", "--end", "60", "--answering-model", "scripted/quote")
JUDGED = (*RUN, "--judge-model", "gpt-4o", "--json")


def saying(stub: Stub, verdict: Callable[[str], str]) -> None:
    stub.always(completion(lambda call: verdict(_prompt(call)), model="", tokens=(200, 2)))


def _prompt(call: Call) -> str:
    return str(call.json["messages"][-1]["content"])


def canary_calls(document: Mapping[str, Any]) -> int:
    return sum(row["steps"] for row in document["circumstances"]["stages"] if row["name"] == "canary")


CANARIES = {
    canary.response: "yes" if canary.kind in RIGHT else "no"
    for canary in choose_canaries([named_prompt(name) for name in JUDGE_PROMPTS])
}


def knowing(prompt: str) -> str:
    """Judges canaries without an error, and half of all other answers as right."""
    response = prompt.split("<response ")[1].split(">\n", 1)[1].split("\n</response ")[0]
    return CANARIES.get(response, "yes" if len(prompt) % 2 else "no")


@pytest.mark.slow
def test_the_screen_says_that_few_canaries_detect_only_bad_judges(command: Command, stub: Stub) -> None:
    saying(stub, knowing)
    judged = JUDGED[:-1]
    assert "--canaries 24" in command(*judged).out
    assert "--canaries 24" not in command(*judged, "--canaries", "24").out
    assert "1 canary detects" in command(*judged, "--canaries", "1").out


@pytest.mark.slow
def test_canaries_are_at_most_a_tenth_of_the_judge_calls(command: Command, stub: Stub) -> None:
    saying(stub, lambda prompt: "no")
    estimate = command(*JUDGED, "--dry-run").json["expected"]
    planned = {row["stage"]: sum(one["calls"] for one in estimate if one["stage"] == row["stage"]) for row in estimate}
    document = command(*JUDGED).json
    assert canary_calls(document) == planned["canary"] == 12
    assert planned["judge"] == 120


@pytest.mark.slow
@pytest.mark.parametrize(("asked", "expected"), [("off", 0), ("0", 0), ("5", 5), ("1000", 120)])
def test_the_number_of_canaries_can_be_chosen(command: Command, stub: Stub, asked: str, expected: int) -> None:
    saying(stub, lambda prompt: "no")
    run = (*JUDGED, "--judge-prompt", "Is ${response} the same as ${answer}?", "--canaries", asked)
    estimate = command(*run, "--dry-run").json["expected"]
    assert sum(row["calls"] for row in estimate if row["stage"] == "canary") == expected
    assert canary_calls(command(*run).json) == expected


def test_an_invalid_number_of_canaries_is_refused(command: Command) -> None:
    assert refused(memorybench.evaluate, canaries=-1).where == "--canaries"
    assert refused(memorybench.evaluate, canaries="many").where == "--canaries"


@pytest.mark.slow
@pytest.mark.parametrize(
    "run",
    [
        ("eval", "--providers", "bm25", "--end", "2"),
        ("eval", "--providers", "bm25", "--end", "2", "--answering-model", "scripted/quote"),
        ("audit", str(SAMPLE), "--model", "scripted/quote", "--judge-model", "none", "--output", "results"),
        ("extraction", "run", "--extractor", "hoarder", "--limit", "1", "--no-targets"),
    ],
    ids=["retrieval", "answers", "audit", "extraction"],
)
def test_canaries_without_a_judge_are_refused(command: Command, run: tuple[str, ...]) -> None:
    said = command(*run, "--canaries", "5", "--run-id", "r")
    assert (said.code, said.err.split(": ")[1]) == (2, "--canaries")
    assert not (command.folder / "results/r").exists()
    assert command(*run, "--canaries", "off", "--run-id", "off").code in (0, 1, 3)


@pytest.mark.parametrize("prompts", [1, 2, 5])
def test_canaries_are_nested_and_balanced(prompts: int) -> None:
    used = [named_prompt(name) for name in JUDGE_PROMPTS[:prompts]]
    whole = choose_canaries(used)
    asked = {(canary.prompt.name, canary.question.question, canary.response) for canary in whole}
    assert len(asked) == len(whole) == 24 * prompts
    for limit in range(1, 12 * prompts):
        chosen = choose_canaries(used, limit)
        assert chosen == whole[:limit]
        right = sum(canary.kind in RIGHT for canary in chosen)
        assert abs(2 * right - limit) <= 1
        by_prompt = Counter(canary.prompt.name for canary in chosen)
        assert max(by_prompt.values()) - min(by_prompt[prompt.name] for prompt in used) <= 1


@pytest.mark.slow
def test_a_larger_check_pays_only_for_the_rest(command: Command, stub: Stub) -> None:
    saying(stub, lambda prompt: "no")
    command(*JUDGED, "--run-id", "a", "--canaries", "6")
    stub.calls.clear()
    rows = command(*JUDGED, "--reuse", "a", "--canaries", "10", "--dry-run").json["expected"]
    assert sum(row["calls"] for row in rows) == 4
    command(*JUDGED, "--reuse", "a", "--canaries", "10")
    assert len(stub.calls) == 4


@pytest.mark.slow
def test_a_judge_that_fails_is_named_first_and_its_accuracy_is_corrected(command: Command, stub: Stub) -> None:
    generous = Counter[str]()

    def nods(prompt: str) -> str:
        """Accepts every right answer and two thirds of the wrong ones."""
        generous["calls"] += 1
        return "yes" if knowing(prompt) == "yes" or generous["calls"] % 3 else "no"

    saying(stub, nods)
    document = command(*JUDGED, "--run-id", "r", "--canaries", "120").json
    (check,) = document["judge_checks"]
    assert check["judge"] == "gpt-4o"
    assert check["failed"] == ["specificity"]
    assert check["sensitivity"]["agreed"] == check["sensitivity"]["n"] > 0
    assert check["specificity"]["agreed"] < check["specificity"]["n"] / 2
    raw = {row["subject"]: row["measures"][0] for row in document["results"] if not row["group"]}
    for corrected in check["corrected"]:
        assert corrected["measure"] == "accuracy"
        assert corrected["low"] <= corrected["value"] <= corrected["high"]
        assert corrected["value"] < raw[corrected["subject"]]["value"], "a generous judge flatters"
    shown = command("results", "r").out
    assert 0 < shown.index("failed its check") < shown.index("provider"), "before the first table"
    assert "corrected" in shown


@pytest.mark.slow
def test_a_judge_that_passes_draws_no_warning(command: Command, stub: Stub) -> None:
    saying(stub, knowing)
    document = command(*JUDGED, "--run-id", "r", "--canaries", "24").json
    (check,) = document["judge_checks"]
    assert check["failed"] == []
    assert "failed its check" not in command("results", "r").out


@pytest.mark.slow
def test_a_judge_that_cannot_tell_right_from_wrong_leaves_the_correction_undecided(
    command: Command, stub: Stub
) -> None:
    saying(stub, lambda prompt: "yes")
    (check,) = command(*JUDGED, "--canaries", "48").json["judge_checks"]
    assert check["failed"] == ["specificity"]
    assert {(one["value"], one["undecided"]) for one in check["corrected"]} == {(None, True)}


@pytest.mark.slow
def test_few_canaries_neither_fail_a_judge_nor_correct_it(command: Command, stub: Stub) -> None:
    saying(stub, lambda prompt: "yes")
    (check,) = command(*JUDGED, "--canaries", "2").json["judge_checks"]
    assert check["failed"] == []
    assert all(one["undecided"] for one in check["corrected"])


@pytest.mark.slow
def test_a_check_killed_and_resumed_asks_no_canary_twice(command: Command, stub: Stub) -> None:
    saying(stub, lambda prompt: "yes")
    whole = command(*JUDGED, "--output", "whole", "--run-id", "r", "--canaries", "20").json
    stub.calls.clear()
    run = ("--run-id", "r", "--canaries", "20", "--concurrency", "1")
    assert command.killed(*JUDGED, *run, at=25)
    resumed = command("eval", "--resume", "r", "--json").json
    for part in ("results", "judge_checks", "notes"):
        assert resumed[part] == whole[part]
    asked = Counter(json.dumps(call.json["messages"]) for call in stub.calls)
    assert sum(n - 1 for n in asked.values()) <= 1


@pytest.mark.slow
def test_an_audit_and_an_extraction_have_canaries_too(command: Command, stub: Stub) -> None:

    saying(stub, lambda prompt: "yes")
    audit = ("audit", str(SAMPLE), "--model", "scripted/silence", "--judge-model", "gpt-4o", "--json")
    (check,) = command(*audit, "--canaries", "48").json["judge_checks"]
    assert check["failed"] == ["specificity"]
    assert {one["measure"] for one in check["corrected"]} >= {"recall_accuracy", "hallucinated_memory_rate"}
    for number in ("off", "3"):
        run = ("extraction", "run", "--extractor", "hoarder", "--judge-model", "gpt-4o", "--no-targets")
        document = command(*run, "--canaries", number, "--json").json
        assert canary_calls(document) == (0 if number == "off" else 3)


@pytest.mark.slow
def test_corrected_values_keep_their_measure_in_a_narrow_terminal(
    command: Command, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "48")
    saying(stub, lambda prompt: "yes")
    shown = command(*RUN, "--judge-model", "gpt-4o").out
    table = shown[shown.index("Corrected for the errors of the judge") :].split("╰")[0]
    assert "measure" in table
    assert "corrected" in table
