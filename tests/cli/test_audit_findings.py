"""What a review found wrong with audits, through the command."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command
from tests.doubles.stub import Call, Stub, completion

SAMPLE = str(Path(__file__).parents[2] / "data/sample-dataset.json")
JUDGED = ("--judge-model", "scripted/judge")


def save(command: Command, turns: list[str], facts: list[dict[str, Any]], dates: tuple[str, ...] = ()) -> str:
    """Write a dataset of one conversation; return its name."""
    said = [
        {"role": "user", "content": text, "timestamp": dates[place] if dates else f"2024-0{place + 1}-09"}
        for place, text in enumerate(turns)
    ]
    facts = [{"id": f"f{number}", **fact} for number, fact in enumerate(facts)]
    dataset = {"id": "mine", "conversations": [{"id": "c", "turns": said, "facts": facts}]}
    (command.folder / "mine.json").write_text(json.dumps(dataset))
    return "mine.json"


def asked(command: Command, dataset: str, *more: str) -> list[dict[str, Any]]:
    said = command("audit", dataset, "--model", "scripted/quote", *JUDGED, "--json", *more)
    return [row["probe"] for row in said.json["probeResults"]] if said.code in (0, 1) else []


def test_a1_two_facts_that_do_not_answer_one_question_are_no_conflict(command: Command) -> None:
    told = [
        "I put 300 euros a month into a world index fund.",
        "I increased the savings plan to 450 euros a month.",
    ]
    facts = [
        {"content": "User invests 300 euros a month in a world index fund", "turn": 1},
        {"content": "User increased the savings plan to 450 euros a month", "turn": 2, "supersedes": "f0"},
    ]
    assert not [probe for probe in asked(command, save(command, told, facts)) if probe["type"] == "conflict"]


def test_a_planned_fact_is_not_asked_as_current(command: Command) -> None:
    told = ["I work at Ashgrove as a nurse.", "I'm starting at Tamar on 2 April, and I'm looking forward to it."]
    job = {"subject": "user", "attribute": "employer"}
    plan = {"supersedes": "f0", "validFrom": "2024-04-02"}
    facts = [
        {"content": "User works at Ashgrove", "turn": 1, "value": "Ashgrove", **job},
        {"content": "User works at Tamar", "turn": 2, "value": "Tamar", **job, **plan},
    ]
    dataset = save(command, told, facts)
    assert {probe["expectedAnswer"] for probe in asked(command, dataset)} == {"Ashgrove"}
    assert command("audit", "probes", dataset, "--json").json["rejected"]["a plan"] == 1


def test_a_short_text_in_another_language_needs_a_probe_model(command: Command) -> None:
    told = ["Ik was in mei in Delft en we zijn daar met de boot."]
    facts = [{"content": told[0], "turn": 1, "subject": "user", "attribute": "stad", "value": "Delft"}]
    dataset = save(command, told, facts)
    said = command("audit", dataset, "--model", "scripted/quote", *JUDGED, "--json")
    assert said.code == 2
    assert "--probe-model" in said.err + said.out


def test_a2_a_plan_is_not_an_event(command: Command) -> None:
    told = ["I fly to Japan on April 3.", "I changed my tariff today.", "My sofa was delivered today."]
    texts = ("User flies to Japan on April 3", "User changed the tariff", "User's sofa was delivered")
    facts = [
        {"content": text, "category": "event", "timestamp": f"2024-0{n + 1}-09", "turn": n + 1}
        for n, text in enumerate(texts)
    ]
    rows = asked(command, save(command, told, facts))
    assert not [row for row in rows if row["type"] == "temporal" and "Japan" in row["question"]]


def test_a4_what_a_conversation_tells_in_odd_words_is_not_asked_as_absent(command: Command) -> None:
    told = [
        "My Skoda is bright green.", "I'm O negative, by the way.", "I train at PureGym.", "My cat is called Pixel.",
        "I drink oolong in the afternoon.", "I live in Ghent.", "I work as a glazier.", "Anna repairs clocks.",
    ]  # fmt: skip
    facts = [{"content": text, "turn": place} for place, text in enumerate(told, 1)]
    dates = ("2024-01-09",) * len(told)
    for seed in range(5):
        rows = asked(command, save(command, told, facts, dates), "--sample-seed", str(seed))
        assert not [row for row in rows if row["type"] == "hallucination"], "no structure proves that it is absent"


@pytest.mark.parametrize(
    ("turn", "value", "question"),
    [
        ("Ich wohne seit März in Köln und arbeite als Gärtnerin.", "Köln", "Wo wohnt die Nutzerin?"),
        ("我三月份搬到了上海，现在是一名园丁。", "上海", "用户住在哪个城市？"),
    ],
)
def test_a6_other_languages_need_a_model_and_the_message_says_so(
    command: Command, stub: Stub, turn: str, value: str, question: str
) -> None:
    fact = {"content": turn, "attribute": "Wohnort", "value": value, "turn": 1}
    dataset = save(command, [turn], [fact])
    refused = command("audit", dataset, "--model", "scripted/quote", *JUDGED)
    assert refused.code == 2
    assert "--probe-model" in refused.err

    def writes(call: Call) -> str:
        prompt = call.json["messages"][-1]["content"]
        if "Write a question about the fact" in prompt:
            return json.dumps({"question": question, "answer": value, "evidence": ["t1"]})
        return json.dumps({"answer": value if turn in prompt else None, "quote": None})

    stub.always(completion(writes, model="", tokens=(9, 1)))
    rows = asked(command, dataset, "--probe-model", "gpt-4o", "--kinds", "recall")
    assert [(row["question"], row["expectedAnswer"]) for row in rows] == [(question, value)]


@pytest.mark.slow
def test_a7_a_dead_server_stops_the_run_early(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    said = command("audit", SAMPLE, "--model", "gpt-4o-mini", *JUDGED, "--run-id", "r")
    assert said.code == 1
    assert "--resume" in said.err
    report = Path("audit-results/r/report.md")
    assert not report.exists() or "every answer was" not in report.read_text()


def hinted(out: str) -> list[list[str]]:
    """Return the words of the commands that a run prints as what to try next."""
    printed = re.sub(r"\\\n\s*", " ", out.partition("What to try next:")[2])
    lines = [line.strip().partition("    ")[0] for line in printed.splitlines() if "memorybench " in line]
    return [(words := shlex.split(line))[words.index("memorybench") + 1 :] for line in lines]


@pytest.mark.slow
def test_a7_the_printed_hints_run(command: Command) -> None:
    said = command("audit", SAMPLE, "--model", "scripted/quote", *JUDGED, "--limit", "4", "--run-id", "r")
    hints = hinted(said.out)
    assert len(hints) == 2
    for words in hints:
        assert words[0] == "results" or words[-2:] == ["--limit", "4"], "the same probes"
        assert command(*words).code in (0, 1), words


def test_the_hint_to_ask_the_same_probes_has_all_settings_of_the_run(command: Command, stub: Stub) -> None:
    """It left out most flags, so that it failed, or asked other questions in another way."""
    stub.always(completion("I do not know."))
    (command.folder / "cards").mkdir()
    card = {"name": "mine", "baseUrl": f"{stub.url}/v1", "model": "m"}
    (command.folder / "cards" / "models.yaml").write_text(json.dumps({"models": [card]}))
    (command.folder / "cards" / "prompt.txt").write_text("Use\n${retrievedContext}\nto answer: ${question}\n")
    given = ["--config-dir", "cards", "--model", "mine", "--conflicts", "flag", "--answer-prompt", "cards/prompt.txt"]
    given += ["--seed", "3", "--kinds", "recall", "conflict", "--limit", "4", "--context-window", "50000"]
    given += ["--output", "elsewhere"]
    said = command("audit", SAMPLE, *given, *JUDGED, "--run-id", "r")
    assert said.code in (0, 1), said.err
    again = next(words for words in hinted(said.out) if words[0] == "audit")
    assert [word for word in [SAMPLE, *given, *JUDGED] if word not in again] == []
    planned = command(*again, "--dry-run")
    assert planned.code == 0, planned.err


def test_the_command_that_continues_an_audit_repeats_what_is_not_saved(command: Command, stub: Stub) -> None:
    stub.always(completion("I do not know."))
    said = command("audit", SAMPLE, "--model", "gpt-4o", *JUDGED, "--budget", "0", "--format", "json", "--allow-code")
    words = said.out.partition("Continue with: ")[2].split()
    assert words[words.index("--format") + 1] == "json"
    assert "--allow-code" in words


@pytest.mark.slow
def test_a8_audits_are_compared(command: Command) -> None:
    for run, model in (("a", "scripted/quote"), ("b", "scripted/silence")):
        command("audit", SAMPLE, "--model", model, *JUDGED, "--limit", "20", "--run-id", run)
    said = command("results", "--compare", "a", "b", "--results", "audit-results", "--json")
    assert said.code == 0, said.err
    compared = command("compare", "a", "b", "--results", "audit-results", "--json")
    assert compared.code == 0, compared.err
    failures = command("results", "b", "--failures", "--results", "audit-results", "--json")
    assert failures.code == 0, failures.err
    assert failures.json


@pytest.mark.parametrize(
    ("kind", "reply", "correct"),
    [("recall", "The user prefers meetings over {}", None), ("hallucination", "The context doesn't contain it.", None)],
)
def test_a9_code_decides_no_answer_that_it_cannot_read(
    command: Command, stub: Stub, kind: str, reply: str, correct: bool | None
) -> None:
    golds = {row["question"]: row["expectedAnswer"] for row in asked(command, SAMPLE, "--kinds", kind, "--limit", "6")}

    def says(call: Call) -> str:
        question = call.json["messages"][-1]["content"].partition("Question: ")[2].partition("\n")[0]
        return reply.format(golds[question])

    stub.always(completion(says, model="", tokens=(9, 1)))
    asked_again = ("--model", "gpt-4o-mini", "--judge-model", "none", "--kinds", kind, "--limit", "6", "--json")
    rows = command("audit", SAMPLE, *asked_again).json["probeResults"]
    assert {row["correct"] for row in rows if row["probe"]["type"] == kind} == {correct}


def test_a10_the_conversation_is_replayed_as_turns_with_a_neutral_prompt(command: Command, stub: Stub) -> None:
    stub.always(completion("Whitby", model="", tokens=(9, 1)))
    run = ("audit", SAMPLE, "--model", "gpt-4o-mini", "--judge-model", "none", "--kinds", "recall", "--limit", "1")
    command(*run)
    messages = stub.calls[0].json["messages"]
    assert [message["role"] for message in messages[:2]] == ["user", "assistant"]
    assert len(messages) > 20
    for coaching in ("don't know", "later", "I don't", "does not tell"):
        assert coaching not in messages[-1]["content"]
    (command.folder / "own.txt").write_text("My own prompt. ${question}")
    command(*run, "--answer-prompt", "own.txt")
    assert stub.calls[-1].json["messages"][-1]["content"].startswith("My own prompt. ")


@pytest.mark.slow
def test_a11_several_models_and_memories_are_compared_with_baselines(command: Command) -> None:
    models = ("--model", "scripted/quote", "scripted/silence")
    subjects = ("--providers", "bm25", "none", "full-context", "oracle")
    few = ("--limit", "24", "--context-limit", "2")
    said = command("audit", SAMPLE, *models, *subjects, *JUDGED, *few, "--run-id", "r", "--json")
    assert said.code == 0, said.err
    found = [row["subject"] for row in said.json["results"] if not row["group"]]
    assert len(found) == 8
    assert {"bm25 + scripted/quote", "oracle + scripted/silence"} <= set(found)
    differences = {(row["subject"], row["baseline"]) for row in said.json["differences_from_baseline"]}
    assert differences == {
        (f"bm25 + {model}", f"{baseline} + {model}") for model in models[1:] for baseline in subjects[2:]
    }
    values = {
        row["subject"]: {measure["name"]: measure["value"] for measure in row["measures"]}["recall_accuracy"]
        for row in said.json["results"]
        if not row["group"]
    }
    assert values["oracle + scripted/quote"] >= values["bm25 + scripted/quote"] > values["none + scripted/quote"] == 0
    report = Path("audit-results/r/report.md").read_text()
    assert "Difference from baseline" in report
    assert "Why answers are wrong" in report
    wrong = command("results", "r", "--failures", "--results", "audit-results", "--json").json
    assert {row["reason"] for row in wrong} >= {"stale", "not-retrieved", "not-used"}


def test_a12_a_reply_that_is_no_question_is_counted_and_not_asked(command: Command, stub: Stub) -> None:
    stub.always(completion("I would rather not.", model="", tokens=(9, 1)))
    dataset = save(command, ["I sleep badly since the move."], [{"content": "User sleeps badly", "turn": 1}])
    said = command(
        "audit", dataset, "--model", "scripted/quote", *JUDGED, "--probe-model", "gpt-4o", "--kinds", "recall", "--json"
    )
    assert said.json["counts"]["skipped"] == said.json["counts"]["planned"] == 1
    assert said.json["probeResults"][0]["reason"].startswith("no question was written")
