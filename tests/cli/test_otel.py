"""`--otel URL`: runs, trials and steps as spans of OpenTelemetry."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import error_attributes, server_attributes

from memorybench.models.presets import PRESETS
from memorybench.telemetry import sending
from memorybench.telemetry.conventions import PROVIDER_NAMES
from tests.cli.command import Command, measured
from tests.cli.test_answers import TOKENS, says
from tests.cli.test_audit import SAMPLE
from tests.cli.test_extraction import KNOWN
from tests.cli.test_online import figures, judge
from tests.cli.test_sentinels import EVAL, SENTINEL, hits, serve, write_provider
from tests.doubles.stub import Call, Stub, completion, drip
from tests.standins.otlp import Collector, walk
from tests.suites.extraction.listing import user_says

CLIENT, INTERNAL = 3, 1
"""Kinds of spans."""
MEMORY_ATTRIBUTES = {
    f"gen_ai.memory.{name}" for name in ("store.id", "record.id", "record.count", "query.text", "records")
}
MEMORY_OPERATIONS = {"create_memory", "update_memory", "upsert_memory", "delete_memory", "search_memory"}
"""From open-telemetry/semantic-conventions-genai#140; the Python package of the conventions does not have them yet."""
BM25 = ("eval", "--providers", "bm25", "--end", "4")
JUDGED = (*BM25, "--answering-model", "gpt-4o-mini", "--judge-model", "gpt-4o", "--canaries", "off")


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector
        assert collector.refused == []


@pytest.fixture
def stub(stub: Stub) -> Stub:
    stub.always(completion(says, model="gpt-4o-mini-2024", tokens=TOKENS))
    return stub


def test_runs_trials_and_steps_are_nested_spans(command: Command, collector: Collector) -> None:
    assert command(*BM25, "--otel", collector.url).code == 0
    tree = collector.tree()
    assert tree[""] == ["run bench"]
    assert tree["run bench"] == ["trial bm25"] * 4
    assert Counter(tree["trial bm25"]) == {"upsert_memory": 1, "wait_until_searchable": 1, "search_memory": 4}
    assert {span.kind for span in collector.named("search_memory")} == {CLIENT}
    assert {span.kind for span in collector.named("wait_until_searchable")} == {INTERNAL}
    assert len({span.trace for span in collector.spans}) == 1
    (run,) = collector.named("run bench")
    assert all(run.start <= span.start and span.end <= run.end for span in collector.spans)
    assert (run.attributes["memorybench.run.status"], run.attributes["memorybench.trials.scored"]) == ("complete", 4)


def test_scores_are_evaluation_events_of_the_trial(command: Command, collector: Collector) -> None:
    report = command(*BM25, "--otel", collector.url, "--json").json
    values = [
        attributes["gen_ai.evaluation.score.value"]
        for span in collector.named("trial bm25")
        for name, attributes in span.events
        if (name, attributes["gen_ai.evaluation.name"]) == ("gen_ai.evaluation.result", "recall@5")
    ]
    assert len(values) == 4
    assert sum(values) / 4 == pytest.approx(figures(report)["recall@5"])


def test_calls_of_a_model_have_its_name_and_tokens(command: Command, collector: Collector, stub: Stub) -> None:
    assert command(*JUDGED, "--otel", collector.url).code == 0
    answers, verdicts = collector.named("chat gpt-4o-mini"), collector.named("chat gpt-4o")
    assert (len(answers), len(verdicts)) == (4, 4)
    for span in (*answers, *verdicts):
        assert span.attributes["gen_ai.operation.name"] == "chat"
        assert span.attributes["gen_ai.provider.name"] == "openai"
        usage = tuple(span.attributes[f"gen_ai.usage.{kind}_tokens"] for kind in ("input", "output"))
        assert usage == TOKENS
        assert span.attributes["server.address"] == "127.0.0.1"
    assert {span.attributes["gen_ai.response.model"] for span in answers} == {"gpt-4o-mini-2024"}
    assert {tuple(span.attributes["gen_ai.response.finish_reasons"]) for span in answers} == {("stop",)}


