"""Answers and verdicts: nothing paid is repeated, and what was paid adds up to the other side's own count."""

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest

from memorybench.journal.run_reader import RunReader
from tests.cli.command import Command, measured
from tests.cli.test_compare import own_benchmark
from tests.doubles.stub import Call, Stub, after, completion

TOKENS = (200, 20)
PRICES = {"gpt-4o-mini": (0.15, 0.60), "gpt-4o": (2.50, 10.00), "gpt-4.1": (2.00, 8.00)}
"""Dollars for a million tokens in and out."""


def says(call: Call) -> str:
    asked = call.json["messages"][-1]["content"]
    return ("yes" if len(asked) % 3 else "no") if "yes or no" in asked else "It was forty, in the kitchen."


@pytest.fixture
def stub(stub: Stub) -> Stub:
    stub.always(completion(says, model="", tokens=TOKENS))
    return stub


def asked(stub: Stub) -> Counter[str]:
    return Counter(json.dumps(call.json, sort_keys=True) for call in stub.calls)


def bill(stub: Stub) -> float:
    rates = [PRICES[call.json["model"]] for call in stub.calls]
    return sum((TOKENS[0] * dear + TOKENS[1] * dearer) / 1e6 for dear, dearer in rates)


ARMS = ("eval", "--providers", "bm25", "oracle", "--end", "15", "--answering-model", "gpt-4o-mini")


@pytest.mark.slow
def test_a_judged_run_killed_and_resumed_repeats_no_call(command: Command, stub: Stub) -> None:
    whole = command(*ARMS, "--judge-model", "gpt-4o", "--run-id", "whole", "--output", "whole", "--json").json
    once = asked(stub)
    assert set(once.values()) == {1}
    stub.calls.clear()
    for place in (200, 60, 40):  # killed while canaries, answers and verdicts are asked for
        arguments = ("--resume", "r") if (command.folder / "results").exists() else (*ARMS[1:], "--run-id", "r")
        judge = () if "--resume" in arguments else ("--judge-model", "gpt-4o")
        assert command.killed("eval", *arguments, *judge, "--concurrency", "1", at=place)
    resumed = command("eval", "--resume", "r", "--json").json
    assert resumed["results"] == whole["results"]
    repeated = sum(n - 1 for n in asked(stub).values())
    assert repeated <= resumed["possibly_charged_twice"] <= 3, "at most the call under way at each kill"
    assert set(asked(stub)) == set(once)


@pytest.mark.slow
def test_scoring_with_another_judge_calls_only_the_judge(command: Command, stub: Stub) -> None:
    first = command(*ARMS, "--judge-model", "gpt-4o", "--run-id", "a", "--json").json
    assert first["circumstances"]["spent"]["cost"] == pytest.approx(bill(stub))
    assert first["circumstances"]["spent"]["calls"] == len(stub.calls)
    stub.calls.clear()
    second = command("score", "a", "--judge-model", "gpt-4.1", "--run-id", "b", "--json").json
    assert {call.json["model"] for call in stub.calls} == {"gpt-4.1"}
    assert second["circumstances"]["spent"]["cost"] == pytest.approx(bill(stub))
    assert second["counts"]["scored"] == 30
    stub.calls.clear()
    command("score", "a", "--judge-model", "gpt-4.1", "--run-id", "c", "--json")
    assert len(stub.calls) == 30, "the canaries of this judge were paid before, in this folder"


@pytest.mark.slow
def test_a_resumed_run_keeps_its_concurrency(command: Command, stub: Stub) -> None:
    slow = after(lambda: asyncio.sleep(0.02), completion(says, model="", tokens=TOKENS))
    stub.always(slow)
    assert command.killed(*ARMS, "--run-id", "a", "--concurrency", "2", at=40)
    assert command("eval", "--resume", "a", "--json").json["counts"]["scored"] == 30
    assert stub.peak == 2
    command(*ARMS, "--run-id", "b")
    assert stub.peak > 2


def test_scoring_reads_the_card_of_its_judge_from_a_folder(command: Command, stub: Stub) -> None:
    models = ("--answering-model", "scripted/quote", "--judge-model", "scripted/judge", "--canaries", "off")
    assert command("eval", "--providers", "bm25", "--end", "3", *models, "--run-id", "a").code == 0
    (command.folder / "cards").mkdir()
    (command.folder / "cards" / "ours.yaml").write_text(f"name: ours\nbaseUrl: {stub.url}/v1\nmodel: big\n")
    said = command(
        "score", "a", "--judge-model", "ours", "--config-dir", "cards", "--canaries", "off", "--run-id", "b", "--json"
    )
    assert said.code == 0, said.err
    assert {call.json["model"] for call in stub.calls} == {"big"}, "as its card names it"
    assert command("eval", "--resume", "b").code == 0


def test_scoring_refuses_a_run_of_another_command(command: Command) -> None:
    dataset = Path(__file__).parents[2] / "data/sample-dataset.json"
    words = ("--model", "scripted/quote", "--judge-model", "scripted/judge", "--limit", "1", "--output", "results")
    command("audit", str(dataset), *words, "--run-id", "a")
    said = command("score", "a", "--judge-model", "scripted/judge")
    assert (said.code, said.err) == (2, "memorybench: RUN: a is a run of audit; expected a run of eval\n")


