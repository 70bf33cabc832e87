"""`memorybench online receive`: spans that agents send are stored durably, and read back by `online`."""

from __future__ import annotations

import gzip
import json
import select
import socket
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.cli.command import Command
from tests.cli.test_online import figures
from tests.cli.test_online_searches import search, turn
from tests.doubles.receiver_process import WITHOUT_EXTRA, receiving
from tests.traces.test_otlp import batch, span

PROTOBUF = "application/x-protobuf"
TURNS = [turn(0, "tea-0", "tea-0", "milk-0"), turn(1, "No idea."), turn(2, "No idea.", error=True)]


def batches(folder: Path) -> list[Any]:
    lines = [line for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def searched(command: Command, folder: str = "spans") -> dict[str, float | None]:
    said = command("online", folder, "--json")
    assert said.code == 0, said.err
    return figures(said.json)


@pytest.mark.slow
def test_spans_that_were_received_have_the_figures_of_a_file(command: Command) -> None:
    (command.folder / "spans.json").write_text("".join(f"{json.dumps(batch(*spans))}\n" for spans in TURNS))
    with receiving(command.folder / "spans") as receiver:
        for number, spans in enumerate(TURNS):
            body = json.dumps(batch(*spans)).encode()
            packed = {"content_encoding": "gzip"} if number % 2 else {}
            reply = receiver.post(gzip.compress(body) if packed else body, **packed)
            assert (reply.status, reply.json) == (200, {})
        assert "3 batches with 12 spans" in receiver.stop()
    measured = searched(command)
    assert measured == searched(command, "spans.json")
    assert measured["succeeded"] == pytest.approx(2 / 3)
    assert measured["found_any"] == pytest.approx(1 / 2)


@pytest.mark.slow
def test_files_are_readable_by_their_owner_only(command: Command) -> None:
    with receiving(command.folder / "spans") as receiver:
        assert receiver.post(batch(*TURNS[0])).status == 200
    (file,) = (command.folder / "spans").glob("*.jsonl")
    assert file.stat().st_mode & 0o077 == 0
    assert file.parent.stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_the_exporter_of_the_sdk_is_understood(command: Command) -> None:
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    with receiving(command.folder / "spans") as receiver:
        exporter = OTLPSpanExporter(f"{receiver.url}/v1/traces", compression=Compression.Gzip)
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        tracer = provider.get_tracer("agent")
        with tracer.start_as_current_span("agent"), tracer.start_as_current_span("search") as found:
            found.set_attribute("gen_ai.operation.name", "search_memory")
            found.set_attribute("gen_ai.memory.record.count", 4)
        provider.shutdown()
        context = found.get_span_context()
    spans = [one["resourceSpans"][0]["scopeSpans"][0]["spans"][0] for one in batches(command.folder / "spans")]
    assert (spans[0]["traceId"], spans[0]["spanId"]) == (f"{context.trace_id:032x}", f"{context.span_id:016x}")
    assert spans[0]["parentSpanId"] == spans[1]["spanId"]
    assert searched(command)["found"] == 4


@pytest.mark.slow
@pytest.mark.parametrize("slow_body", ["Content-Length: 1000\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"])
def test_slow_senders_do_not_hold_up_others(command: Command, slow_body: str) -> None:
    with receiving(command.folder / "spans") as receiver:
        address = urlsplit(receiver.url)
        slow = [socket.create_connection((address.hostname or "", address.port or 0)) for _ in range(6)]
        for one in slow:
            head = f"POST /v1/traces HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
            one.sendall(f"{head}{slow_body}".encode())
        assert receiver.post(batch(*TURNS[0])).status == 200
        body = json.dumps(batch(*TURNS[2])).encode()
        assert receiver.post(gzip.compress(body), content_encoding="gzip").status == 200
        without_header = zlib.compressobj(wbits=-15)
        packed = without_header.compress(body) + without_header.flush()
        for deflated in (zlib.compress(body), packed):
            assert receiver.post(deflated, content_encoding="deflate").status == 200
        assert select.select(slow, [], [], 0)[0] == [], "none of them was given up first"
        for one in slow:
            one.close()
        assert receiver.post(batch(*TURNS[1])).status == 200
        assert "Traceback" not in receiver.stop()


@pytest.mark.slow
def test_our_own_spans_are_received_and_read_back(command: Command) -> None:
    run = ("eval", "--providers", "bm25", "--limit", "4", "--output", "out", "--run-id", "r")
    with receiving(command.folder / "spans") as receiver:
        assert command(*run, "--otel", receiver.url).code == 0
        assert ", 0 refused" in receiver.stop()
    spans = [
        one
        for received in batches(command.folder / "spans")
        for resource in received["resourceSpans"]
        for scope in resource["scopeSpans"]
        for one in scope["spans"]
    ]
    searches = [one for one in spans if one["name"] == "search_memory"]
    values = [{pair["key"]: pair["value"] for pair in one["attributes"]} for one in searches]
    found = [int(one["gen_ai.memory.record.count"]["intValue"]) for one in values]
    said = command("online", "spans", "--only", "searches", "--json")
    assert said.json["counts"]["scored"] == len(found) > 0
    assert figures(said.json)["found"] == pytest.approx(sum(found) / len(found))


@pytest.mark.slow
def test_a_batch_that_is_repeated_counts_once(command: Command) -> None:
    """A sender repeats a batch if it did not get the answer."""
    with receiving(command.folder / "spans") as receiver:
        assert [receiver.post(batch(*TURNS[0])).status for _ in range(3)] == [200] * 3
    assert command("online", "spans", "--json").json["counts"]["scored"] == 1


@pytest.mark.slow
def test_a_receiver_that_was_killed_continues(command: Command) -> None:
    folder = command.folder / "spans"
    with receiving(folder) as receiver:
        assert receiver.post(batch(*TURNS[0])).status == 200
        receiver.kill()
    (file,) = folder.glob("*.jsonl")
    with file.open("a") as unfinished:
        unfinished.write('{"resourceSpans":[{"scope')  # a kill during the next write
    assert command("online", "spans", "--json").json["counts"]["scored"] == 1
    with receiving(folder) as receiver:
        assert receiver.post(batch(*TURNS[1])).status == 200
    assert len(batches(folder)) == 2
    assert command("online", "spans", "--json").json["counts"]["scored"] == 2


def test_a_complete_line_that_is_invalid_is_reported(command: Command) -> None:
    folder = command.folder / "spans"
    folder.mkdir()
    (folder / "a.jsonl").write_text(f'{{"resourceSpans":[\n{json.dumps(batch(*TURNS[0]))}\n')
    said = command("online", "spans")
    assert said.code == 2
    assert "a.jsonl:" in said.err


def test_an_empty_folder_is_reported(command: Command) -> None:
    (command.folder / "spans").mkdir()
    assert command("online", "spans").code == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400),
        (b"[]", {}, 400),
        (b"\xff", {}, 400),
        (b'{"resourceSpans": [1]}', {}, 400),
        (b"\xff\xff", {"content_type": PROTOBUF}, 400),
        (b"not gzip", {"content_encoding": "gzip"}, 400),
        (gzip.compress(b"{}", mtime=0)[:-5], {"content_encoding": "gzip"}, 400),
        (b"not deflate", {"content_encoding": "deflate"}, 400),
        (gzip.compress(b"{}", mtime=0), {"content_encoding": "gzip, gzip"}, 415),
        (b"{}", {"content_type": "text/plain"}, 415),
        (b"{}", {"content_encoding": "x-unknown"}, 415),
        (b" " * (17 * 2**20), {}, 413),
        (gzip.compress(b" " * (100 * 2**20)), {"content_encoding": "gzip"}, 413),
        (b"{}", {"host": "evil.example"}, 403),
    ],
)
def test_a_request_that_cannot_be_stored_is_refused(
    tmp_path: Path, body: bytes, headers: dict[str, str], status: int
) -> None:
    with receiving(tmp_path / "spans") as receiver:
        reply = receiver.post(body, **headers)
        assert reply.status == status
        if headers.get("content_type") == PROTOBUF:
            from google.rpc.status_pb2 import Status

            assert reply.headers["Content-Type"] == PROTOBUF
            assert Status.FromString(reply.body).message
        else:
            assert reply.json["message"]
        assert receiver.post(batch(*TURNS[0])).status == 200
    assert len(batches(tmp_path / "spans")) == 1


