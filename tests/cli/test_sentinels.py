"""Secrets of every kind, in every encoding, are in no file and no output of a command."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from memorybench.wiring.environment import forget_secrets, redactor
from memorybench.wiring.live import LiveWiring
from tests.cli.command import Command
from tests.doubles.stub import Call, Stub
from tests.secrets.test_redaction import ENCODINGS

SENTINEL = "Zq7-mP2x/Kw"

PROVIDER = """\
name: acme
type: hosted
connection: {baseUrl: "URL"}
auth: {type: none}
endpoints:
  add:
    method: POST
    path: /add
    body: {id: "$.documentId", text: "$.content", user: "$.scope"}
  search:
    method: POST
    path: /search
    body: {q: "$.query", user: "$.scope"}
    response: {results: $.hits, contentField: $.text, idField: $.id}
  clear: {method: POST, path: /clear, body: {user: "$.scope"}}
rateLimit: {retryDelayMs: 0, maxRetries: 0}
"""


class Service:
    """A memory service that returns everything it was sent, in every encoding, also in errors and headers."""

    def __init__(self, secret: str = SENTINEL) -> None:
        self.secret = secret
        self.echo = " | ".join(encode(secret) for encode in ENCODINGS.values())
        self.searches = 0

    async def add(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        return web.json_response({"ok": self.echo})

    async def search(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        self.searches += 1
        if self.searches % 3 == 0:
            return web.Response(status=400, text=f"bad request: {self.echo}")
        if self.searches % 3 == 1:
            return web.Response(text=f"<p>{self.echo}</p>", content_type="text/html")
        return web.json_response({"hits": [{"id": self.secret, "text": f"{self.secret} {self.echo}"}]})

    async def clear(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        return web.json_response({"ok": self.echo})

    async def login(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        return web.json_response({"session": {"handle": self.secret}, "space": "space-1"})


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as stub:
        yield stub


def serve(stub: Stub, secret: str = SENTINEL) -> None:
    service = Service(secret)
    for path in ("add", "search", "login", "clear"):
        stub.always(getattr(service, path), path=f"/{path}")


def hits(text: str, secret: str) -> list[str]:
    """Return the encodings of the secret that the text contains."""
    # the ends of base64 belong to neighbours as well
    shapes = {name: encode(secret).rstrip("=") for name, encode in ENCODINGS.items()}
    return [name for name, shape in shapes.items() if (shape[1:-1] if "base64" in name else shape) in text]


def check_artefacts(command: Command, arguments: list[str], secret: str = SENTINEL, run: bool = True) -> list[Any]:
    """Run a command, then all that shows its results, and look for the secret in outputs and files."""
    ignored = {path for path in command.folder.rglob("*") if path.is_file()}
    outputs = [command("--debug", *arguments, *(["--run-id", "r"] if run else []))]
    if run:
        outputs += [command("results", "r"), command("results", "r", "--failures"), command("results", "--json")]
        outputs += [command("results", "r", "--json")]
        for form in ("csv", "json", "jsonl"):
            outputs += [command("export", "r", "--format", form)]
            outputs += [command("export", "r", "--format", form, "--output", f"out.{form}")]
    for output in outputs:
        assert hits(output.out + output.err, secret) == []
    files = [path for path in command.folder.rglob("*") if path.is_file() and path not in ignored]
    if run:
        assert {"results.db", "report.json", "report.md", "out.csv"} <= {path.name for path in files}
    for path in files:
        assert hits(path.read_bytes().decode("utf-8", "replace"), secret) == [], path
    return outputs


def write_provider(command: Command, stub: Stub, old: str = "", new: str = "", more: str = "") -> None:
    text = PROVIDER.replace("URL", stub.url)
    assert old in text
    Path("acme.yaml").write_text(text.replace(old, new, 1) + more)


EVAL = ["eval", "--providers", "acme", "--end", "4", "--config-dir", ".", "--allow-code"]
AUTH = ("auth: {type: none}", "auth: {type: bearer, envVar: ACME_AUTH}")
HEADER = ("    path: /search\n", '    path: /search\n    headers: {X-Acme: "${ACME_VIA}"}\n')


@pytest.mark.parametrize("secret", [SENTINEL, "Zq7-mP2x", "Zq7 mP2x  Kw9", "Zq7-mP2x/Kw \r", '"Zq7&<mP2x>'])
def test_the_key_of_auth(command: Command, stub: Stub, monkeypatch: pytest.MonkeyPatch, secret: str) -> None:
    serve(stub, secret.strip())
    write_provider(command, stub, *AUTH)
    monkeypatch.setenv("ACME_AUTH", secret)
    check_artefacts(command, EVAL, secret.strip())
    assert any(secret.strip() in call.headers.get("Authorization", "") for call in stub.calls) or "\r" in secret


def test_a_variable_in_a_header(command: Command, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(stub)
    write_provider(command, stub, *HEADER)
    monkeypatch.setenv("ACME_VIA", f"Bearer {SENTINEL}")
    check_artefacts(command, EVAL)
    assert any(SENTINEL in call.headers.get("X-Acme", "") for call in stub.calls)


def test_a_variable_in_a_url(command: Command, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(stub)
    write_provider(command, stub, "    path: /search\n", '    path: /search\n    query: {key: "${ACME_ID}"}\n')
    monkeypatch.setenv("ACME_ID", SENTINEL)
    check_artefacts(command, EVAL)
    assert any(SENTINEL in call.query.values() for call in stub.calls)


def test_the_password_of_a_database_url(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("acme.yaml").write_text(
        "name: acme\ntype: local\nadapter: builtin:hybrid\n"
        'local: {database: {type: postgres, connectionString: "${ACME_STORE}"}}\n'
    )
    monkeypatch.setenv("ACME_STORE", "postgresql://me:Zq7-mP2x%2FKw@127.0.0.1:1/db")
    check_artefacts(command, EVAL, run=False)


@pytest.mark.parametrize("before", [["eval", "--journel="], ["results", ""], ["show", ""]])
def test_the_password_of_an_address_in_the_wrong_place(command: Command, before: list[str]) -> None:
    result = command(before[0], f"{before[1]}postgresql://me:{SENTINEL}@127.0.0.1:1/db")
    assert result.code == 2
    assert SENTINEL not in result.out + result.err


def test_a_token_that_is_captured_at_login(command: Command, stub: Stub) -> None:
    serve(stub)
    write_provider(
        command,
        stub,
        "    path: /search\n",
        '    path: /search\n    headers: {Authorization: "Bearer ${handle}"}\n',
        "setup: [{method: POST, path: /login, captures: {handle: $.session.handle, spaceId: $.space}}]\n",
    )
    check_artefacts(command, EVAL)
    sent = {call.headers.get("Authorization") for call in stub.calls if call.path == "/search"}
    assert sent == {f"Bearer {SENTINEL}"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (HEADER[0], f'{HEADER[0]}    headers: {{Authorization: "Bearer {SENTINEL}"}}\n'),
        (HEADER[0], f"{HEADER[0]}    headers: {{x-api-key: {SENTINEL}}}\n"),
        (HEADER[0], f"{HEADER[0]}    query: {{api_key: {SENTINEL}}}\n"),
        ('{q: "$.query"', f'{{password: {SENTINEL}, q: "$.query"'),
        ("http://127", f"http://me:{SENTINEL.replace('/', '%2F')}@127"),
        (HEADER[0], f'{HEADER[0]}    headers: {{Authorization: "${{ACME_AUTH:-Bearer {SENTINEL}}}"}}\n'),
        ("name: acme", "name: acme\ndescription: use sk-live0123456789abcdefghij"),
    ],
    ids=["Authorization", "x-api-key", "query", "body", "URL", "default", "shape of a key"],
)
def test_a_literal_credential_in_yaml_is_refused(command: Command, stub: Stub, old: str, new: str) -> None:
    serve(stub)
    write_provider(command, stub, old, new)
    [output] = check_artefacts(command, EVAL, run=False)
    assert output.code == 2
    assert "${" in output.err.splitlines()[-1]
    assert "sk-live0123456789" not in output.err
    assert not Path("results").exists()
    assert stub.calls == []


def test_a_value_of_an_env_file(command: Command, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(stub)
    write_provider(command, stub)
    Path(".env").write_text(f"export ACME_HANDLE='{SENTINEL}'\nACME_MODEL=gpt-4o-mini\n")
    monkeypatch.setenv("ACME_HANDLE", SENTINEL)
    check_artefacts(command, EVAL)


def test_an_env_file_beside_a_compose_file(command: Command) -> None:
    Path("compose.yaml").write_text("services: {api: {image: acme}}\n")
    Path(".env").write_text(f"DB_PASS={SENTINEL}\nACME_MODEL=gpt-4o-mini\nACME_URL=http://localhost:8000\n")
    docker = "{compose: compose.yaml, service: api, healthcheck: 'http://localhost:1', baseUrl: 'http://localhost:1'}"
    text = PROVIDER.replace("type: hosted", f"type: docker\ndocker: {docker}").replace(
        'connection: {baseUrl: "URL"}\n', ""
    )
    Path("acme.yaml").write_text(text)
    forget_secrets()
    LiveWiring(["."]).catalog.provider("acme", {})
    clean = redactor().clean
    assert hits(clean(Service().echo), SENTINEL) == []
    assert clean("gpt-4o-mini http://localhost:8000") == "gpt-4o-mini http://localhost:8000"


def test_a_secret_in_a_dataset(command: Command, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(stub, "another-text")
    write_provider(command, stub, *AUTH)
    echo = Service().echo
    sessions = [[{"role": "user", "text": f"My key is {echo}"}]]
    item = {"id": "q1", "question": f"What is {echo}?", "answer": echo, "sessions": sessions}
    Path("data.json").write_text(json.dumps([item]))
    Path("mine.yaml").write_text(
        "name: mine\ndata: {type: local, path: data.json}\n"
        "schema: {itemId: id, question: question, answer: answer,"
        " context: {field: sessions, itemSchema: {content: text, role: role}}}\n"
        "evaluation: {method: contains}\n"
    )
    monkeypatch.setenv("ACME_AUTH", SENTINEL)
    check_artefacts(command, ["eval", "--benchmarks", "mine", "--providers", "acme", "bm25", "--config-dir", "."])


def test_a_secret_in_an_exception(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("broken.py").write_text(
        "import os, warnings, logging\n"
        "class Broken:\n"
        "    def __init__(self): pass\n"
        "    def add(self, *a, **k):\n"
        "        warnings.warn(os.environ['ECHO']); logging.warning(os.environ['ECHO']); print(os.environ['ECHO'])\n"
        "        raise RuntimeError(os.environ['ECHO'])\n"
        "    def search(self, *a, **k): raise RuntimeError(os.environ['ECHO'])\n"
        "    def clear(self, *a, **k): raise RuntimeError(os.environ['ECHO'])\n"
    )
    Path("acme.yaml").write_text("name: acme\ntype: local\nadapter: ./broken.py:Broken\n")
    monkeypatch.setenv("ACME_TOKEN", SENTINEL)
    monkeypatch.setenv("ECHO", Service().echo)
    monkeypatch.setattr("warnings.filters", [("default", None, Warning, None, 0)])
    check_artefacts(command, EVAL)


def test_a_secret_on_the_stderr_of_an_mcp_server(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mcp")
    Path("server.py").write_text(
        "import os, sys\nsys.stderr.write(os.environ['ECHO'] + os.environ['ACME_AUTH'])\nsys.exit(3)\n"
    )
    Path("acme.yaml").write_text(
        "name: acme\ntype: local\nadapter: builtin:mcp\n"
        f"mcp:\n  command: [{sys.executable}, {command.folder}/server.py, '${{dataFolder}}']\n"
        '  env: {ACME_AUTH: "${ACME_AUTH}", ECHO: "${ECHO_MODEL}"}\n'
        "  tools:\n"
        '    add: {tool: add, arguments: {scope: "$.scope", text: "$.content"}}\n'
        '    search: {tool: search, arguments: {scope: "$.scope", q: "$.query"},'
        " response: {results: $.hits, contentField: $.text}}\n"
        '    clear: {tool: clear, arguments: {scope: "$.scope"}}\n'
    )
    monkeypatch.setenv("ACME_AUTH", SENTINEL)
    monkeypatch.setenv("ECHO_MODEL", Service().echo)
    outputs = check_artefacts(command, EVAL, run=False)
    assert "[redacted]" in outputs[0].err


def test_a_key_of_less_than_8_characters_draws_one_warning(
    command: Command, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(stub)
    write_provider(command, stub, "auth: {type: none}", "auth: {type: bearer, envVar: ACME_SHORT}")
    monkeypatch.setenv("ACME_SHORT", "1234567")
    output = command(*EVAL)
    assert output.err.count("ACME_SHORT") == 1
    assert "1234567" not in output.err


def test_a_resumed_run_logs_in_again(command: Command, stub: Stub) -> None:
    """The token is not stored, and the collection of the scope is not created again."""
    serve(stub)
    write_provider(
        command,
        stub,
        "    path: /search\n",
        '    path: /search\n    headers: {Authorization: "Bearer ${handle}"}\n',
        "setup: [{method: POST, path: /login, captures: {handle: $.session.handle}},"
        " {method: POST, path: /spaces, captures: {spaceId: $.space}}]\n",
    )
    stub.always(Service().login, path="/spaces")
    stub.always(Service().add, path="/add")
    assert command.killed(*EVAL, "--concurrency", "1", "--run-id", "r", at=40)
    before = [call.path for call in stub.calls]
    assert "/add" in before
    resumed = command("eval", "--resume", "r", "--allow-code")
    assert resumed.code == 1  # two of three searches fail
    later = [call.path for call in stub.calls[len(before) :]]
    assert later.index("/login") < later.index("/search")
    handles = {call.headers.get("Authorization") for call in stub.calls if call.path == "/search"}
    assert handles == {f"Bearer {SENTINEL}"}
