"""`memorybench online`: searches of an agent in production, and whether it used what was found."""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.cli.command import Command
from tests.cli.test_online import figures
from tests.cli.test_samples import change_spec
from tests.doubles.stub import Call, Stub, completion
from tests.traces.test_otlp import batch, span, user

DAY = 86_400
PART = re.compile(r"<(answer|response) [0-9a-f]+>\n(.*?)\n</\1", re.DOTALL)


def judge(call: Call) -> str:
    """A memory is used if the reply contains its text."""
    parts = dict(PART.findall(call.json["messages"][-1]["content"]))
    return "yes" if parts["answer"] in parts["response"] else "no"


@pytest.fixture
def stub(stub: Stub) -> Stub:
    stub.always(completion(judge, model="", tokens=(100, 1)))
    return stub


def said(text: str) -> str:
    return json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": text}], "finish_reason": "stop"}])


def search(id: str, parent: str, *texts: str, **more: Any) -> Any:
    records = json.dumps([{"id": text, "content": text} for text in texts])
    named = {"operation_name": "search_memory", "memory_query_text": f"query of {id}", "memory_records": records}
    found = span(id, parent, **named, **more)
    for pair in found["attributes"]:
        pair["key"] = {"gen_ai.memory.query_text": "gen_ai.memory.query.text"}.get(pair["key"], pair["key"])
    return found


def turn(number: int, reply: str, *texts: str, day: int = 0, error: bool = False) -> list[Any]:
    """A turn of an agent: a tool that searches, and a chat that replies, both in the span of the agent."""
    trace, at = f"t{number}", day * DAY + number
    return [
        search("s", "tool", *texts, trace=trace, at=at + 1, error=error),
        span("tool", "agent", trace=trace, at=at + 1, operation_name="execute_tool"),
        span("chat", "agent", trace=trace, at=at + 2, operation_name="chat", output_messages=said(reply)),
        span("agent", trace=trace, at=at, operation_name="invoke_agent", input_messages=json.dumps(user("Hi"))),
    ]


def write_turns(command: Command) -> None:
    """Ten searches of two days, labelled by hand: 9 do not fail, 8 of these find something, of 5 a memory is used."""
    turns = [
        turn(0, "You like tea-0.", "tea-0", "milk-0"),
        turn(1, "You like tea-1 and milk-1.", "tea-1", "milk-1"),
        turn(2, "No idea.", "tea-2", "milk-2"),
        turn(3, "You like tea-3.", "tea-3"),
        turn(4, "No idea."),
        turn(5, "No idea.", error=True),
        turn(6, "You like milk-6.", "tea-6", "milk-6", day=1),
        turn(7, "You like tea-7.", "tea-7", day=1),
        turn(8, "No idea.", "tea-8", day=1),
        turn(9, "No idea.", "tea-9", "milk-9", day=1),
    ]
    lines = [json.dumps(batch(*spans)) for spans in turns]
    (command.folder / "spans.json").write_text("".join(f"{line}\n" for line in lines))


ONLINE = ("online", "spans.json", "--judge-model", "gpt-4o", "--canaries", "off")


def test_figures_equal_a_count_by_hand(command: Command, stub: Stub) -> None:
    write_turns(command)
    document = command(*ONLINE, "--json").json
    measured = figures(document)
    assert measured["succeeded"] == pytest.approx(9 / 10)
    assert measured["found_any"] == pytest.approx(8 / 9)
    assert measured["used"] == pytest.approx(5 / 8)
    assert measured["used_memories"] == pytest.approx(6 / 13)
    assert measured["found"] == pytest.approx(13 / 9)
    assert len(stub.calls) == 13
    assert document["counts"]["scored"] == 10


def test_a_search_that_failed_is_listed_as_a_failure(command: Command, stub: Stub) -> None:
    write_turns(command)
    assert command(*ONLINE, "--run-id", "r", "--junit", "j.xml").code == 0
    assert re.search(r"^.*found.* –$", (command.folder / "results/r/report.md").read_text(encoding="utf-8"), re.M)
    (failure,) = command("results", "r", "--failures", "--json").json
    assert failure["trial"]["case_id"].startswith("t5")
    root = ElementTree.parse(command.folder / "j.xml").getroot()
    assert root.get("failures") == "1"
    (element,) = root.iter("failure")
    assert "failed" in element.get("message", ""), "nothing was expected that the reply lacks"


def test_days_are_shown_and_the_last_is_compared_with_those_before(command: Command, stub: Stub) -> None:
    write_turns(command)
    document = command(*ONLINE, "--run-id", "r", "--json").json
    by_day = {
        row["group"]["day"]: {measure["name"]: measure["value"] for measure in row["measures"]}
        for row in document["results"]
        if "day" in row["group"]
    }
    assert {day: values["used"] for day, values in by_day.items()} == {
        "1970-01-01": pytest.approx(3 / 4),
        "1970-01-02": pytest.approx(2 / 4),
    }
    report = (command.folder / "results" / "r" / "report.md").read_text()
    assert "1970-01-02: used: 0.500 that day, 0.750 before (-0.250)" in report


