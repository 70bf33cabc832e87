"""`none` and `placebo` show what a model answers without the history, and forbidden memories are counted."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.cli.command import Command
from tests.doubles.stub import Call, Stub, completion

COLOURS = ("green", "blue", "red", "white", "black", "grey", "pink", "brown")
CHATS = [
    {
        "id": f"chat-{n}",
        "messages": [
            {"id": f"m{n}a", "role": "user", "content": f"My boat number {n} is {colour} now."},
            {"id": f"m{n}b", "role": "user", "content": f"My boat number {n} was yellow last year."},
            {"id": f"m{n}c", "role": "user", "content": "It rained."},
        ],
        "probes": [
            {
                "question": f"Which colour has my boat number {n}?",
                "gold": colour,
                "options": [colour, "silver"],
                "evidence": [f"m{n}a"],
                "never": [f"m{n}b"],
                "stale": "yellow",
            }
        ],
    }
    for n, colour in enumerate(COLOURS, 1)
]


def write(command: Command, fields: Mapping[str, str], chats: list[dict[str, Any]] = CHATS) -> None:
    config = {
        "name": "boats",
        "data": {"type": "local", "path": "./datasets/boats.json"},
        "schema": {
            "itemId": "id",
            "evidenceLevel": "turn",
            "questions": {"field": "probes", "questionField": "question", "evidenceField": "evidence", **fields},
            "context": {"field": "messages", "itemSchema": {"role": "role", "content": "content", "dialogId": "id"}},
        },
        "evaluation": {"method": "exact-match"},
    }
    folder = command.folder / "benchmarks"
    (folder / "datasets").mkdir(parents=True)
    (folder / "configs").mkdir()
    (folder / "datasets/boats.json").write_text(json.dumps(chats), encoding="utf-8")
    (folder / "configs/boats.yaml").write_text(json.dumps(config), encoding="utf-8")


def answering(stub: Stub, knows: bool) -> None:
    def answer(call: Call) -> str:
        prompt = call.json["messages"][-1]["content"]
        number = int(prompt.split("Which colour has my boat number ")[1].split("?")[0])
        return COLOURS[number - 1] if knows else "I don't know"

    stub.always(completion(answer, model="", tokens=(200, 2)))


RUN = ("eval", "--benchmarks", "boats", "--answering-model", "gpt-4o-mini", "--run-id", "r", "--json")
ANSWER = {"answerField": "gold"}


def measures(document: Mapping[str, Any], subject: str) -> dict[str, float | None]:
    (result,) = (one for one in document["results"] if one["subject"] == subject and not one["group"])
    return {one["name"]: one["value"] for one in result["measures"]}


@pytest.mark.slow
def test_answers_without_a_memory_draw_a_warning(command: Command, stub: Stub) -> None:
    write(command, ANSWER)
    answering(stub, knows=True)
    document = command(*RUN, "--providers", "none", "bm25").json
    (found,) = document["contamination"]
    assert (found["subject"], found["measure"], found["value"], found["chance"]) == ("none", "accuracy", 1.0, 0.0)
    command("report", "r")
    assert "above chance" in (command.folder / "results/r/report.md").read_text(encoding="utf-8")


def test_a_model_that_knows_nothing_draws_no_warning(command: Command, stub: Stub) -> None:
    write(command, ANSWER)
    answering(stub, knows=False)
    assert "contamination" not in command(*RUN, "--providers", "none", "bm25").json


def test_a_lucky_choice_is_chance(command: Command, stub: Stub) -> None:
    write(command, ANSWER | {"choicesField": "options"})
    stub.always(completion("(a)", model="", tokens=(200, 2)))
    (found,) = command(*RUN, "--providers", "none").json["contamination"]
    assert found["chance"] == 0.5, "one of two choices"


def test_placebo_shows_memories_of_another_history(command: Command, stub: Stub) -> None:
    write(command, ANSWER)
    answering(stub, knows=False)
    document = command(*RUN, "--providers", "placebo", "oracle").json
    assert measures(document, "placebo")["recall@5"] is None, "another history has no evidence"
    assert measures(document, "placebo")["context_tokens"] == pytest.approx(
        measures(document, "oracle")["context_tokens"], abs=1
    )
    prompts = [call.json["messages"][-1]["content"] for call in stub.calls]
    assert sum("My boat number 2 is blue now." in prompt for prompt in prompts) == 2
    (shown,) = (one for one in prompts if "blue now" in one and "has my boat number 2?" not in one)
    assert "has my boat number 1?" in shown


def test_placebo_needs_a_second_history(command: Command, stub: Stub) -> None:
    write(command, ANSWER, CHATS[:1])
    said = command(*RUN, "--providers", "placebo")
    assert said.code == 2
    assert "placebo" in said.err
    assert stub.calls == []


@pytest.mark.parametrize("fields", [{"forbiddenField": "never"}, {"mustNotContainField": "stale"}])
def test_forbidden_memories_are_counted(command: Command, fields: dict[str, str]) -> None:
    write(command, ANSWER | fields)
    run = ("eval", "--benchmarks", "boats", "--providers", "bm25", "oracle", "none", "--json")
    document = command(*run).json
    assert measures(document, "bm25")["forbidden_hit"] == 1.0
    assert measures(document, "bm25")["drift"] == pytest.approx(1 / 3), "one of the three turns"
    assert (measures(document, "oracle")["forbidden_hit"], measures(document, "oracle")["drift"]) == (0.0, 0.0)
    assert measures(document, "none")["forbidden_hit"] == 0.0
    assert measures(document, "none")["drift"] is None, "an empty result is not a clean one"
    assert measures(document, "oracle")["bytes_per_memory"] == pytest.approx(
        sum(len(f"user: My boat number {n} is {colour} now.") for n, colour in enumerate(COLOURS, 1)) / 8
    )