def test_a_run_that_was_killed_before_its_last_provider_is_scored(command: Command, stub: Stub) -> None:
    providers = ("--providers", "bm25", "bm25(k1=2)", "--end", "15")
    assert command.killed("eval", *providers, *ARMS[-2:], "--run-id", "a", "--concurrency", "1", at=40)
    scored = command("score", "a", "--judge-model", "scripted/judge", "--json")
    assert scored.code == 1, scored.err
    counts = scored.json["counts"]
    assert 0 < counts["scored"] < 15
    assert counts["scored"] + counts["failed"] == counts["planned"] == 30


@pytest.mark.parametrize("flag", [("--reuse", "a"), ("--store-is-disposable",)])
def test_scoring_has_no_flags_without_effect(command: Command, flag: tuple[str, ...]) -> None:
    said = command("score", "a", "--judge-model", "scripted/judge", *flag)
    assert (said.code, said.err.split(": ")[1]) == (2, flag[0])


@pytest.mark.slow
def test_interrupted_scoring_is_resumed(command: Command, stub: Stub) -> None:
    command(*ARMS, "--judge-model", "gpt-4o", "--run-id", "a", "--json")
    stub.calls.clear()
    score = ("score", "a", "--judge-model", "gpt-4.1", "--run-id", "b", "--concurrency", "1")
    assert command.killed(*score, at=150)
    resumed = command("eval", "--resume", "b", "--json").json
    assert resumed["counts"]["scored"] == 30
    assert {call.json["model"] for call in stub.calls} == {"gpt-4.1"}
    assert sum(n - 1 for n in asked(stub).values()) <= 1


@pytest.mark.slow
def test_reusing_a_run_makes_no_call(command: Command, stub: Stub) -> None:
    arms = (*ARMS, "--judge-model", "gpt-4o", "--json")
    first = command(*arms, "--run-id", "a").json
    stub.calls.clear()
    again = command(*arms, "--run-id", "b", "--reuse", "a").json
    assert stub.calls == []
    assert measured(again) == measured(first)
    assert again["circumstances"]["spent"]["cost"] == 0


@pytest.mark.slow
def test_reusing_a_run_does_not_repeat_unreadable_verdicts(command: Command, stub: Stub) -> None:
    def mumbles_at_first(call: Call) -> str:
        asked = call.json["messages"][-1]["content"]
        return "Hmm." if "yes or no" in asked and "could not be read" not in asked else says(call)

    stub.always(completion(mumbles_at_first, model="", tokens=TOKENS))
    arms = (*ARMS, "--judge-model", "gpt-4o", "--json")
    first = command(*arms, "--run-id", "a").json
    assert first["counts"]["scored"] == 30
    stub.calls.clear()
    again = command(*arms, "--run-id", "b", "--reuse", "a").json
    assert stub.calls == []
    assert measured(again) == measured(first)


def test_prompts_may_be_given_as_text_or_as_a_file(command: Command, stub: Stub) -> None:
    (command.folder / "answer.txt").write_text("In one word: ${question}\n${retrievedContext}")
    prompts = ("--answer-prompt", "answer.txt", "--judge-prompt", "Say yes if ${response} is ${answer}, else no.")
    assert command(*ARMS, "--judge-model", "gpt-4o", *prompts).code == 0
    texts = [call.json["messages"][-1]["content"] for call in stub.calls]
    assert any(text.startswith("In one word: ") for text in texts)
    assert any(text.startswith("Say yes if ") for text in texts)


@pytest.mark.parametrize(
    "flags",
    [
        ["--answer-prompt", "prompts/missing.txt"],
        ["--answer-prompt", "Just answer."],
        ["--answer-prompt", ""],
        ["--answer-prompt", "${question} ${answr}"],
        ["--judge-prompt", "Is ${answer} right?"],
    ],
)
def test_an_unusable_prompt_is_an_error_before_any_call(command: Command, stub: Stub, flags: list[str]) -> None:
    answer = command(*ARMS, "--judge-model", "gpt-4o", *flags)
    assert answer.code == 2
    assert answer.err.startswith(f"memorybench: {flags[0]}")
    assert stub.calls == []


def test_wrong_answers_are_attributed_to_retrieval_or_to_the_answering_model(command: Command, stub: Stub) -> None:
    document = command(*ARMS, "--judge-model", "gpt-4o", "--json").json
    (oracle,) = [r for r in document["results"] if r["subject"] == "oracle" and not r["group"]]
    shares = {m["name"]: m["value"] for m in oracle["measures"] if m["name"].startswith("miss_")}
    assert shares == {"miss_not_retrieved": 0.0, "miss_not_used": 1.0}, "the oracle shows the evidence"


def test_a_prompt_has_no_line_for_a_date_that_the_data_does_not_have(command: Command) -> None:
    own_benchmark(command.folder, {"door": "red", "roof": "blue"})
    for benchmark, is_dated in {"starter": True, "sample": False}.items():
        asked = ("--benchmarks", benchmark, "--config-dir", "benchmarks", "--end", "1", "--providers", "bm25")
        said = command("eval", *asked, "--answering-model", "scripted/quote", "--run-id", benchmark)
        assert said.code == 0, said.err
        with RunReader.open(command.folder / "results") as run_reader:
            inputs = run_reader.step_inputs(benchmark, "answer")
        assert inputs is not None
        assert ("Asked on: " in inputs) is is_dated
        assert command("bundle", benchmark, "--output", f"{benchmark}.mbz").code == 0
        claims = command("verify", f"{benchmark}.mbz", "--json").json["claims"]
        assert "proved" in [claim["level"] for claim in claims if claim["name"] == "scores"], "it knows the prompt"