def test_searches_of_one_trace_are_not_tested_as_if_they_were_independent(command: Command) -> None:
    """Two traces per day: whatever their ten searches found, the days cannot differ significantly."""
    spans = [
        search(f"s{number}", "", *(() if day else ("tea",)), trace=f"t{day}{trace}", at=day * DAY + number)
        for day in (0, 1)
        for trace in (0, 1)
        for number in range(10)
    ]
    (command.folder / "spans.json").write_text(json.dumps(batch(*spans)) + "\n")
    assert command("online", "spans.json", "--run-id", "r").code == 0
    report = (command.folder / "results" / "r" / "report.md").read_text()
    assert "found_any: 0.000 that day, 1.000 before (-1.000): no significant change" in report


def test_a_killed_run_is_measured_against_all_operations_of_its_plan(command: Command, stub: Stub) -> None:
    write_turns(command)
    assert command.killed(*ONLINE, "--run-id", "r", "--concurrency", "1", at=20)
    (whole,) = (row for row in command("results", "r", "--json").json["results"] if not row["group"])
    planned = {measure["name"]: measure["planned"] for measure in whole["measures"]}
    assert {planned[name] for name in ("used", "used_memories", "found_any", "found", "succeeded")} == {10}
    assert planned["recall"] == 0, "searches write nothing"


def test_without_a_judge_only_what_code_knows_is_measured(command: Command, stub: Stub) -> None:
    write_turns(command)
    measured = figures(command("online", "spans.json", "--json").json)
    assert (measured["used"], measured["used_memories"]) == (None, None)
    assert measured["found_any"] == pytest.approx(8 / 9)
    assert stub.calls == []


def test_a_threshold_on_searches_is_not_missed_by_writes(command: Command) -> None:
    stored = json.dumps([{"id": "m", "content": "Tea."}])
    write = span("w", "agent", trace="t1", at=1, operation_name="create_memory", memory_records=stored)
    (command.folder / "both.json").write_text(json.dumps(batch(*turn(1, "Tea.", "Tea."), write)))
    result = command("online", "both.json", "--json", "--threshold", "found_any=0.5")
    assert {one["benchmark"] for one in result.json["results"]} == {"searches", "writes"}
    assert result.code == 0
    assert command("online", "both.json", "--only", "writes", "--threshold", "found_any=0.5").code == 3


def test_spans_without_texts_are_counted_and_not_judged(command: Command, stub: Stub) -> None:
    plain = span("s", operation_name="search_memory")
    plain["attributes"].append({"key": "gen_ai.memory.record.count", "value": {"intValue": "4"}})
    (command.folder / "spans.json").write_text(json.dumps(batch(plain)) + "\n")
    measured = figures(command(*ONLINE, "--json").json)
    assert (measured["found"], measured["found_any"], measured["used"]) == (4, 1, None)
    assert stub.calls == []


@pytest.mark.parametrize(
    ("spans", "reply"),
    [
        ([search("s", "a", "tea"), span("a", output_messages=said("tea, of course"))], True),
        ([search("s", "a", "tea", at=5), span("early", "a", at=1, output_messages=said("tea"))], None),
        ([search("s", "a", "tea", at=5), span("late", "a", at=6, output_messages=said("tea"))], True),
        ([search("s", "", "tea", at=5), span("late", "", at=6, output_messages=said("milk"))], False),
        ([search("s", "s", "tea")], None),
        ([search("s", "a", "tea", at=1), span("a", "b"), span("b", "a")], None),
        ([search("s", "a", "tea", at=1), span("other", "b", trace="t2", at=2, output_messages=said("tea"))], None),
        ([search("s", "a", "tea", at=1), span("a", "r"), span("cousin", "x", at=2, output_messages=said("tea"))], None),
    ],
)
def test_the_reply_is_looked_for_around_the_search(
    command: Command, stub: Stub, spans: list[Any], reply: bool | None
) -> None:
    (command.folder / "spans.json").write_text(json.dumps(batch(*spans)) + "\n")
    assert figures(command(*ONLINE, "--json").json)["used"] == reply


