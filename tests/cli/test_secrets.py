"""A key is found in no artefact, however it is disguised: not in the journal, reports, logs or errors."""

import base64
import json
import urllib.parse
from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.doubles.stub import Behaviour, Stub, completion, raw, reply, status

SENTINEL = 'sk-Sentinel/+%&"=42\\x7Q'
DISGUISES = {
    "raw": SENTINEL,
    "URL-encoded": urllib.parse.quote(SENTINEL, safe=""),
    "base64": base64.b64encode(SENTINEL.encode()).decode().rstrip("=")[:-1],
    "hex": SENTINEL.encode().hex(),
    "repr": repr(SENTINEL)[1:-1],
    "JSON": json.dumps(SENTINEL)[1:-1],
}
ECHO = " ".join(DISGUISES.values())


def found_in(text: str) -> list[str]:
    return [name for name, disguise in DISGUISES.items() if disguise in text]


@pytest.mark.parametrize(
    "behaviour",
    [
        completion(f"your key is {ECHO}"),
        status(400, said=f"bad key: {ECHO}"),
        status(401, said=f"wrong key: {ECHO}"),
        raw(f"<p>{ECHO}</p>".encode(), content_type="text/html"),
        reply({"choices": ECHO}),
    ],
    ids=["in the answer", "in a 400", "in a 401", "in HTML", "in a malformed reply"],
)
@pytest.mark.parametrize("debug", [[], ["--debug"]], ids=["", "with --debug"])
def test_a_key_that_a_server_echoes_is_in_no_file_or_output(
    command: Command, monkeypatch: pytest.MonkeyPatch, behaviour: Behaviour, debug: list[str]
) -> None:
    with Stub() as stub:
        stub.always(behaviour)
        monkeypatch.setenv("OPENAI_API_KEY", SENTINEL)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{stub.url}/v1")
        arguments = ("eval", "--providers", "oracle", "--end", "3", "--answering-model", "gpt-4o", "--run-id", "r")
        said = [command(*debug, *arguments), command("results", "r", "--failures"), command("export", "r")]
        assert any(SENTINEL in call.headers.get("Authorization", "") for call in stub.calls), "the key was sent"
    for one in said:
        assert found_in(one.out + one.err) == []
    files = [path for path in Path(command.folder).rglob("*") if path.is_file()]
    assert {"results.db", "report.json", "report.md"} <= {path.name for path in files}
    for path in files:
        assert found_in(path.read_bytes().decode("utf-8", "replace")) == [], path


def test_a_key_in_a_traceback_is_redacted(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVICE_TOKEN", SENTINEL)

    def broken(*_: object) -> None:
        raise RuntimeError(f"header {SENTINEL!r}, url ?key={urllib.parse.quote(SENTINEL, safe='')}")

    monkeypatch.setattr("memorybench.wiring.health.examine", broken)
    for debug in ([], ["--debug"]):
        said = command(*debug, "doctor")
        assert said.code == 1
        assert "unexpected RuntimeError" in said.err
        assert found_in(said.err) == []


def test_a_redacted_row_stays_valid_json(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The letter after a backslash of JSON may be the first letter of a key."""
    monkeypatch.setenv("ACME_API_KEY", "note-to-self")
    lines = [{"role": "user", "text": "first line\note-to-self"}]
    item = {"id": "q1", "question": "Which\note-to-self?", "answer": "green", "sessions": [lines]}
    Path("data.json").write_text(json.dumps([item]))
    Path("mine.yaml").write_text(
        "name: mine\ndata: {type: local, path: data.json}\n"
        "schema: {itemId: id, question: question, answer: answer,"
        " context: {field: sessions, itemSchema: {content: text, role: role}}}\n"
        "evaluation: {method: contains}\n"
    )
    arguments = ("eval", "--benchmarks", "mine", "--providers", "bm25", "--config-dir", ".", "--run-id", "r")
    assert command(*arguments).code == 0
    assert command("validate", "results/results.db").code == 0
    assert len(command("export", "r", "--format", "json").json) == 1