def test_names_are_those_of_the_published_conventions(command: Command, collector: Collector, stub: Stub) -> None:
    assert command(*JUDGED, "--otel", collector.url, "--otel-content").code == 0
    known = {
        value
        for module in (gen_ai_attributes, error_attributes, server_attributes)
        for name, value in vars(module).items()
        if name.isupper()
    }
    used = {name for name, _ in walk(collector.spans) if not name.startswith("memorybench.")}
    assert used <= known | MEMORY_ATTRIBUTES
    assert len(used) > 15
    operations = {value for name, value in walk(collector.spans) if name == "gen_ai.operation.name"}
    assert operations == {"chat", "upsert_memory", "search_memory"}
    assert operations <= {one.value for one in gen_ai_attributes.GenAiOperationNameValues} | MEMORY_OPERATIONS


def test_texts_are_sent_only_with_consent(command: Command, collector: Collector, stub: Stub) -> None:
    assert command(*JUDGED, "--otel", collector.url, "--otel-content").code == 0
    (search, *_) = collector.named("search_memory")
    records = json.loads(search.attributes["gen_ai.memory.records"])
    assert len(records) == search.attributes["gen_ai.memory.record.count"]
    assert all(record["content"] and record["id"] for record in records)
    (answer, *_) = collector.named("chat gpt-4o-mini")
    (sent,) = json.loads(answer.attributes["gen_ai.input.messages"])
    assert search.attributes["gen_ai.memory.query.text"] in sent["parts"][0]["content"]
    (reply,) = json.loads(answer.attributes["gen_ai.output.messages"])
    assert reply == {
        "role": "assistant",
        "parts": [{"type": "text", "content": "It was forty, in the kitchen."}],
        "finish_reason": "stop",
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        JUDGED,
        ("audit", str(SAMPLE), "--limit", "8", "--model", "gpt-4o-mini"),
        ("extraction", "run", "--extractor", f"{KNOWN}:perfect", "--allow-code", "--limit", "12"),
        ("hygiene", "run", "memory-skip-local", "--no-mutants"),
    ],
    ids=lambda words: words[0],
)
def test_every_suite_sends_spans_without_texts(
    command: Command, collector: Collector, stub: Stub, arguments: tuple[str, ...]
) -> None:
    said = command(*arguments, "--otel", collector.url, "--output", "results")
    assert said.code in (0, 1, 3), said.err
    assert "--otel" not in said.err
    planned = collector.spans[-1].attributes["memorybench.run.planned"]
    assert sum(span.name.startswith("trial ") for span in collector.spans) == planned > 0
    sent = b"\n".join(collector.bodies).decode("utf-8", "replace")
    texts = recorded_texts(command.folder / "results" / "results.db")
    checks = {value for name, value in walk(collector.spans) if name == "gen_ai.evaluation.name"}
    assert len(texts) > 20
    assert [text for text in texts if text in sent and not any(text in name for name in checks)] == []


def recorded_texts(journal: Path) -> set[str]:
    """The texts of three words or more in all cases, outcomes and results of steps."""
    found: set[str] = set()

    def collect(value: Any) -> None:
        if isinstance(value, str) and len(value.split()) > 2:
            found.add(value)
        for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            collect(one)

    with sqlite3.connect(journal) as rows:
        for sql in ("SELECT body FROM cases", "SELECT body FROM outcomes", "SELECT result FROM steps"):
            for (text,) in rows.execute(sql):
                collect(json.loads(text))
    rows.close()
    return found


