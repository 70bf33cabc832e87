"""A server that refuses connections pauses the run early; the run resumes when the server is there."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from memorybench.core.retry_defaults import UNREACHABLE
from tests.cli.command import Command

REPLY = {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}], "usage": {}}


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memorybench.engine.retries._delay", lambda *_: 0.0)


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A port that is bound but does not listen: connections are refused."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{bound.getsockname()[1]}/v1")
        yield bound


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps(REPLY).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def server_on(bound: socket.socket) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = bound
    server.server_activate()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


EVAL = ("eval", "--providers", "oracle", "--end", "60", "--run-id", "r", "--concurrency", "4")
MODELS = ("--answering-model", "gpt-4o", "--judge-model", "none")


@pytest.mark.slow
def test_a_dead_model_server_pauses_the_run_which_resumes(command: Command, port: socket.socket) -> None:
    paused = command(*EVAL, *MODELS, "--json")
    assert paused.code == 1
    assert paused.json["status"] == "partial"
    assert paused.json["counts"]["failed"] < UNREACHABLE
    lines = [line for line in paused.err.splitlines() if line.startswith("memorybench: ")]
    assert len(lines) == 1
    assert "--resume" in lines[0]
    with server_on(port):
        resumed = command("eval", "--resume", "r", "--json")
    assert resumed.json["status"] == "complete"
    assert resumed.json["counts"]["failed"] == 0


def test_a_dead_judge_pauses_the_run_before_its_first_question(command: Command, port: socket.socket) -> None:
    """The canaries of the judge come first, and are not reported as unreadable verdicts."""
    paused = command(*EVAL, "--answering-model", "gpt-4o", "--judge-model", "gpt-4o", "--json")
    assert (paused.code, paused.json["status"]) == (1, "partial")
    assert paused.json["counts"]["scored"] == 0
    assert "unreadable" not in paused.err


def test_a_calibration_with_a_dead_judge_fails_and_says_why(command: Command, port: socket.socket) -> None:
    rows = [{"question": f"Where is {n}?", "response": "here", "label": "yes"} for n in range(60)]
    (command.folder / "labels.json").write_text(json.dumps(rows))
    words = ("judge", "calibrate", "labels.json", "--judge-model", "gpt-4o", "--json")
    paused = command(*words)
    assert (paused.code, paused.json["status"], paused.json["counts"]["planned"]) == (1, "partial", 60)
    assert "cannot connect" in paused.err
    with server_on(port):
        repeated = command(*words)
    assert (repeated.code, repeated.json["counts"]["scored"]) == (0, 60)


def test_a_dead_provider_pauses_the_run(command: Command, port: socket.socket) -> None:
    card = f"""\
name: dead
type: hosted
connection: {{baseUrl: "http://127.0.0.1:{port.getsockname()[1]}"}}
rateLimit: {{batchDelayMs: 0}}
endpoints:
  add: {{method: POST, path: /add, body: {{content: "$.content", user: "$.scope"}}}}
  search:
    method: POST
    path: /search
    body: {{query: "$.query", user: "$.scope"}}
    response: {{results: "$.results", contentField: "$.memory"}}
  clear: {{method: DELETE, path: /clear, query: {{user: "$.scope"}}}}
"""
    (command.folder / "providers").mkdir()
    (command.folder / "providers" / "dead.yaml").write_text(card, encoding="utf-8")
    paused = command("eval", "--providers", "dead", "--config-dir", "providers", "--run-id", "r", "--json")
    assert (paused.code, paused.json["status"]) == (1, "partial")
    assert paused.json["counts"]["failed"] < paused.json["counts"]["planned"] / 4
