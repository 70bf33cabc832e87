"""`memorybench online` and `extraction online` on what tracing services export, with the same figures for each."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from xml.etree import ElementTree

import pytest

from memorybench.core.conversation import Turn as Message
from tests.cli.command import Command
from tests.cli.test_online_searches import judge as use_judge
from tests.doubles.stub import Call, Stub, completion, reply
from tests.standins.base import KEY, running
from tests.standins.langsmith import PROJECT, LangSmithServer
from tests.suites.extraction.listing import lister, user_says
from tests.traces.exports import (
    Turn,
    as_csv,
    as_json,
    as_jsonl,
    as_parquet,
    as_reply,
    langfuse,
    langsmith,
    phoenix,
    phoenix_api,
)
from tests.traces.test_otlp import any_value, batch, span

TURNS = (
    Turn(0, found=("tea-0", "milk-0"), reply="You like tea-0."),
    Turn(1, found=("tea-1",), reply="No idea."),
    Turn(2, found=()),
    Turn(3, found=("tea-3",), reply="You like tea-3.", error=True),
    Turn(
        4, said=user_says("drink: Likes tea", "city: Lives in Oslo"), wrote=("drink: Likes tea", "city: Lives in Oslo")
    ),
    Turn(5, said=user_says("pet: Has a dog", "job: Is a nurse"), wrote=("pet: Has a dog",), day=1),
    Turn(6, found=("tea-6",), reply="You like tea-6.", day=1),
)
"""Labelled by hand: 5 searches, of which 1 failed, 3 of 4 found something, and of 2 of 3 a memory is used. Of 4 facts
that the user stated 3 were written, and nothing else."""
NEW_MEMORY = re.compile(r"<new-memory [0-9a-f]+>\n(.*?)\n</new-memory", re.DOTALL)
ONLINE = ("--judge-model", "gpt-4o", "--canaries", "off", "--write-name", "remember")


def decorated(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """The arguments of functions as the decorator of Langfuse records them, and documents of LangChain.js."""
    rows = langfuse(turns)
    for row in rows:
        if row["name"] == "recall":
            args = [json.loads(row["input"])["query"]]
            row["input"] = {"args": args, "kwargs": {"user": "u"}}
            row["output"] = [{"pageContent": one["page_content"]} for one in json.loads(row["output"])]
        elif row["name"] == "agent":
            row["input"] = {"args": [], "kwargs": {"messages": json.loads(row["input"])}}
    return rows


FORMS = {
    "langfuse.jsonl": ("langfuse", langfuse, as_jsonl),
    "langfuse.json": ("langfuse", langfuse, as_json),
    "langfuse.csv": ("langfuse", langfuse, as_csv),
    "langfuse.parquet": ("langfuse", langfuse, as_parquet),
    "langfuse-reply.json": ("langfuse", langfuse, as_reply),
    "decorated.jsonl": ("langfuse", decorated, as_jsonl),
    "phoenix.jsonl": ("phoenix", phoenix, as_jsonl),
    "phoenix.json": ("phoenix", phoenix, as_json),
    "phoenix.csv": ("phoenix", phoenix, as_csv),
    "phoenix.parquet": ("phoenix", phoenix, as_parquet),
    "phoenix-api.json": ("phoenix", phoenix_api, as_reply),
    "langsmith.jsonl": ("langsmith", langsmith, as_jsonl),
}


def judge(call: Call) -> str:
    asked = call.json["messages"][-1]["content"]
    if "yes or no" in asked:
        return use_judge(call) if "<answer" in asked else "no"
    if new := NEW_MEMORY.search(asked):
        memory = json.loads(new[1]) if new[1].startswith("[") else new[1].splitlines()
        return json.dumps({"facts": memory})
    listed = lister([Message(role="user", content=asked)])
    assert isinstance(listed, str)
    return listed


@pytest.fixture
def stub(stub: Stub) -> Stub:
    stub.always(completion(judge, model="", tokens=(100, 1)))
    return stub


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LangSmithServer]:
    with running(LangSmithServer()) as server:
        monkeypatch.setenv("LANGSMITH_API_KEY", KEY)
        monkeypatch.setenv("LANGSMITH_ENDPOINT", server.url)
        for run in langsmith(TURNS):
            server.add(**{**run, "start_time": f"{run['start_time']}+00:00"})
        yield server


@pytest.fixture
def scores(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    """Langfuse, as far as it receives scores."""
    with Stub() as stub:
        stub.always(reply({"id": "x"}))
        monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk-lf-test")
        monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-lf-secret-of-the-test")
        monkeypatch.setenv("LANGFUSE_HOST", stub.url)
        yield stub


def test_checks_of_the_judge_name_what_they_check(command: Command, stub: Stub) -> None:
    """By default a tenth of the judge calls are canaries: one for these searches, none for the writes."""
    (command.folder / "spans.jsonl").write_bytes(as_jsonl(langfuse(TURNS)))
    source = ("--source", "langfuse", "spans.jsonl", "--write-name", "remember")
    said = command("online", *source, "--judge-model", "gpt-4o", "--run-id", "r", "--json")
    notes = [note["text"] for note in said.json["notes"] if note["kind"] == "judge"]
    assert [re.sub(r"(: |,).*", "", note) for note in notes] == [
        "judge gpt-4o of searches on canaries",
        "judge gpt-4o of writes",
    ]
    assert "not checked" in notes[1]
    assert command("bundle", "r", "--output", "r.mbz").code == 0
    claims = command("verify", "r.mbz", "--json").json["claims"]
    assert [claim for claim in claims if claim["level"] == "contradicted"] == []


def figures(document: dict[str, Any]) -> dict[str, dict[str, float | None]]:
    """The measures of each kind of operation."""
    return {
        row["benchmark"]: {measure["name"]: measure["value"] for measure in row["measures"]}
        for row in document["results"]
        if not row["group"]
    }


def assert_counted_by_hand(document: dict[str, Any], found_any: float = 3 / 4) -> None:
    assert document["counts"]["scored"] == 7, document["counts"]
    found = figures(document)
    searches, writes = found["searches"], found["writes"]
    assert searches["succeeded"] == pytest.approx(4 / 5)
    assert searches["found_any"] == pytest.approx(found_any)
    assert searches["used"] == pytest.approx(2 / 3)
    assert searches["used_memories"] == pytest.approx(2 / 4)
    assert writes["succeeded"] == 1
    assert writes["precision"] == 1
    assert writes["recall"] == pytest.approx(3 / 4)
    assert writes["written"] == pytest.approx(3 / 2)


@pytest.mark.parametrize("name", FORMS)
def test_every_export_has_the_figures_that_were_counted_by_hand(command: Command, stub: Stub, name: str) -> None:
    source, rows, write = FORMS[name]
    (command.folder / name).write_bytes(write(rows(TURNS)))
    said = command("online", name, *ONLINE, "--source", source, "--json")
    assert said.code == 0, said.err
    # flat attributes have none for an empty list: whether something was found is then unknown
    assert_counted_by_hand(said.json, 1.0 if name == "phoenix-api.json" else 3 / 4)


def test_a_folder_of_an_export_is_read_and_its_other_files_are_not_spans(command: Command, stub: Stub) -> None:
    """The blob storage export of Langfuse has a folder for each table."""
    rows = langfuse(TURNS)
    trace = {"id": TURNS[0].id("trace"), "timestamp": "2026-03-01 12:00:00.000000", "name": "agent"}
    score = {"id": "s", "trace_id": TURNS[0].id("trace"), "name": "x", "value": 1, "timestamp": "2026-03-01 12:00:00"}
    for name, table in {"observations": rows, "traces": [trace], "scores": [score]}.items():
        (command.folder / "export" / name).mkdir(parents=True)
        (command.folder / "export" / name / "2026-03-01.jsonl").write_bytes(as_jsonl(table))
    (command.folder / "export" / "observations" / "again.jsonl").write_bytes(as_jsonl(rows))
    said = command("online", "export", *ONLINE, "--source", "langfuse", "--json")
    assert said.code == 0, said.err
    assert_counted_by_hand(said.json)


def test_langsmith_runs_are_fetched_once(command: Command, stub: Stub, server: LangSmithServer) -> None:
    arguments = ("online", *ONLINE, "--source", "langsmith", "--project", PROJECT, "--run-id", "r")
    assert command.killed(*arguments, "--concurrency", "1", at=30)
    queries = sum("runs/query" in call.path for call in server.stub.calls)
    resumed = command("online", "--resume", "r", "--json")
    assert resumed.code == 0, resumed.err
    assert_counted_by_hand(resumed.json)
    assert sum("runs/query" in call.path for call in server.stub.calls) == queries
    assert not list((command.folder / "results" / "r").glob("*.part"))


@pytest.mark.slow
def test_feedback_goes_back_to_langsmith_once(command: Command, stub: Stub, server: LangSmithServer) -> None:
    arguments = ("online", *ONLINE, "--source", "langsmith", "--project", PROJECT, "--feedback")
    assert command.killed(*arguments, "--run-id", "r", "--concurrency", "1", at=45)
    resumed = command("online", "--resume", "r", "--json")
    assert resumed.code == 0, resumed.err
    posted = Counter((one["run_id"], one["key"], one["score"]) for one in server.feedback.values())
    expected = [
        (TURNS[0].id("recall"), "used", 1),
        (TURNS[1].id("recall"), "used", 0),
        (TURNS[6].id("recall"), "used", 1),
    ]
    expected += [(TURNS[4].id("agent"), name, 1) for name in ("precision", "recall", "f1")]
    expected += [
        (TURNS[5].id("agent"), name, value) for name, value in {"precision": 1, "recall": 0.5, "f1": 2 / 3}.items()
    ]
    assert posted == Counter(expected)
    assert len(server.repeated) <= 1, "at most the one under way when it died, under the same id"
    before = len(server.stub.calls)
    assert command(*arguments, "--json").code == 0
    assert not any(call.path.endswith("/feedback") for call in server.stub.calls[before:])


def test_feedback_goes_to_langfuse_once(command: Command, stub: Stub, scores: Stub) -> None:
    (command.folder / "rows.jsonl").write_bytes(as_jsonl(langfuse(TURNS)))
    arguments = ("online", "rows.jsonl", *ONLINE, "--source", "langfuse", "--feedback")
    assert command.killed(*arguments, "--run-id", "r", "--concurrency", "1", at=45)
    assert command("online", "--resume", "r", "--json").code == 0
    assert command(*arguments, "--json").code == 0
    posted = Counter(call.json["id"] for call in scores.calls)
    assert len(posted) == 3 + 2 * 3
    assert sum(posted.values()) - len(posted) <= 1
    call = next(call for call in scores.calls if call.json["observationId"] == TURNS[0].id("recall"))
    assert (call.method, call.path) == ("POST", "/api/public/scores")
    assert call.headers["authorization"] == f"Basic {base64.b64encode(b'pk-lf-test:sk-lf-secret-of-the-test').decode()}"
    assert (call.json["traceId"], call.json["name"], call.json["value"]) == (TURNS[0].id("trace"), "used", 1)
    stored = b"".join(file.read_bytes() for file in command.folder.rglob("*") if file.is_file())
    assert b"sk-lf-secret-of-the-test" not in stored


def test_without_the_flag_nothing_is_sent(command: Command, stub: Stub, scores: Stub) -> None:
    (command.folder / "rows.jsonl").write_bytes(as_jsonl(langfuse(TURNS)))
    assert command("online", "rows.jsonl", *ONLINE, "--source", "langfuse").code == 0
    assert scores.calls == []


@pytest.mark.slow
def test_extractions_are_judged_from_every_export(command: Command, stub: Stub) -> None:
    flags = ("--judge-model", "gpt-4o", "--canaries", "off", "--write-name", "remember", "--json")
    for name, (source, rows, write) in FORMS.items():
        if source == "langsmith":
            continue
        (command.folder / name).write_bytes(write(rows(TURNS)))
        said = command("extraction", "online", "--source", source, name, *flags)
        assert said.code == 0, said.err
        (measured,) = figures(said.json).values()
        assert (measured["precision"], measured["recall"]) == (1, pytest.approx(3 / 4))


def test_only_one_kind_is_measured_if_asked(command: Command, stub: Stub) -> None:
    (command.folder / "rows.jsonl").write_bytes(as_jsonl(langfuse(TURNS)))
    for kind in ("searches", "writes"):
        said = command("online", "rows.jsonl", *ONLINE, "--source", "langfuse", "--only", kind, "--json")
        assert set(figures(said.json)) == {kind}


def test_named_spans_are_searches_and_other_retrievers_are_not(command: Command) -> None:
    """A retriever may search documents that are not a memory."""
    (command.folder / "rows.jsonl").write_bytes(as_jsonl(langfuse(TURNS)))
    flags = ("--source", "langfuse", "--only", "searches")
    assert command("online", "rows.jsonl", *flags, "--search-name", "recall", "--json").json["counts"]["scored"] == 5
    assert command("online", "rows.jsonl", *flags, "--search-name", "other").code == 2


def test_openinference_attributes_are_read_from_otlp(command: Command, stub: Stub) -> None:
    spans = []
    for row in phoenix_api(TURNS):
        attributes = {**row["attributes"], "openinference.span.kind": row["span_kind"]}
        spans.append(
            {
                "traceId": row["context"]["trace_id"],
                "spanId": row["context"]["span_id"],
                "parentSpanId": row["parent_id"] or "",
                "name": row["name"],
                "startTimeUnixNano": str(int(datetime.fromisoformat(row["start_time"]).timestamp()) * 10**9),
                "status": {"code": 2} if row["status_code"] == "ERROR" else {},
                "attributes": [{"key": key, "value": any_value(value)} for key, value in attributes.items()],
            }
        )
    (command.folder / "spans.json").write_text(json.dumps(batch(*spans)) + "\n")
    said = command("online", "spans.json", *ONLINE, "--json")
    assert said.code == 0, said.err
    assert_counted_by_hand(said.json, 1.0)


def test_tools_with_a_name_are_searches_and_writes_in_otlp(command: Command, stub: Stub) -> None:
    """Spans of tools follow the conventions, but have no operation on a memory."""
    arguments, found = json.dumps({"query": "tea"}), json.dumps({"results": [{"memory": "tea-0"}]})
    spans = [
        span("s", "a", at=1, operation_name="execute_tool", tool_name="recall"),
        span(
            "c",
            "a",
            at=2,
            operation_name="chat",
            output_messages=json.dumps([{"role": "assistant", "content": "tea-0"}]),
        ),
        span("a"),
    ]
    for key, value in {"arguments": arguments, "result": found}.items():
        spans[0]["attributes"].append({"key": f"gen_ai.tool.call.{key}", "value": any_value(value)})
    (command.folder / "spans.json").write_text(json.dumps(batch(*spans)) + "\n")
    said = command(
        "online", "spans.json", "--judge-model", "gpt-4o", "--canaries", "off", "--search-name", "recall", "--json"
    )
    assert said.code == 0, said.err
    assert figures(said.json)["searches"]["used"] == 1


def test_days_are_compared_for_searches_and_writes(command: Command, stub: Stub) -> None:
    (command.folder / "rows.jsonl").write_bytes(as_jsonl(langfuse(TURNS)))
    said = command("online", "rows.jsonl", *ONLINE, "--source", "langfuse", "--run-id", "r", "--json")
    by_day = {
        (row["benchmark"], row["group"]["day"]): {one["name"]: one["value"] for one in row["measures"]}
        for row in said.json["results"]
        if "day" in row["group"]
    }
    assert by_day["writes", "2026-03-01"]["recall"] == 1
    assert by_day["writes", "2026-03-02"]["recall"] == pytest.approx(1 / 2)
    assert by_day["searches", "2026-03-02"]["used"] == 1
    report = (command.folder / "results" / "r" / "report.md").read_text()
    assert "2026-03-02, writes: macro_recall: 0.500 that day, 1.000 before" in report


def test_runs_are_compared_by_shares_of_pooled_counts(command: Command, stub: Stub) -> None:
    (command.folder / "rows.jsonl").write_bytes(as_jsonl(langfuse(TURNS)))
    for run in ("first", "second"):
        assert command("online", "rows.jsonl", *ONLINE, "--source", "langfuse", "--run-id", run).code == 0
    said = command("compare", "first", "second", "--measure", "recall", "--json")
    (pair,) = (pair for pair in said.json["comparisons"] if pair["benchmark"] == "writes")
    assert (pair["comparison"]["n"], pair["comparison"]["p"]) == (2, 1)


def test_a_conversation_of_which_a_write_failed_is_a_failure_even_if_the_rest_is_right(
    command: Command, stub: Stub
) -> None:
    asked = json.dumps([{"role": "user", "content": user_says("drink: Likes tea")}])
    stored = json.dumps([{"content": "drink: Likes tea"}])
    spans = [
        span("agent", operation_name="invoke_agent", input_messages=asked),
        span("w", "agent", at=1, operation_name="create_memory", memory_records=stored),
        span("e", "agent", at=2, operation_name="create_memory", error=True),
    ]
    (command.folder / "spans.json").write_text(json.dumps(batch(*spans)) + "\n")
    said = command("online", "spans.json", *ONLINE, "--run-id", "r", "--junit", "j.xml", "--json")
    measured = figures(said.json)["writes"]
    assert (measured["succeeded"], measured["precision"], measured["recall"]) == (0, 1, 1)
    (failure,) = command("results", "r", "--failures", "--json").json
    assert failure["trial"]["benchmark"] == "writes"
    (element,) = ElementTree.parse(command.folder / "j.xml").getroot().iter("failure")
    assert "failed" in element.get("message", ""), "what was written is right"


def test_writes_that_cannot_be_judged_are_counted_and_listed(command: Command, stub: Stub) -> None:
    """A write without a conversation, one that failed, and a delete."""
    spans = [
        span("w", operation_name="create_memory", memory_records=json.dumps([{"content": "x"}])),
        span("e", trace="t2", operation_name="update_memory", error=True),
        span("d", trace="t3", operation_name="delete_memory"),
    ]
    (command.folder / "spans.json").write_text(json.dumps(batch(*spans)) + "\n")
    said = command("online", "spans.json", "--judge-model", "gpt-4o", "--canaries", "off", "--run-id", "r", "--json")
    assert said.code == 0, said.err
    measured = figures(said.json)["writes"]
    assert (measured["succeeded"], measured["recall"]) == (pytest.approx(2 / 3), None)
    assert stub.calls == []
    assert "not judged" in (command.folder / "results" / "r" / "report.md").read_text()


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("[1]", ("--source", "langfuse")),
        ('{"a": 1}\n', ("--source", "phoenix")),
        ('{"id": "x", "start_time": "soon"}\n', ("--source", "langsmith")),
        ('{"id": "x", "trace_id": "t", "start_time": true}\n', ("--source", "langfuse")),
        ('{"id": "x", "trace_id": "t", "start_time": 1}\n', ("--source", "langfuse")),
        ("[", ("--source", "langfuse")),
        (
            '{"id": "x", "trace_id": "t", "start_time": 1, "name": "search_memory"}\n',
            ("--source", "phoenix", "--feedback"),
        ),
        (
            '{"id": "x", "trace_id": "t", "start_time": 1, "name": "search_memory"}\n',
            ("--source", "langfuse", "--feedback"),
        ),
    ],
)
def test_unusable_exports_are_refused(command: Command, text: str, flags: tuple[str, ...]) -> None:
    (command.folder / "rows.json").write_text(text)
    said = command("online", "rows.json", *flags)
    assert said.code == 2
    assert not (command.folder / "results").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [("online", "rows.jsonl", "--source", "langfuse"), ("extraction", "online", "--source", "langfuse", "rows.jsonl")],
)
def test_a_bundle_of_the_run_is_verified(command: Command, stub: Stub, words: tuple[str, ...]) -> None:
    (command.folder / "rows.jsonl").write_bytes(as_jsonl(langfuse(TURNS)))
    assert command(*words, *ONLINE, "--run-id", "r").code == 0
    case = command("results", "r", "--json").json
    assert case["counts"]["failed"] == 0
    assert command("bundle", "r", "--output", "r.mbz").code == 0
    said = command("verify", "r.mbz", "--json")
    assert not [claim for claim in said.json["claims"] if claim["level"] == "contradicted"]
    assert said.code == 0, said.err


def test_extractions_are_not_judged_by_a_model_called_none(
    command: Command, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    (command.folder / "rows.jsonl").write_bytes(as_jsonl(langfuse(TURNS)))
    monkeypatch.setenv("MEMORYBENCH_JUDGE", "none")
    said = command("extraction", "online", "--source", "langfuse", "rows.jsonl", "--write-name", "remember")
    assert said.code == 2
    assert "--judge-model" in said.err
    assert not stub.calls