@pytest.mark.slow
def test_other_paths_and_methods_are_refused(tmp_path: Path) -> None:
    with receiving(tmp_path / "spans") as receiver:
        assert receiver.post({}, "/v1/logs").status == 404
        assert receiver.post({}, "/v1/traces").json == {}
    assert batches(tmp_path / "spans") == []


@pytest.mark.slow
def test_an_invalid_span_does_not_cost_the_others(command: Command) -> None:
    bad = {**span("x"), "traceId": 5}
    with receiving(command.folder / "spans") as receiver:
        reply = receiver.post(batch(*TURNS[0], bad))
        assert reply.status == 200
        assert reply.json["partialSuccess"]["rejectedSpans"] == "1"
    assert command("online", "spans", "--json").json["counts"]["scored"] == 1


@pytest.mark.slow
def test_a_token_is_required_and_not_stored(command: Command) -> None:
    token = "a-token-of-the-test-1234"
    with receiving(command.folder / "spans", "--token-env", "RECEIVER_TOKEN", RECEIVER_TOKEN=token) as receiver:
        assert receiver.post(batch(*TURNS[0])).status == 401
        assert receiver.post(batch(*TURNS[0]), authorization="Bearer other").status == 401
        leak = search("s", "", f"my token is {token}", trace="leak")
        assert receiver.post(batch(leak), authorization=f"Bearer {token}").status == 200
    (stored,) = batches(command.folder / "spans")
    assert token not in json.dumps(stored)


