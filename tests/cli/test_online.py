"""Traces judged through the command: fetched once, judged once, told once."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memorybench.core.conversation import Turn
from tests.cli.command import Command
from tests.cli.test_samples import change_spec
from tests.doubles.stub import Call, Stub, completion
from tests.standins.base import KEY, running
from tests.standins.langsmith import PROJECT, LangSmithServer
from tests.suites.extraction.listing import lister, user_says

STATED = ("pricing: Costs 40 euros", "constraints: No subscriptions")


def judge(call: Call) -> str:
    asked = call.json["messages"][-1]["content"]
    if "yes or no" in asked:
        return "no"
    told = lister([Turn(role="user", content=asked)])
    assert isinstance(told, str)
    return told


@pytest.fixture
def stub(stub: Stub) -> Stub:
    stub.always(completion(judge, model="", tokens=(100, 10)))
    return stub


@pytest.fixture
def langsmith(monkeypatch: pytest.MonkeyPatch) -> Iterator[LangSmithServer]:
    with running(LangSmithServer()) as server:
        monkeypatch.setenv("LANGSMITH_API_KEY", KEY)
        monkeypatch.setenv("LANGSMITH_ENDPOINT", server.url)
        for number in range(8):
            right = {"pricing": ["Costs 40 euros"], "constraints": [f"No {number} subscriptions"]}
            half = {"pricing": ["Costs 40 euros"]}
            stated = user_says("pricing: Costs 40 euros", f"constraints: No {number} subscriptions")
            output = half if number % 2 else right
            server.add(inputs={"conversation": stated, "existing_memory": {}}, outputs={"output": output})
        yield server


ONLINE = ("extraction", "online", "--source", "langsmith", "--project", PROJECT, "--judge-model", "gpt-4o")


def figures(document: dict[str, Any]) -> dict[str, float | None]:
    (overall,) = (row for row in document["results"] if not row["group"])
    return {measure["name"]: measure["value"] for measure in overall["measures"]}


def test_traces_are_judged_and_feedback_goes_back_once(
    command: Command, stub: Stub, langsmith: LangSmithServer
) -> None:
    first = command(*ONLINE, "--feedback", "--json", "--run-id", "today")
    assert first.code == 0, first.err
    scores = figures(first.json)
    assert scores["precision"] == 1
    assert scores["recall"] == pytest.approx(12 / 16)
    assert len(langsmith.feedback) == 8 * 3
    assert not langsmith.repeated
    told = Counter(feedback["key"] for feedback in langsmith.feedback.values())
    assert told == {"precision": 8, "recall": 8, "f1": 8}


def test_feedback_is_sent_only_with_the_flag(command: Command, stub: Stub, langsmith: LangSmithServer) -> None:
    assert command(*ONLINE, "--json").code == 0
    assert not langsmith.feedback


def test_the_next_day_judges_only_what_is_new(command: Command, stub: Stub, langsmith: LangSmithServer) -> None:
    command(*ONLINE, "--feedback", "--json", "--run-id", "today")
    stub.calls.clear()
    output = {"pricing": ["Costs 40 euros"]}
    langsmith.add(inputs={"conversation": user_says(*STATED, "region: Ships to Norway")}, outputs={"output": output})
    tomorrow = command(*ONLINE, "--feedback", "--json", "--run-id", "tomorrow").json
    assert tomorrow["counts"]["scored"] == 9
    asked = [call for call in stub.calls if "yes or no" not in call.json["messages"][-1]["content"]]
    assert len(asked) == 2, "the lists of the new trace, and nothing else"
    assert len(langsmith.feedback) == 9 * 3
    assert not langsmith.repeated


def test_a_killed_online_run_repeats_no_request(command: Command, stub: Stub, langsmith: LangSmithServer) -> None:
    assert command.killed(*ONLINE, "--feedback", "--run-id", "r", "--concurrency", "1", at=60)
    posted = len(langsmith.feedback)
    assert 0 < posted < 24
    fetched = sum("runs/query" in call.path for call in langsmith.stub.calls)
    resumed = command("extraction", "online", "--resume", "r", "--json")
    assert resumed.code == 0, resumed.err
    assert sum("runs/query" in call.path for call in langsmith.stub.calls) == fetched
    assert resumed.json["counts"]["scored"] == 8
    assert len(langsmith.feedback) == 24
    assert len(langsmith.repeated) <= 3, "at most the posts of the trace under way when it died, under the same ids"
    asked = Counter(json.dumps(call.json, sort_keys=True) for call in stub.calls)
    assert sum(n - 1 for n in asked.values()) <= resumed.json["possibly_charged_twice"] <= 1


def test_a_run_of_an_earlier_version_with_a_project_beside_a_file_is_resumed(
    command: Command, stub: Stub, tmp_path: Path
) -> None:
    """Earlier versions accepted `--project`, without effect. A new run with both is refused."""
    rows = [{"id": f"{n}", "conversation": user_says(*STATED), "output": {"pricing": [f"{n}"]}} for n in range(4)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    online = ("extraction", "online", "--judge-model", "gpt-4o", "--source", "jsonl", str(tmp_path / "t.jsonl"))
    assert command.killed(*online, "--run-id", "r", "--concurrency", "1", at=20)
    change_spec(command.folder / "results", lambda spec: spec.update(project="p"))
    resumed = command("extraction", "online", "--resume", "r", "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.json["counts"]["scored"] == 4


@pytest.mark.slow
def test_a_run_is_compared_with_its_baseline(command: Command, stub: Stub, tmp_path: Path) -> None:
    def traces(name: str, output: dict[str, list[str]]) -> str:
        rows = [
            {"id": f"{name}{n}", "conversation": user_says(*STATED, f"customer: Number {n}"), "output": output}
            for n in range(12)
        ]
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(tmp_path / name)

    good = {"pricing": ["Costs 40 euros"], "constraints": ["No subscriptions"]}
    online = ("extraction", "online", "--judge-model", "gpt-4o")
    assert command(*online, "--source", "jsonl", traces("good", good), "--run-id", "base").code == 0
    worse = command(*online, "--source", "jsonl", traces("bad", {"pricing": ["Costs 40 euros"]}), "--baseline", "base")
    assert worse.code == 3, worse.err
    assert "recall" in worse.out
    assert "worse (permutation test" in " ".join(worse.out.split())
    same = command(*online, "--source", "jsonl", traces("same", good), "--baseline", "base")
    assert same.code == 0, same.out
    assert command("runs", "delete", "base", "--yes").code == 2, "reports of the others need it"
    assert command("runs", "rename", "base", "new-base").code == 0
    shown = command("results", "latest")
    assert shown.code == 0, shown.err
    assert "permutation test" in " ".join(shown.out.split())


def test_the_comparison_with_a_baseline_names_the_averages_of_the_tables(
    command: Command, stub: Stub, tmp_path: Path
) -> None:
    """Traces of different size: the mean over traces is not the pooled recall, and is called by its own name."""
    rows = [
        {"id": "a", "conversation": user_says("team: five people"), "output": {"team": ["five people"]}},
        {"id": "b", "conversation": user_says(*STATED, "region: Norway"), "output": {"pricing": ["Costs 40 euros"]}},
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    online = ("extraction", "online", "--judge-model", "gpt-4o", "--source", "jsonl", str(tmp_path / "t.jsonl"))
    assert command(*online, "--run-id", "base").code == 0
    again = command(*online, "--run-id", "again", "--baseline", "base")
    figure = figures(command("results", "again", "--json").json)
    assert figure["macro_recall"] != figure["recall"]
    printed = " ".join(again.out.split())
    assert f"macro_recall: {figure['macro_recall']:.3f} today" in printed
    assert " recall: " not in printed


def test_disagreements_become_labels_that_calibrate_reads(command: Command, stub: Stub, tmp_path: Path) -> None:
    agreeing = completion(lambda call: "yes" if judge(call) == "no" else judge(call), model="", tokens=(100, 10))
    stub.always(agreeing)
    row = {
        "id": "a",
        "conversation": user_says("diet: Eats no meat"),
        "output": {"diet": ["A vegetarian household"]},
    }
    (tmp_path / "t.jsonl").write_text(json.dumps(row) + "\n")
    online = ("extraction", "online", "--judge-model", "gpt-4o", "--source", "jsonl", str(tmp_path / "t.jsonl"))
    command(*online, "--run-id", "r")
    labels = command.folder / "results/r/labels.jsonl"
    assert labels.exists()
    said_of_labels = command("judge", "calibrate", str(labels), "--json")
    assert said_of_labels.code in (0, 2), said_of_labels.err


def test_a_wrong_source_is_an_error_and_leaves_nothing_behind(command: Command, stub: Stub, tmp_path: Path) -> None:
    missing = command("extraction", "online", "--source", "jsonl", "nowhere.jsonl", "--judge-model", "gpt-4o")
    assert missing.code == 2
    assert "nowhere.jsonl" in missing.err
    (tmp_path / "odd.jsonl").write_text('{"id": "a", "said": "hello"}\n')
    odd = command("extraction", "online", "--source", "jsonl", str(tmp_path / "odd.jsonl"), "--judge-model", "gpt-4o")
    assert odd.code == 2
    assert "--conversation-path" in odd.err
    assert command("extraction", "online", "--source", "elsewhere").code == 2
    both = command(
        "extraction", "online", "--source", "otlp", "spans.json", "--project", "p", "--judge-model", "gpt-4o"
    )
    assert (both.code, both.err.split(": ")[1]) == (2, "--project")
    assert command("extraction", "online", "--source", "langsmith", "--judge-model", "gpt-4o").code == 2
    assert not (command.folder / "results").exists()
    assert not stub.calls


def test_since_selects_traces_of_a_file_by_their_time(command: Command, stub: Stub, tmp_path: Path) -> None:
    times = ("2026-11-16T23:30:00", "2026-11-17T00:30:00+01:00", "2026-11-17T09:00:00")
    rows = [{"id": at, "start_time": at, "conversation": user_says(*STATED), "output": {}} for at in times]
    file = tmp_path / "t.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    online = ("extraction", "online", "--judge-model", "gpt-4o", "--source", "jsonl", str(file), "--since")
    assert command(*online, "2026-11-17", "--dry-run", "--json").json["planned"] == 1
    assert command(*online, "2026-11-16T23:30", "--dry-run", "--json").json["planned"] == 3
    assert command(*online, "2027-01-01").code == 2, "no trace is left"
    file.write_text(json.dumps({**rows[0], "start_time": None}) + "\n")
    undated = command(*online, "2026-11-17")
    assert undated.code == 2
    assert 't.jsonl:1: "start_time" is missing' in undated.err
    assert not stub.calls


def test_lists_within_a_text_are_read_and_noted(command: Command, stub: Stub, tmp_path: Path) -> None:
    def reply(call: Call) -> str:
        told = judge(call)
        return told if told == "no" else f"Here:\n```json\n{told}\n```"

    stub.always(completion(reply, model="", tokens=(100, 10)))
    row = {"id": "a", "conversation": user_says(*STATED), "output": {"pricing": ["Costs 40 euros"]}}
    (tmp_path / "t.jsonl").write_text(json.dumps(row) + "\n")
    online = ("extraction", "online", "--judge-model", "gpt-4o", "--source", "jsonl", str(tmp_path / "t.jsonl"))
    said = command(*online, "--json")
    assert said.json["counts"]["scored"] == 1
    scores = figures(said.json)
    assert (scores["precision"], scores["recall"], scores["json_in_text"]) == (1, 0.5, 2)


def test_traces_with_a_conflict_are_counted_as_planned(command: Command, stub: Stub, tmp_path: Path) -> None:
    """The judge finds out which traces have one: two of three. One of them keeps the old fact."""
    old = {"pricing": ["Costs 20 euros"]}
    forget = user_says("pricing: Costs 40 euros", forget=["pricing: Costs 20 euros"])
    rows = [
        {"id": "a", "conversation": forget, "existing_memory": old, "output": {"pricing": ["Costs 40 euros"]}},
        {"id": "b", "conversation": forget, "existing_memory": old, "output": old},
        {"id": "c", "conversation": user_says(*STATED), "output": {}},
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    online = ("extraction", "online", "--judge-model", "gpt-4o", "--source", "jsonl", str(tmp_path / "t.jsonl"))
    (overall,) = (row for row in command(*online, "--json").json["results"] if not row["group"])
    [conflict] = [measure for measure in overall["measures"] if measure["name"] == "conflict_resolution"]
    assert (conflict["value"], conflict["n"], conflict["planned"]) == (0.5, 2, 2)


def test_scores_are_shown_by_day(command: Command, stub: Stub, tmp_path: Path) -> None:
    """Yesterday half of the facts were written, today all of them."""
    half, whole = {"pricing": ["Costs 40 euros"]}, {"pricing": ["Costs 40 euros"], "constraints": ["No subscriptions"]}
    rows = [
        {"id": "a", "start_time": "2026-11-16T23:30:00+00:00", "output": half},
        {"id": "b", "start_time": "2026-11-17T00:30:00+01:00", "output": half},
        {"id": "c", "start_time": "2026-11-17T09:00:00+00:00", "output": whole},
        {"id": "d", "output": whole},
    ]
    said = [{**row, "conversation": user_says(*STATED, f"customer: {row['id']}")} for row in rows]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in said))
    online = ("extraction", "online", "--judge-model", "gpt-4o", "--source", "jsonl", str(tmp_path / "t.jsonl"))
    document = command(*online, "--json").json
    recalls = {
        row["group"]["day"]: measure["value"]
        for row in document["results"]
        for measure in row["measures"]
        if row["group"] and measure["name"] == "recall"
    }
    assert recalls == {"2026-11-16": pytest.approx(1 / 3), "2026-11-17": pytest.approx(2 / 3)}