@pytest.mark.slow
def test_a_killed_run_repeats_no_call(command: Command, stub: Stub) -> None:
    write_turns(command)
    assert command.killed(*ONLINE, "--run-id", "r", "--concurrency", "1", "--since", "1970-01-01", at=40)
    resumed = command("online", "--resume", "r", "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.json["counts"]["scored"] == 10
    asked = Counter(json.dumps(call.json, sort_keys=True) for call in stub.calls)
    assert len(asked) == 13
    assert sum(asked.values()) - 13 <= resumed.json["possibly_charged_twice"] <= 1
    again = command(*ONLINE, "--json")
    assert figures(again.json) == figures(resumed.json)
    assert sum(asked.values()) == len(stub.calls), "verdicts are shared by the runs of a folder"


def test_a_run_that_was_killed_while_it_fetched_is_started_again(command: Command, stub: Stub) -> None:
    write_turns(command)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memorybench.traces.spool.os.fsync", lambda _: os.kill(os.getpid(), signal.SIGKILL))
        assert command.killed(*ONLINE, "--run-id", "r", at=999)
    assert list((command.folder / "results" / "r").glob("*.part"))
    assert command("online", "--resume", "r").code == 2, "nothing was recorded"
    started = command(*ONLINE, "--run-id", "r", "--json")
    assert started.code == 0, started.err
    assert started.json["counts"]["scored"] == 10


def test_a_dry_run_leaves_no_folder(command: Command, stub: Stub) -> None:
    write_turns(command)
    assert command(*ONLINE, "--run-id", "r", "--dry-run").code == 0
    assert not (command.folder / "results" / "r").exists()


def test_a_resumed_run_measures_what_it_began_with(command: Command, stub: Stub) -> None:
    """A folder that a receiver writes grows, and a service lists other runs later."""
    write_turns(command)
    assert command.killed(*ONLINE, "--run-id", "r", "--concurrency", "1", at=20)
    with (command.folder / "spans.json").open("a") as file:
        file.write(json.dumps(batch(search("new", "", "tea", trace="new"))) + "\n")
    resumed = command("online", "--resume", "r", "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.json["counts"]["scored"] == 10
    assert command(*ONLINE, "--json").json["counts"]["scored"] == 11


def test_a_run_of_an_earlier_version_with_a_project_beside_a_file_is_resumed(command: Command, stub: Stub) -> None:
    """Earlier versions accepted `--project`, without effect. A new run with both is refused."""
    write_turns(command)
    assert command.killed(*ONLINE, "--run-id", "r", "--concurrency", "1", at=20)
    change_spec(command.folder / "results", lambda spec: spec.update(project="p"))
    resumed = command("online", "--resume", "r", "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.json["counts"]["scored"] == 10


def test_a_resumed_run_whose_operations_changed_is_refused(command: Command, stub: Stub) -> None:
    write_turns(command)
    assert command.killed(*ONLINE, "--run-id", "r", "--concurrency", "1", at=20)
    stored = command.folder / "results" / "r" / "searches.jsonl"
    stored.write_text(stored.read_text().replace("tea-0", "cocoa"))
    said = command("online", "--resume", "r")
    assert said.code == 2
    assert "spans changed" in said.err


def test_the_judge_is_checked_with_canaries(command: Command, stub: Stub) -> None:
    write_turns(command)
    document = command("online", "spans.json", "--judge-model", "gpt-4o", "--canaries", "12", "--json").json
    (check,) = document["judge_checks"]
    assert check["canaries"] == 12
    assert check["specificity"]["agreed"] == check["specificity"]["n"] == 6


@pytest.mark.parametrize(
    "arguments",
    [
        ("online",),
        ("online", "nowhere.json"),
        ("online", "spans.json", "--since", "soon"),
        ("online", "spans.json", "--since", "2020-01-01"),
        ("online", "spans.json", "--canaries", "5"),
        ("online", "spans.json", "--store-is-disposable"),
        ("online", "spans.json", "--source", "langsmith", "--project", "p"),
    ],
)
def test_what_cannot_be_measured_is_refused(command: Command, arguments: tuple[str, ...]) -> None:
    write_turns(command)
    assert command(*arguments).code == 2
    assert not (command.folder / "results").exists()


def test_links_to_nothing_in_a_folder_of_spans_are_left_out(command: Command) -> None:
    write_turns(command)
    (command.folder / "spans").mkdir()
    (command.folder / "spans.json").rename(command.folder / "spans" / "a.json")
    (command.folder / "spans" / "b.json").symlink_to("gone.json")
    (command.folder / "spans" / "c.json").mkdir()
    said = command("online", "spans", "--json")
    assert said.code == 0, said.err
    assert said.json["counts"]["scored"] == 10


def test_a_threshold_must_be_a_share(command: Command) -> None:
    write_turns(command)
    said = command("online", "spans.json", "--threshold", "found_any=80")
    assert said.code == 2
    assert "found_any=0.8" in said.err


def test_different_spans_with_the_same_ids_are_counted_aloud(command: Command) -> None:
    lines = [json.dumps(batch(*turn(0, "Yes.", text))) for text in ("tea", "tea", "milk")]
    (command.folder / "spans.json").write_text("".join(f"{line}\n" for line in lines))
    said = command("online", "spans.json", "--json")
    assert said.json["counts"]["scored"] == 1
    assert said.err.splitlines()[0].startswith("spans.json: 1 span ")