@pytest.mark.slow
def test_the_sdk_in_memory_exporter_sees_the_same_spans(
    command: Command, monkeypatch: pytest.MonkeyPatch, collector: Collector
) -> None:
    memory = InMemorySpanExporter()
    module = "opentelemetry.exporter.otlp.proto.http.trace_exporter.OTLPSpanExporter"
    command(*BM25, "--otel", collector.url, "--run-id", "a")
    monkeypatch.setattr(module, lambda *arguments, **options: memory)
    command(*BM25, "--otel", collector.url, "--run-id", "b")
    assert Counter(span.name for span in memory.get_finished_spans()) == Counter(one.name for one in collector.spans)


@pytest.mark.slow
def test_a_resumed_run_sends_no_step_again(command: Command, collector: Collector) -> None:
    arguments = ("eval", "--providers", "bm25", "none", "--end", "8", "--concurrency", "1")
    assert command.killed(*arguments, "--run-id", "r", "--otel", collector.url, at=12)
    with sqlite3.connect(command.folder / "results" / "results.db") as rows:
        names = [name for (name,) in rows.execute("SELECT name FROM steps")]
        scored = rows.execute("SELECT count(*) FROM outcomes").fetchone()[0]
    rows.close()
    assert names.count("search") >= 2
    collector.spans.clear()
    resumed = command("eval", "--resume", "r", "--otel", collector.url)
    assert resumed.code == 0, resumed.err
    assert len(collector.named("search_memory")) == 8 - names.count("search")
    assert len(collector.named("trial bm25") + collector.named("trial none")) == 16 - scored
    assert collector.named("run bench")[0].attributes["memorybench.run.resumed"] is True
    collector.spans.clear()
    assert command("eval", "--resume", "r", "--otel", collector.url).code == 0
    assert collector.spans == []


def test_a_failed_step_is_an_error_without_its_message(command: Command, collector: Collector, stub: Stub) -> None:
    stub.always(after_status(400, "the fridge failed"), path="/v1/chat/completions")
    assert command(*JUDGED, "--otel", collector.url).code == 1
    failed = collector.named("chat gpt-4o-mini")
    assert len(failed) == 4
    assert all(span.is_error and span.attributes["error.type"] for span in failed)
    assert all(span.is_error for span in collector.named("trial bm25"))
    assert b"the fridge failed" not in b"".join(collector.bodies)


@pytest.mark.slow
def test_a_text_in_place_of_a_name_is_not_sent(command: Command, collector: Collector, stub: Stub) -> None:
    """A server may return anything as its model and as the reason why it stopped."""
    for model, finish in (("gpt says the fridge", "stop"), ("gpt-4o", "the fridge")):
        stub.always(completion("forty", model=model, finish=finish), path="/v1/chat/completions")
        command(*JUDGED, "--judge-model", "none", "--otel", collector.url)
    assert b"the fridge" not in b"".join(collector.bodies)
    sent = dict(walk(collector.spans))
    assert sent["gen_ai.response.model"] == "gpt-4o"
    assert sent["gen_ai.response.finish_reasons"] == ["stop"]