@pytest.mark.slow
def test_a_full_folder_is_retried_later_and_continues_when_there_is_room(tmp_path: Path) -> None:
    large = search("s", "", "x" * 2**18)
    with receiving(tmp_path / "spans", "--max-mb", "1") as receiver:
        assert receiver.post(batch(large)).status == 200
        reply = receiver.post(batch(large))
        assert reply.status == 503
        assert int(reply.headers["Retry-After"]) > 0
        for file in (tmp_path / "spans").glob("*.jsonl"):
            file.unlink()
        assert receiver.post(batch(large)).status == 200
    assert len(batches(tmp_path / "spans")) == 1


@pytest.mark.slow
def test_without_the_extra_only_json_is_accepted(tmp_path: Path) -> None:
    with receiving(tmp_path / "spans", code=WITHOUT_EXTRA) as receiver:
        assert receiver.post(b"", content_type=PROTOBUF).status == 415
        assert receiver.post(batch(*TURNS[0])).status == 200
        assert "memorybench[otel]" in receiver.stop()


@pytest.mark.slow
def test_a_folder_has_one_receiver(command: Command) -> None:
    with receiving(command.folder / "spans"):
        said = command("online", "receive", "--output", "spans", "--port", "0", "--for", "1s")
    assert said.code == 2
    assert "writes into this folder" in said.err


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--output", "spans", "--host", "0.0.0.0"),
        ("--output", "spans", "--token-env", "NOT_SET"),
        ("--output", "spans", "--for", "soon"),
        ("--output", "spans", "--for", "0s"),
        ("--output", "spans", "--max-mb", "0"),
        ("--output", "spans", "--port", "70000"),
        ("--output", "file/spans"),
    ],
)
def test_an_unusable_command_is_refused(command: Command, flags: tuple[str, ...]) -> None:
    (command.folder / "file").touch()
    assert command("online", "receive", *flags).code == 2
    assert not (command.folder / "spans").exists()


@pytest.mark.slow
def test_it_stops_after_the_time_that_was_given(command: Command) -> None:
    said = command("online", "receive", "--output", "spans", "--port", "0", "--for", "1s", "--json")
    assert said.code == 0
    assert said.json["url"].startswith("http://127.0.0.1:")


@pytest.mark.slow
def test_an_invalid_request_is_one_line_of_the_log(command: Command) -> None:
    with receiving(command.folder / "spans") as receiver:
        address = urlsplit(receiver.url)
        with socket.create_connection((address.hostname or "", address.port or 0)) as sender:
            sender.sendall(b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Length: -5\x1b[31m\r\n\r\n")
            assert b" 400 " in sender.recv(1_000)
        assert receiver.post(batch(*TURNS[0])).status == 200
        error = receiver.stop()
    assert "Traceback" not in error
    assert "\x1b" not in error
    assert [line for line in error.splitlines() if "400" in line]
