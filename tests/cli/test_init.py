"""`memorybench init`: starting files that work, and what a running server tells about itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from tests.cli.command import Command
from tests.doubles.stub import Call, Stub, redirect, reply, status

FILES = {
    "provider": "providers/configs/mine.yaml",
    "benchmark": "benchmarks/configs/mine.yaml",
    "extractor": "extractors/configs/mine.yaml",
    "scenario": "scenarios/mine.json",
}
OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Memories", "version": "2.4"},
    "components": {
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Memory-Key"}},
        "schemas": {
            "New": {"properties": {"text": {"type": "string"}, "user_id": {"type": "string"}, "metadata": {}}},
            "Hit": {"properties": {"id": {}, "text": {}, "score": {}}},
            "Hits": {"properties": {"hits": {"type": "array", "items": {"$ref": "#/components/schemas/Hit"}}}},
            "Query": {"properties": {"query": {}, "userId": {}, "top_k": {}}},
        },
    },
    "paths": {
        "/v2/memories": {
            "post": {
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/New"}}}}
            },
            "get": {},
        },
        "/v2/memories/search": {
            "post": {
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Query"}}}},
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Hits"}}}}
                },
            }
        },
        "/v2/users/{user_id}": {"delete": {}},
    },
}


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as server:
        server.always(status(404))
        server.always(reply({"status": "ok"}), path="/healthz")
        yield server


@pytest.mark.parametrize("kind", FILES)
def test_a_starting_file_is_valid_and_never_replaced(command: Command, kind: str) -> None:
    said = command("init", kind, "mine")
    assert said.code == 0, said.err
    file = command.folder / FILES[kind]
    assert f"wrote {FILES[kind]}" in said.out
    assert command("validate", FILES[kind]).code == 0
    file.write_text("of the user")
    again = command("init", kind, "mine")
    assert again.code == 2
    assert "already exists" in again.err
    assert file.read_text() == "of the user"


def test_the_starting_benchmark_runs(command: Command) -> None:
    assert command("init", "benchmark", "mine").code == 0
    said = command("eval", "--benchmarks", "mine", "--providers", "bm25", "--json")
    assert said.json["counts"] == {**said.json["counts"], "planned": 2, "scored": 2}


@pytest.mark.slow
def test_the_starting_scenario_runs(command: Command) -> None:
    assert command("init", "scenario", "mine").code == 0
    assert command("hygiene", "run", "mine").code == 0


@pytest.mark.parametrize("name", ["../up", "a b", "A/B", ""])
def test_an_invalid_name_writes_nothing(command: Command, name: str) -> None:
    assert command("init", "provider", name).code == 2
    assert list(command.folder.iterdir()) == []


@pytest.mark.parametrize(("kind", "folder"), [("provider", "providers"), ("scenario", "scenarios")])
def test_a_folder_that_cannot_be_made_is_named(command: Command, kind: str, folder: str) -> None:
    (command.folder / folder).write_text("")
    said = command("init", kind, "mine")
    assert (said.code, said.err.startswith(f"memorybench: {folder}/")) == (2, True)


def test_a_link_is_not_followed(command: Command) -> None:
    folder = command.folder / "providers/configs"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").symlink_to(command.folder / "elsewhere")
    assert command("init", "provider", "mine").code == 2
    assert not (command.folder / "elsewhere").exists()


@pytest.mark.slow
def test_a_server_with_a_description_fills_the_file(command: Command, stub: Stub) -> None:
    import yaml

    stub.always(reply(OPENAPI), path="/openapi.json")
    said = command("init", "provider", "mine", "--probe", stub.url)
    assert said.code == 0, said.err
    config = yaml.safe_load((command.folder / FILES["provider"]).read_text())
    assert config["apiVersion"] == "2.4"
    assert config["auth"] == {"type": "apikey", "header": "X-Memory-Key", "envVar": "MINE_KEY"}
    assert config["connection"]["baseUrl"] == f"${{MINE_URL:-{stub.url}}}"
    endpoints = config["endpoints"]
    assert (endpoints["add"]["method"], endpoints["add"]["path"]) == ("POST", "/v2/memories")
    assert endpoints["add"]["body"] == {"text": "$.content", "user_id": "$.scope", "metadata": "$.metadata"}
    assert endpoints["search"]["path"] == "/v2/memories/search"
    assert endpoints["search"]["body"] == {"query": "$.query", "userId": "$.scope", "top_k": "$.limit"}
    response = endpoints["search"]["response"]
    assert response == {"results": "$.hits", "contentField": "$.text", "scoreField": "$.score", "idField": "$.id"}
    assert endpoints["clear"]["path"] == "/v2/users/${scope}"
    assert {call.method for call in stub.calls} == {"GET"}
    assert not any("authorization" in map(str.lower, call.headers) for call in stub.calls)


def schema(*names: str) -> dict[str, Any]:
    return {"type": "object", "required": list(names[:2]), "properties": {name: {} for name in names}}


HIT = {"type": "object", "properties": {"id": {}, "text": {}, "score": {}, "metadata": {}}}
HITS = {"type": "object", "properties": {"hits": {"type": "array", "items": HIT}}}
USER = {"name": "user_id", "in": "query", "required": True}


def described(add: Any, search: Any, reply: Any, **more: Any) -> dict[str, Any]:
    paths = {
        "/notes": {"post": add, "delete": {"parameters": [USER]}},
        "/notes/find": {"post": {**search, "responses": {"200": reply}}},
        "/notes/{note_id}": {"delete": {}},
    }
    return {"info": {"version": "1"}, "paths": paths, **more}


def content(inner: Any) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": inner}}}


IN_BODY = {"requestBody": content(schema("user_id", "text", "metadata"))}
SEARCH_BODY = {"requestBody": content(schema("user_id", "query", "limit"))}
KEY = {"type": "apiKey", "in": "header", "name": "X-Key"}
DESCRIBED: dict[str, dict[str, Any]] = {
    "relative server": described(IN_BODY, SEARCH_BODY, content(HITS), openapi="3.1.0", servers=[{"url": "/api"}]),
    "variables of a server": described(
        IN_BODY,
        SEARCH_BODY,
        content(HITS),
        openapi="3.0.0",
        servers=[
            {"url": "https://api.example.com/v9"},
            {"url": "/{version}", "variables": {"version": {"default": "api"}}},
        ],
    ),
    "parameters of a POST": described(
        {"parameters": [USER, {"name": "text", "in": "query"}], "requestBody": content(schema("metadata"))},
        {"parameters": [USER, {"name": "query", "in": "query"}, {"name": "limit", "in": "query"}]},
        content(HITS),
        openapi="3.1.0",
        servers=[{"url": "/api"}],
    ),
    "Swagger 2": described(
        {"parameters": [{"in": "body", "name": "new", "schema": schema("user_id", "text", "metadata")}]},
        {"parameters": [{"in": "body", "name": "query", "schema": schema("user_id", "query", "limit")}]},
        {"schema": HITS},
        swagger="2.0",
        basePath="/api",
    ),
    "key in a header": described(
        IN_BODY,
        SEARCH_BODY,
        content(HITS),
        openapi="3.1.0",
        servers=[{"url": "/api/"}],
        components={"securitySchemes": {"key": KEY}},
    ),
}


@pytest.mark.parametrize("described", DESCRIBED)
def test_a_file_from_a_complete_description_runs_unchanged(
    command: Command, stub: Stub, described: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: dict[str, list[dict[str, Any]]] = {}
    key = "sentinel-notes-key" if described == "key in a header" else None
    monkeypatch.setenv("MINE_KEY", "sentinel-notes-key")

    async def behave(_: web.BaseRequest, call: Call) -> web.StreamResponse:
        fields = {**call.query, **(call.json if call.body else {})}
        if key is not None and call.headers.get("X-Key") != key:
            return web.json_response({}, status=401)
        match call.method, call.path:
            case "POST", "/api/notes":
                stored = notes.setdefault(fields["user_id"], [])
                stored.append({"id": f"{len(stored)}", "text": fields["text"], "metadata": fields["metadata"]})
                return web.json_response({})
            case "POST", "/api/notes/find":
                return web.json_response({"hits": notes[fields["user_id"]][: int(fields["limit"])]})
            case "DELETE", "/api/notes":
                return web.json_response({}, status=200 if notes.pop(fields["user_id"], None) else 404)
        return web.json_response({}, status=404)

    stub.always(behave)
    stub.always(reply(DESCRIBED[described]), path="/openapi.json")
    said = command("init", "provider", "mine", "--probe", stub.url)
    assert said.code == 0, said.err
    assert "to change" not in said.out
    run = command("eval", "--providers", "mine", "--benchmarks", "starter", "--limit", "2", "--json")
    assert run.code == 0, run.err
    assert run.json["counts"]["scored"] == 2
    assert run.json["notes"] == [], "recall is computed"
    assert notes == {}
    assert any(call.path == "/api/notes" and call.method == "DELETE" for call in stub.calls)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"servers": [{"url": "https://api.example.com/v9"}]}, "https://api.example.com/v9"),
        ({"paths": {**OPENAPI["paths"], "/v2/users/{user_id}": {}, "/v2/memories/{id}": {"delete": {}}}}, "clear"),
        ({"components": {"securitySchemes": {"key": {"type": "http", "scheme": "basic"}}}}, "basic"),
    ],
)
def test_what_was_not_found_is_named_here_and_in_the_file(
    command: Command, stub: Stub, changes: dict[str, Any], line: str
) -> None:
    stub.always(reply({**OPENAPI, **changes}), path="/openapi.json")
    said = command("init", "provider", "mine", "--probe", stub.url)
    assert said.code == 0, said.err
    text = (command.folder / FILES["provider"]).read_text()
    assert [one for one in said.out.splitlines() if "to change" in one and line in one]
    assert [one for one in text.splitlines() if one.startswith("# Change") and line in one]
    assert f'baseUrl: "${{MINE_URL:-{stub.url}}}"' in text


def test_a_field_that_contains_the_word_name_keeps_its_name(command: Command, stub: Stub) -> None:
    new = {"properties": {"text": {}, "USER_NAME": {}}}
    description = {**OPENAPI, "components": {"schemas": {**OPENAPI["components"]["schemas"], "New": new}}}
    stub.always(reply(description), path="/openapi.json")
    assert command("init", "provider", "mine", "--probe", stub.url).code == 0
    config = yaml.safe_load((command.folder / FILES["provider"]).read_text())
    assert config["endpoints"]["add"]["body"] == {"text": "$.content", "USER_NAME": "$.scope"}


def test_names_of_a_description_stay_in_their_line(command: Command, stub: Stub) -> None:
    description = {**OPENAPI, "servers": [{"url": "https://x.example\nname: other"}]}
    description["components"] = {"schemas": {**OPENAPI["components"]["schemas"]}}
    description["components"]["schemas"]["New"] = {
        "required": ["a\nname: other"],
        "properties": {"text": {}, "user_id": {}, "a\nname: other": {}},
    }
    stub.always(reply(description), path="/openapi.json")
    said = command("init", "provider", "mine", "--probe", stub.url)
    assert said.code == 0, said.err
    assert 'config "mine"' in said.out


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("provider", "bm25"),
        ("provider", "none"),
        ("benchmark", "starter"),
        ("extractor", "hoarder"),
        ("scenario", "memory-no-pollution"),
    ],
)
def test_a_bundled_name_is_refused(command: Command, kind: str, name: str) -> None:
    said = command("init", kind, name)
    assert said.code == 2
    assert name in said.err
    assert list(command.folder.iterdir()) == []


def test_a_name_that_begins_with_a_digit_gives_valid_variables(command: Command) -> None:
    assert command("init", "provider", "3rd").code == 0
    assert command("validate", "providers/configs/3rd.yaml").code == 0


def test_a_server_without_a_description_gives_examples(command: Command, stub: Stub) -> None:
    said = command("init", "provider", "mine", "--probe", stub.url)
    assert said.code == 0, said.err
    assert "no OpenAPI description" in said.out
    assert "/healthz" in said.out
    assert stub.url in (command.folder / FILES["provider"]).read_text()


@pytest.mark.parametrize("answer", [reply([1]), reply({"paths": 3}), reply({"paths": {"/x": 3}}), reply("openapi")])
def test_an_unusable_description_is_not_an_error(command: Command, stub: Stub, answer: Any) -> None:
    stub.always(answer, path="/openapi.json")
    assert command("init", "provider", "mine", "--probe", stub.url).code == 0
    assert command("validate", FILES["provider"]).code == 0


def test_another_server_is_not_asked(command: Command, stub: Stub) -> None:
    with Stub() as other:
        stub.always(redirect(f"{other.url}/openapi.json"), path="/openapi.json")
        assert command("init", "provider", "mine", "--probe", stub.url).code == 0
        assert other.calls == []


def test_a_server_that_does_not_answer_writes_nothing(command: Command) -> None:
    said = command("init", "provider", "mine", "--probe", "http://127.0.0.1:9")
    assert said.code == 2
    assert "--probe" in said.err
    assert not Path(command.folder / "providers").exists()
