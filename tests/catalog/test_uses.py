"""What a config uses, found without running anything."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from memorybench.catalog.catalog import Catalog
from memorybench.catalog.uses import uses_of
from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.core.uses import Use, Uses
from memorybench.files.located import Document
from memorybench.providers.config.reading import read_provider
from tests.doubles.hostile_folder import http_provider

HTTP = """
name: notes
type: hosted
connection: {baseUrl: "${NOTES_URL:-https://notes.example}/api/${TENANT}"}
auth: {type: bearer, envVar: NOTES_KEY}
endpoints:
  add: {method: POST, path: /add, headers: {X-Team: "${TEAM:-none}"}, body: {scope: "${scope}", url: "${HOME}",
    text: "${content}"}}
  search: {method: POST, path: /search, body: {scope: "${scope}", q: "${query}"},
    response: {results: $.r, contentField: $.c}}
"""
MCP = """
name: notes
type: local
adapter: builtin:mcp
mcp:
  %s
  tools:
    add: {tool: add, arguments: {text: "${content}", scope: "${scope}"}}
    clear: {tool: clear, arguments: {scope: "${scope}"}}
    search: {tool: find, arguments: {q: "${query}", scope: "${scope}"}, response: {results: $, contentField: $.text}}
"""


def read(folder: Path, text: str, kind: str = "provider", environment: Mapping[str, str] | None = None) -> Uses:
    file = folder / f"{kind}s" / "configs" / "notes.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    config: Record = getattr(Catalog(folder), kind)("notes")
    return uses_of(config, file, environment or {})


def test_http_config_lists_host_key_and_other_variables(tmp_path: Path) -> None:
    uses = read(tmp_path, HTTP)
    host = "https://notes.example"
    assert uses.hosts == (Use(host, "connection.baseUrl"),)
    assert uses.credentials == (Use("NOTES_KEY", "auth.envVar", host),)
    assert not uses.code
    assert set(uses.other_variables) == {
        Use("NOTES_URL", "connection.baseUrl"),  # the address itself
        Use("TENANT", "connection.baseUrl", host),
        Use("TEAM", "endpoints.add.headers.X-Team", host),
        Use("HOME", "endpoints.add.body.url", host),
    }


def test_host_follows_the_variable_that_begins_an_address(tmp_path: Path) -> None:
    uses = read(tmp_path, HTTP, environment={"NOTES_URL": "https://me:pw@other.example:8443"})
    assert uses.hosts[0].value == "https://other.example:8443"


def test_program_of_an_mcp_server(tmp_path: Path) -> None:
    uses = read(tmp_path, MCP % 'command: [sh, -c, "touch x"]\n  env: {KEY: "${SOME_KEY}"}')
    assert uses.programs == (Use("sh -c 'touch x'", "mcp.command"),)
    assert uses.other_variables == (Use("SOME_KEY", "mcp.env.KEY", "sh"),)


def test_authorization_is_the_credential_of_an_mcp_server(tmp_path: Path) -> None:
    headers = 'headers: {Authorization: "Bearer ${MY_KEY}", X-Also: "${OTHER}"}'
    uses = read(tmp_path, MCP % f"url: https://mcp.example/mcp\n  {headers}")
    assert uses.credentials == (Use("MY_KEY", "mcp.headers.Authorization", "https://mcp.example"),)
    assert uses.other_variables == (Use("OTHER", "mcp.headers.X-Also", "https://mcp.example"),)


def test_several_variables_in_authorization_are_no_credential(tmp_path: Path) -> None:
    uses = read(tmp_path, MCP % 'url: https://mcp.example/mcp\n  headers: {Authorization: "${A} ${B}"}')
    assert not uses.credentials
    assert [use.value for use in uses.other_variables] == ["A", "B"]


def test_python_file_of_an_adapter(tmp_path: Path) -> None:
    (tmp_path / "providers" / "configs").mkdir(parents=True)
    file = tmp_path / "providers" / "configs" / "code.py"
    file.write_text("raise SystemExit")
    uses = read(tmp_path, "name: notes\ntype: local\nadapter: ./code.py:Notes\n")
    assert uses.modules == (Use(f"{file}:Notes", "adapter"),)


def test_containers_and_their_images(tmp_path: Path) -> None:
    text = HTTP.replace("type: hosted", "type: docker").replace(
        'connection: {baseUrl: "${NOTES_URL:-https://notes.example}/api/${TENANT}"}',
        "docker: {compose: ./compose.yaml, service: api, healthcheck: 'http://localhost:1/h', "
        "baseUrl: 'http://localhost:1'}",
    )
    folder = tmp_path / "providers" / "configs"
    folder.mkdir(parents=True)
    (folder / "compose.yaml").write_text("services:\n  api:\n    image: evil/image:1\n")
    uses = read(tmp_path, text)
    assert uses.programs == (Use(f"docker compose -f {folder / 'compose.yaml'} up -d", "docker.compose"),)
    assert uses.images == (Use("evil/image:1", "docker.compose"),)


def test_sql_of_a_database(tmp_path: Path) -> None:
    folder = tmp_path / "providers" / "configs"
    folder.mkdir(parents=True)
    (folder / "schema.sql").write_text("DROP TABLE\n  users;")
    database = "{type: postgres, connectionString: '${DATABASE_URL}', schema: ./schema.sql}"
    uses = read(tmp_path, f"name: notes\ntype: local\nadapter: builtin:aqrag\nlocal:\n  database: {database}\n")
    assert uses.sql[0] == Use(f"{folder / 'schema.sql'}: DROP TABLE users;", "local.database.schema")
    assert uses.sql[1].key == "local.database.connectionString"
    assert "DATABASE_URL" in {use.value for use in uses.credentials}


def test_key_of_an_embedder_goes_to_the_host_of_the_config(tmp_path: Path) -> None:
    text = HTTP + "embedding: {provider: openai, baseUrl: 'https://evil.example/v1'}\n"
    keys = read(tmp_path, text.replace("q: ", "v: $.embedding, q: ")).credentials
    assert Use("OPENAI_API_KEY", "embedding.provider", "https://evil.example") in keys


@pytest.mark.parametrize("kind", ["provider", "store", "extractor", "agent", "benchmark"])
def test_every_bundled_config_can_be_examined(kind: str, tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    for entry in catalog.entries(kind):  # type: ignore[arg-type]
        assert not uses_of(getattr(catalog, kind)(entry.name), entry.file, {}).sql


def leaves(value: object, place: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*place, index))
    elif isinstance(value, str):
        yield place


def test_a_variable_is_found_wherever_it_is_sent() -> None:
    """Every text of a config that stays valid with a variable behind it."""
    request = {"method": "POST", "path": "/x", "query": {"a": "b"}, "headers": {"A": "b"}, "body": {"s": ["${scope}"]}}
    config = http_provider(
        "https://notes.example",
        auth={"type": "bearer", "header": "X-Key", "prefix": "Key ", "envVar": "NOTES_KEY"},
        setup=[{**request, "captures": {"space": "$.id"}}],
        teardown=[request],
    )
    config["endpoints"]["add"] |= {"query": {"a": "b"}, "headers": {"A": "b"}}
    found, hidden = 0, []
    for place in leaves(config):
        changed = copy.deepcopy(config)
        part: Any = changed
        for key in place[:-1]:
            part = part[key]
        part[place[-1]] += "${SENTINEL}"
        try:
            read = read_provider(Document("notes.yaml", {"name": "notes", **changed}))
        except BadInput:
            continue
        found += 1
        uses = uses_of(read, None, {}).other_variables
        if not any(use.value == "SENTINEL" and use.to for use in uses):
            hidden.append(place)
    assert not hidden
    assert found > 15
