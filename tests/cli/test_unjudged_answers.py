"""Answers without a judge: token F1 leads for free text, exact match for closed answers, labels for multiple choice."""

from __future__ import annotations

import json
import re
import sqlite3
from typing import Any

import pytest

from memorybench.suites.answering import Answering
from tests.cli.command import Command
from tests.cli.test_samples import change_spec, item, report, write_benchmark
from tests.doubles.stub import Stub, completion

ANSWERED = ("--answering-model", "gpt-4o", "--run-id", "r", "--json")
MINE = ("eval", "--benchmarks", "mine", "--providers", "oracle", *ANSWERED)


@pytest.fixture
def stub(stub: Stub) -> Stub:
    stub.always(completion("green"))
    return stub


def values(document: dict[str, Any]) -> dict[str, float | None]:
    (result,) = [result for result in document["results"] if not result["group"]]
    return {measure["name"]: measure["value"] for measure in result["measures"]}


def headline(command: Command) -> str:
    """The measure in the second column of the first table."""
    line = next(line for line in report(command).splitlines() if line.startswith("| provider |"))
    return line.split("|")[2].strip()


@pytest.mark.slow
def test_free_text_answers_lead_with_token_f1_and_say_that_accuracy_needs_a_judge(command: Command, stub: Stub) -> None:
    said = command("eval", "--providers", "oracle", "--limit", "12", *ANSWERED)
    assert headline(command) == "answer_f1 [95%]"
    assert values(said.json)["accuracy"] is None
    assert values(said.json)["exact_match"] is not None
    (suggested,) = re.findall("`memorybench (score r .*?)`", report(command))
    assert command(*suggested.split()).code == 0
    assert command("score", "r", "--judge-model", "scripted/judge", "--run-id", "s").code == 0
    assert "needs a judge" not in report(command, "s")


def test_closed_answers_lead_with_exact_match(command: Command, stub: Stub) -> None:
    write_benchmark(command, [item(n) for n in range(4)])
    assert values(command(*MINE).json)["accuracy"] == 1
    assert headline(command) == "accuracy [95%]"


@pytest.mark.parametrize(("closed", "leads"), [(True, "accuracy [95%]"), (False, "answer_f1 [95%]")])
def test_a_benchmark_says_whether_its_answers_are_closed(
    command: Command, stub: Stub, closed: bool, leads: str
) -> None:
    items = [item(n, answer="the fence behind the house is green" if closed else "green") for n in range(4)]
    write_benchmark(command, items, evaluation={"method": "exact-match", "closedAnswers": closed})
    command(*MINE)
    assert headline(command) == leads


def test_a_run_of_the_previous_release_keeps_its_method(command: Command, stub: Stub) -> None:
    """Earlier versions called a free-text answer right if it was equal to the gold."""
    assert command.killed("eval", "--providers", "oracle", "--end", "8", *ANSWERED, "--concurrency", "1", at=12)

    def as_previous_release_wrote_it(spec: dict[str, Any]) -> None:
        spec.pop("sample_seed")
        spec["methods"] = {"starter": "exact-match"}

    change_spec(command.folder / "results", as_previous_release_wrote_it)
    assert values(command("eval", "--resume", "r", "--json").json)["accuracy"] is not None


CHOICES = {"choices": ["red", "green", "a blue one"], "answer": "green"}


@pytest.mark.parametrize("kind", ["fact", None])
def test_multiple_choice_asks_for_a_label(command: Command, stub: Stub, kind: str | None) -> None:
    write_benchmark(command, [item(0, **CHOICES, type=kind), item(1, type=kind)])
    command(*MINE)
    asked = {call.json["messages"][-1]["content"] for call in stub.calls}
    assert sorted("reply with the label" in text for text in asked) == [False, True]
    assert {"(b) green" in text for text in asked if "reply with the label" in text} == {True}


def test_answers_to_choice_questions_of_the_previous_release_are_judged(command: Command, stub: Stub) -> None:
    """Earlier versions asked questions without a type with the prompt for free text."""
    write_benchmark(command, [item(0, **CHOICES, type=None)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Answering, "prompt", lambda own, kind, **_: own.prompts[kind])
        assert command(*MINE).code == 0
    said = command("score", "r", "--judge-model", "scripted/judge", "--json")
    assert said.json["counts"]["scored"] == 1, said.err


@pytest.mark.parametrize("choices", [["red", "green"], ["A. red", "B. green"]])
def test_choices_are_not_searched_for(command: Command, stub: Stub, choices: list[str]) -> None:
    """One of them is the answer: a search for it would find the evidence of any question."""
    sessions = [[{"role": "user", "text": "Mine is green."}], [{"role": "user", "text": "The gate squeaks."}]]
    asked = {"question": "Does the gate make noise?", "sessions": sessions, "gold": ["s0b"], "choices": choices}
    write_benchmark(command, [item(0, **asked)])
    found = command("eval", "--benchmarks", "mine", "--providers", "bm25", "--run-id", "r", "--json").json
    shown = command("show", "r", "q0").out
    (trial,) = command("show", "r", "q0", "--json").json["trials"]
    assert values(found)["recall@1"] == 1
    assert trial["memories"][0]["hits"] == ["s2"]
    assert "Mine is green." not in shown


@pytest.mark.parametrize(
    ("reply", "status", "correct"),
    [
        ("The answer is B.", "scored", 1.0),
        ("**(b)**", "scored", 1.0),
        ("Answer: C", "scored", 0.0),
        ("I don't know", "scored", 0.0),
        ("A nice colour.", "unscored", None),
        ("(a) or (b)", "unscored", None),
    ],
)
def test_a_choice_is_right_or_wrong_or_not_readable(
    command: Command, stub: Stub, reply: str, status: str, correct: float | None
) -> None:
    stub.always(completion(reply))
    write_benchmark(command, [item(0, **CHOICES)])
    command(*MINE)
    with sqlite3.connect(command.folder / "results" / "results.db") as db:
        (body,) = db.execute("SELECT body FROM outcomes").fetchone()
    outcome = json.loads(body)
    assert outcome["status"] == status
    assert {score["name"]: score["value"] for score in outcome["scores"]}.get("correct") == correct


def accuracy(command: Command) -> dict[str, Any]:
    (result,) = [one for one in command("results", "r", "--json").json["results"] if not one["group"]]
    found: dict[str, Any] = next(one for one in result["measures"] if one["name"] == "accuracy")
    return found


def test_unreadable_choices_make_accuracy_a_range(command: Command, stub: Stub) -> None:
    """The replies that can be read may be better or worse than the others."""
    replies = {0: "B", 1: "B", 2: "A", 3: "(a) or (b)"}
    stub.always(completion(lambda call: next(text for n, text in replies.items() if f"number {n}?" in str(call.json))))
    items = [item(n, **{**CHOICES, "question": f"What is number {n}?"}) for n in range(4)]
    write_benchmark(command, items)
    said = command(*MINE)
    assert said.code == 1
    assert "| correct 66.7% of 3\n" in said.err, "two of the three replies that can be read are right"
    found = accuracy(command)
    assert (found["value"], found["n"], found["planned"]) == (None, 3, 4)
    assert found["low"] < 2 / 4
    assert found["high"] > 3 / 4
    assert headline(command) == "accuracy [95%]"
    (suggested,) = re.findall("`memorybench (score r .*?)`", report(command))
    assert command(*suggested.split()).code == 0
    assert (command.folder / "results/r/report.html").exists()
    assert command("score", "r", "--judge-model", "scripted/judge", "--run-id", "s").code == 0
    assert command("compare", "r", "s").code == 0
