"""What makes an answer right if a question has several rules: answers, choices, required and excluded texts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.command import Command
from tests.cli.test_samples import item, write_benchmark
from tests.cli.test_unjudged_answers import MINE, stub, values
from tests.doubles.stub import Stub, completion

__all__ = ["stub"]
SCHEMA = {
    "itemId": "id",
    "question": "question",
    "answer": "answer",
    "choices": "choices",
    "mustContain": "has",
    "mustNotContain": "lacks",
    "context": {"field": "sessions", "idField": "ids", "itemSchema": {"content": "text", "role": "role"}},
    "metadata": {"questionType": "type"},
}


def accuracy(command: Command, stub: Stub, reply: str, *flags: str, **question: Any) -> float | None:
    stub.always(completion(reply))
    write_benchmark(command, [item(0, **question)], schema=SCHEMA, evaluation={"method": "contains"})
    return values(command(*MINE, *flags).json)["accuracy"]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [("in Bergen", 1), ("in Bergen, no longer in Oslo", 0), ("in Trondheim", 0), ("I have no idea", 0)],
)
def test_an_excluded_text_does_not_replace_the_gold_answer(
    command: Command, stub: Stub, reply: str, expected: float
) -> None:
    assert accuracy(command, stub, reply, answer="Bergen", lacks=["Oslo"]) == expected


def test_without_a_judge_excluded_texts_alone_do_not_make_accuracy_zero(command: Command, stub: Stub) -> None:
    """Code knows that an answer with an excluded text is wrong, but not whether another one is right."""
    stub.always(completion("in Oslo, I think"))
    items = [item(n, answer="Bergen", lacks=["Oslo" if n == 0 else "Molde"]) for n in range(4)]
    write_benchmark(command, items, schema=SCHEMA, evaluation={"method": "llm-judge"})
    (result,) = [one for one in command(*MINE).json["results"] if not one["group"]]
    found = next(one for one in result["measures"] if one["name"] == "accuracy")
    assert (found["value"], found["n"]) == (None, 1)
    assert found["high"] > 3 / 4


def test_the_judge_decides_where_no_excluded_text_occurs(command: Command, stub: Stub) -> None:
    judged = ("--judge-model", "scripted/judge")
    assert accuracy(command, stub, "in Trondheim", *judged, answer="Bergen", lacks=["Oslo"]) == 0


def test_a_dry_run_counts_the_calls_for_answers_without_an_excluded_text(command: Command, stub: Stub) -> None:
    stub.always(completion("in Trondheim"))
    rules: list[dict[str, Any]] = [{"lacks": ["Oslo"]}, {"has": ["Bergen"]}, {}]
    items = [item(n, answer="Bergen", **own) for n, own in enumerate(rules)]
    write_benchmark(command, items, schema=SCHEMA, evaluation={"method": "llm-judge"})
    judged = (*MINE, "--judge-model", "scripted/judge")
    (expected,) = [row for row in command(*judged, "--dry-run").json["expected"] if row["stage"] == "judge"]
    (asked,) = [row for row in command(*judged).json["circumstances"]["stages"] if row["name"] == "judge"]
    assert expected["calls"] == asked["steps"] == 2


@pytest.mark.parametrize(("reply", "expected"), [("(b)", 1), ("(a)", 0), ("(b) and not Oslo", 0)])
def test_a_choice_must_be_right_and_without_excluded_texts(
    command: Command, stub: Stub, reply: str, expected: float
) -> None:
    question = {"choices": ["Trondheim", "Bergen"], "answer": "Bergen", "lacks": ["Oslo"]}
    assert accuracy(command, stub, reply, **question) == expected


@pytest.mark.parametrize(("reply", "expected"), [("我住在北京。", 1), ("我住在上海。", 0), ("我住在北京和上海。", 0)])
def test_texts_are_found_in_scripts_without_blanks(command: Command, stub: Stub, reply: str, expected: float) -> None:
    assert accuracy(command, stub, reply, answer="北京", has=["北京"], lacks=["上海"]) == expected


@pytest.mark.parametrize("evaluation", [{"method": "semantic-similarity"}, {"method": "f1", "f1Rule": "locomo"}])
def test_all_answers_are_refused_by_methods_that_compare_one(command: Command, evaluation: dict[str, str]) -> None:
    schema = {name: path for name, path in SCHEMA.items() if name != "choices"} | {"answerMode": "all"}
    write_benchmark(command, [item(0)], schema=schema, evaluation=evaluation)
    said = command("validate", "benchmarks/configs/mine.yaml")
    assert said.code == 2
    assert "schema.answerMode" in said.err


def test_a_corrected_answer_key_is_scored_beside_the_original(command: Command, stub: Stub) -> None:
    write_benchmark(command, [item(n, gold=[f"s{n}a"]) for n in range(2)])
    corrections = {"q0": {"answer": "blue", "evidence": ["s0b"]}}
    (command.folder / "key.json").write_text(json.dumps(corrections))
    found = values(command(*MINE, "--errata", "mine=key.json").json)
    assert (found["accuracy"], found["corrected_accuracy"]) == (1, 0.5)
    assert (found["recall@5"], found["corrected_recall@5"]) == (1, 0.5)