def after_status(status: int, text: str) -> Any:
    async def refuse(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        return web.Response(status=status, text=text)

    return refuse


@pytest.mark.slow
@pytest.mark.parametrize("secret", [SENTINEL, '"Zq7&<mP2x>'])
def test_secrets_are_not_sent(
    command: Command, collector: Collector, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    header = "Basic sentinel-4711-of-the-collector"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization={header}")
    monkeypatch.setenv("ACME_AUTH", secret)
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", f"deployment.key={secret},team=memory")
    with Stub() as memory:
        serve(memory, secret)
        write_provider(command, memory, "auth: {type: none}", "auth: {type: bearer, envVar: ACME_AUTH}")
        said = command(*EVAL, "--otel", collector.url, "--otel-content", "--run-id", "sentinel-4711-of-the-collector")
    assert any(span.is_error for span in collector.spans)
    assert "gen_ai.memory.records" in dict(walk(collector.spans))
    for body in collector.bodies:
        text = body.decode("utf-8", "replace")
        assert hits(text, secret) == []
        assert "sentinel-4711" not in text
        assert "deployment.key" in text
    assert "sentinel-4711" not in said.out + said.err
    assert {call.headers["authorization"] for call in collector.stub.calls} == {header}


@pytest.mark.parametrize("headers", ["Authorization: Bearer hidden-4711", "authorization=Bearer hidden-4711 \u00e9"])
def test_headers_that_cannot_be_read_are_not_printed(
    command: Command,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    headers: str,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", headers)
    said = command(*BM25, "--otel", collector.url)
    assert said.code == 0
    assert "hidden-4711" not in said.out + said.err + caplog.text


def test_a_limit_that_is_no_number_is_refused_before_the_run(
    command: Command, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "many")
    said = command(*BM25, "--otel", collector.url)
    assert said.code == 2
    assert "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT" in said.err
    assert not (command.folder / "results").exists()


def test_the_environment_alone_sends_nothing(
    command: Command, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    assert command(*BM25).code == 0
    assert collector.stub.calls == []


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def warnings_of(err: str) -> list[str]:
    return [line for line in err.splitlines() if line.startswith("memorybench: --otel: ")]


@pytest.mark.slow
def test_a_collector_that_is_down_costs_one_warning(command: Command) -> None:
    without = command(*BM25, "--output", "a", "--json")
    said = command(*BM25, "--output", "b", "--json", "--otel", f"http://127.0.0.1:{free_port()}")
    assert said.code == 0
    assert measured(said.json) == measured(without.json)
    (warning,) = warnings_of(said.err)
    assert "11 of 11 spans" in warning
    assert "no connection" in warning


@pytest.mark.parametrize("status", [400, 404, 307, 401])
def test_a_collector_that_refuses_spans_is_reported(command: Command, status: int) -> None:
    with Stub() as stub:
        stub.always(after_status(status, "no"))
        said = command(*BM25, "--otel", stub.url)
    assert said.code == 0
    (warning,) = warnings_of(said.err)
    assert "11 of 11 spans" in warning
    assert f"HTTP status {status}" in warning


PAGE = "<!doctype html><title>Sign in</title>"


@pytest.mark.parametrize(
    ("body", "content_type", "lost"),
    [
        (PAGE, "text/html", 11),
        (PAGE, "application/octet-stream", 11),
        ("Sign in", "text/html", 11),
        ("", "text/html", 0),
        ("", "application/x-protobuf", 0),
        ("{}", "application/json", 0),
        ("OK", "text/plain", 0),
        (f"\n<\x12:{'a' * 58}", "application/x-protobuf", 0),  # a message of 60 bytes
    ],
)
def test_a_page_is_not_a_reply_of_a_collector(command: Command, body: str, content_type: str, lost: int) -> None:
    async def reply(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        return web.Response(body=body.encode(), content_type=content_type)

    with Stub() as stub:
        stub.always(reply)
        said = command(*BM25, "--otel", stub.url)
    assert said.code == 0
    assert [f"{lost} of 11 spans" in warning for warning in warnings_of(said.err)] == [True] * bool(lost)


def test_a_collector_that_hangs_is_left(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "_TIMEOUT", 0.1)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        said = command(*BM25, "--otel", f"http://127.0.0.1:{deaf.getsockname()[1]}")
    assert said.code == 0
    assert ["timed out" in line for line in warnings_of(said.err)] == [True]


def test_a_reply_that_does_not_end_is_left(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "_TIMEOUT", 0.1)
    with Stub() as stub:
        stub.always(drip())
        said = command(*BM25, "--otel", stub.url)
    assert said.code == 0
    assert ["timed out" in line for line in warnings_of(said.err)] == [True]


@pytest.mark.slow
def test_headers_that_do_not_end_are_left(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "_LAST_SECONDS", 0.1)
    with Stub() as stub:
        stub.always(endless_headers)
        said = command(*BM25, "--otel", stub.url)
    assert said.code == 0
    assert ["timed out" in line for line in warnings_of(said.err)] == [True]


async def endless_headers(request: web.BaseRequest, call: Call) -> web.StreamResponse:
    transport = request.transport
    assert isinstance(transport, asyncio.Transport)
    transport.write(b"HTTP/1.1 200 OK\r\n")
    while not transport.is_closing():
        transport.write(b"X-More: yes\r\n")
        await asyncio.sleep(2)  # less than the time for a batch; http.client reads at most 100 headers
    return web.Response()


def test_a_long_reply_is_not_read_to_its_end(command: Command) -> None:
    written = 0

    async def flood(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        nonlocal written
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):
            for _ in range(200):
                await response.write(bytes(2**20))
                written += 1
        return response

    with Stub() as stub:
        stub.always(flood)
        said = command(*BM25, "--otel", stub.url)
    assert (said.code, warnings_of(said.err)) == (0, [])
    assert 0 < written < 200


def test_spans_that_the_collector_rejects_are_counted(command: Command, collector: Collector) -> None:
    collector.rejected = 3
    said = command(*BM25, "--otel", collector.url)
    assert said.code == 0
    (warning,) = warnings_of(said.err)
    assert " of 11 spans" in warning
    assert "rejected" in warning


@pytest.mark.parametrize(
    ("flags", "flag"),
    [
        (("--otel", "ftp://localhost"), "--otel"),
        (("--otel", "localhost:4318"), "--otel"),
        (("--otel", "https://me:hidden-4711@collector.example"), "--otel"),
        (("--otel", "https://collector.example/?key=hidden-4711"), "--otel"),
        (("--otel", "http://169.254.169.254"), "--otel"),
        (("--otel", "http://collector.example", "--otel-content"), "--otel"),
        (("--otel-content",), "--otel-content"),
    ],
)
def test_an_unusable_address_is_refused_before_the_run(command: Command, flags: tuple[str, ...], flag: str) -> None:
    said = command(*BM25, *flags)
    assert (said.code, said.err.split(":")[1].strip()) == (2, flag)
    assert "hidden-4711" not in said.out + said.err
    assert not (command.folder / "results").exists()


@pytest.mark.parametrize("path", ["", "/", "/v1/traces", "/api/public/otel/"])
def test_the_path_for_spans_is_added_once(path: str) -> None:
    expected = "/api/public/otel/v1/traces" if "public" in path else "/v1/traces"
    assert sending.endpoint_of(f"http://localhost:4318{path}", with_content=False) == f"http://localhost:4318{expected}"


def test_every_server_of_models_has_a_name_for_its_provider() -> None:
    assert PROVIDER_NAMES.keys() == PRESETS.keys()


def test_a_missing_extra_is_named(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    said = command(*BM25, "--otel", "http://localhost:4318")
    assert said.code == 2
    assert "memorybench[otel]" in said.err


@pytest.mark.slow
def test_an_exported_extraction_is_read_back_with_the_same_figures(
    command: Command, collector: Collector, stub: Stub
) -> None:
    """The same extractions, judged from the exported spans and from a file that the journal's steps were written to."""
    stub.always(completion(judge, model="", tokens=TOKENS))
    cases = [
        {
            "id": f"c{number}",
            "existing_memory": {"region": ["Norway"]},
            "conversation": user_says("pricing: Costs 40 euros", f"customer: Number {number}"),
            "expected_output": {"region": ["Norway"], "pricing": ["Costs 40 euros"], "customer": [f"Number {number}"]},
            "expected_facts": ["pricing: Costs 40 euros", f"customer: Number {number}"],
        }
        for number in range(12)
    ]
    (command.folder / "cases.json").write_text(json.dumps(cases))
    (command.folder / "half.py").write_text(
        "def extract(existing_memory, messages):\n    return {**existing_memory, 'pricing': ['Costs 40 euros']}\n"
    )
    extract = ("extraction", "run", "cases.json", "--extractor", f"{command.folder}/half.py:extract", "--allow-code")
    assert command(*extract, "--otel", collector.url, "--otel-content", "--output", "out", "--no-targets").code == 0
    (command.folder / "spans.json").write_text(collector.json_lines())
    with sqlite3.connect(command.folder / "out" / "results.db") as rows:
        steps = rows.execute("SELECT key, inputs, result FROM steps WHERE name = 'extract'").fetchall()
    rows.close()
    lines = [
        {"id": key, "conversation": (asked := json.loads(inputs))["conversation"], "existing_memory": asked["existing"]}
        | {"output": json.loads(result)["memory"]}
        for key, inputs, result in steps
    ]
    (command.folder / "traces.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    online = ("extraction", "online", "--judge-model", "gpt-4o", "--canaries", "off", "--json")
    from_spans = command(*online, "--source", "otlp", "spans.json", "--output", "a")
    from_steps = command(*online, "--source", "jsonl", "traces.jsonl", "--output", "b")
    assert from_spans.json["counts"]["scored"] == len(lines) == 12
    assert figures(from_spans.json) == figures(from_steps.json)
    assert (figures(from_spans.json)["precision"], figures(from_spans.json)["recall"]) == (1, 0.5)
    writes = command("online", "spans.json", "--judge-model", "gpt-4o", "--canaries", "off", "--json", "--output", "c")
    assert (figures(writes.json)["precision"], figures(writes.json)["recall"]) == (1, 0.5)


def test_a_run_that_was_exported_without_texts_is_refused(command: Command, collector: Collector, stub: Stub) -> None:
    assert command(*BM25, "--otel", collector.url, "--output", "out").code == 0
    (command.folder / "spans.json").write_text(collector.json_lines())
    said = command("extraction", "online", "--judge-model", "gpt-4o", "--source", "otlp", "spans.json")
    assert said.code == 2
    assert "gen_ai.memory.records" in said.err or "--conversation-path" in said.err
    assert not (command.folder / "results").exists()


@pytest.mark.slow
def test_exported_searches_are_read_back_with_the_answers_that_followed(
    command: Command, collector: Collector, stub: Stub
) -> None:
    """Trials run at the same time in one trace; each search belongs to the answer of its own trial."""
    stub.always(completion(lambda call: call.json["messages"][-1]["content"][-40:], model="", tokens=TOKENS))
    answered = (*BM25, "--answering-model", "gpt-4o-mini", "--judge-model", "none")
    assert command(*answered, "--otel", collector.url, "--otel-content", "--output", "out").code in (0, 1)
    searches = collector.named("search_memory")
    counts = [span.attributes["gen_ai.memory.record.count"] for span in searches]
    (command.folder / "spans.json").write_text(collector.json_lines())
    judged = ("--judge-model", "gpt-4o", "--canaries", "off", "--top-k", "1", "--run-id", "r")
    online = ("online", "spans.json", "--only", "searches", *judged)
    stub.always(completion("yes", model="", tokens=TOKENS))
    measured = figures(command(*online, "--json").json)
    assert measured["found"] == pytest.approx(sum(counts) / len(counts))
    assert (len(counts), measured["used"]) == (4, 1)
    answers = {
        span.parent: json.loads(span.attributes["gen_ai.output.messages"])
        for span in collector.named("chat gpt-4o-mini")
    }
    expected = {
        f"{span.trace.hex()}/{span.id.hex()}": answers[span.parent][0]["parts"][0]["content"] for span in searches
    }
    with sqlite3.connect(command.folder / "results" / "results.db") as rows:
        bodies = [json.loads(body) for (body,) in rows.execute("SELECT body FROM outcomes")]
    rows.close()
    assert {body["trial"]["case_id"]: body["shown"]["got"] for body in bodies} == expected
