from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from memorybench.core.errors import BadInput
from memorybench.files.located import Document
from memorybench.files.yaml_file import parse_yaml
from memorybench.providers.config.provider import ProviderConfig
from memorybench.providers.config.reading import needed_variables, read_provider
from memorybench.providers.config.requests import Poll, Probe

HOSTED = """\
name: sample
type: hosted
connection:
  baseUrl: https://api.example.com/v1
endpoints:
  add:
    method: POST
    path: /documents
    body: {content: "$.content", user: "$.scope"}
  search:
    method: POST
    path: /search
    body: {query: "$.query", user: "$.scope", top_k: "$.limit"}
    response: {results: "$.results", contentField: "$.memory | $.chunk", scoreField: "$.score"}
"""


def document(text: str) -> Document:
    return parse_yaml(text, "sample.yaml")


def error_line(text: str, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(BadInput) as caught:
        read_provider(document(text), environment)
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith("sample.yaml:")
    return line


def changed(old: str, new: str) -> str:
    assert old in HOSTED
    return HOSTED.replace(old, new)


def test_minimal_hosted_provider() -> None:
    config = read_provider(document(HOSTED))
    assert config.connection.timeout == 30_000
    assert config.auth.type == "none"
    assert (config.rate_limit.batch_delay_ms, config.rate_limit.max_retries, config.rate_limit.retry_delay_ms) == (
        1000,
        3,
        2000,
    )
    assert config.endpoints is not None
    assert config.endpoints.search.response.score_direction == "higher"


def test_snake_case_keys_are_equivalent() -> None:
    snake = HOSTED
    for written, other in (("baseUrl", "base_url"), ("contentField", "content_field"), ("scoreField", "score_field")):
        snake = snake.replace(written, other)
    assert read_provider(document(snake)) == read_provider(document(HOSTED))


EVERYTHING = """\
name: everything
displayName: Everything
description: All that a hosted config can say
type: hosted
apiVersion: v4
checkedAgainst: its own client 1.2
tags: [graph]
connection: {baseUrl: "${SAMPLE_URL:-https://api.example.com}", timeout: 5000}
auth: {type: apikey, header: X-Key, prefix: "Api-Key ", envVar: SAMPLE_KEY}
scoping: {strategy: custom, runIdFormat: "bench-${runId}"}
embedding: {provider: openai, model: text-embedding-3-small, dimensions: 256, envVar: OPENAI_API_KEY}
setup:
  - {method: POST, path: /users, body: {user_id: "$.scope"}, captures: {userUuid: "$.uuid"}}
  - method: POST
    path: /users/${userUuid}/threads
    captures: {threadUuid: "$.uuid"}
    wait: {method: GET, path: "/tasks/${pollId}", id: "$.task", status: "$.status", done: [ready]}
endpoints:
  add:
    method: POST
    path: /threads/${threadUuid}/messages
    unit: message
    headers: {X-Project: "${PROJECT}"}
    query: {sync: false}
    body: {id: "$.documentId", messages: "$.messages", at: "$.date", vector: "$.embedding", meta: "$.metadata"}
    captures: {taskId: "$.task_id"}
    wait:
      method: GET
      path: /tasks/${taskId}/${pollId}
      id: $.task_ids[*]
      status: $.status
      done: [done]
      failed: [failed, lost]
      interval: 500
      timeout: 60000
  batchAdd:
    method: POST
    path: /threads/${threadUuid}/batch
    document: {id: "$.documentId", text: "$.content"}
    body: {ids: "$.documents[*].id", documents: "$.documents"}
    wait: probe
  search:
    method: POST
    path: /graph/${userUuid}/search
    tokenBudget: 2000
    body: {q: "$.query", vector: "$.embedding", max_tokens: "$.tokenBudget"}
    response:
      zip: {content: "$.documents[0]", score: "$.distances[0]", id: "$.ids[0]"}
      scoreDirection: lower
  clear: {method: DELETE, path: "/users/${userUuid}"}
  list: {method: GET, path: "/users/${userUuid}/all", response: {results: "$.edges", contentField: "$.fact"}}
teardown:
  - {method: DELETE, path: "/threads/${threadUuid}"}
limits: {batchSize: 30, maxMessages: 30, maxCharacters: 4096, maxQueryCharacters: 400, maxResults: 50}
capabilities: {supportsBatch: true, supportsMetadata: true, supportsRerank: true, unordered: true}
rateLimit: {concurrency: 4, requestsPerSecond: 2.5, maxRetries: 1}
"""


def test_config_supports_the_requests_of_known_systems() -> None:
    config = read_provider(document(EVERYTHING))
    assert config.endpoints is not None
    assert isinstance(config.endpoints.add.wait, Poll)
    assert config.endpoints.add.wait.failed == ("failed", "lost")
    assert config.endpoints.batch_add is not None
    assert isinstance(config.endpoints.batch_add.wait, Probe)
    assert config.endpoints.search.response.zip is not None
    assert config.setup[0].captures == {"userUuid": "$.uuid"}


def test_without_an_environment_references_stay_as_written() -> None:
    assert read_provider(document(EVERYTHING)).connection.base_url == "${SAMPLE_URL:-https://api.example.com}"


def test_with_an_environment_references_are_filled_in() -> None:
    environment = {"PROJECT": "p1", "SAMPLE_URL": "https://eu.example.com"}
    config = read_provider(document(EVERYTHING), environment)
    assert config.connection.base_url == "https://eu.example.com"
    assert config.endpoints is not None
    assert config.endpoints.add.headers == {"X-Project": "p1"}


def test_a_missing_variable_is_named_with_its_file_and_only_when_chosen() -> None:
    assert "PROJECT is not set" in error_line(EVERYTHING, {})
    assert "sample.yaml:23: endpoints.add.headers.X-Project" in error_line(EVERYTHING, {})


def test_needed_variables_report_which_are_set() -> None:
    config = read_provider(document(EVERYTHING))
    assert needed_variables(config, {"SAMPLE_KEY": "k", "PROJECT": ""}) == {
        "SAMPLE_KEY": True,
        "OPENAI_API_KEY": False,
        "PROJECT": False,
    }


def test_address_from_the_environment_is_checked() -> None:
    text = changed("https://api.example.com/v1", "${SAMPLE_URL}")
    read_provider(document(text))
    assert ": connection.baseUrl: " in error_line(text, {"SAMPLE_URL": "file:///etc/passwd"})


@pytest.mark.parametrize(
    ("address", "keyword"),
    [
        ("file:///etc/passwd", ""),
        ("ftp://example.com", ""),
        ("api.example.com", ""),
        ("${SAMPLE_URL:-file:///etc/passwd}", ""),
        ("http://example.com", "connection.insecure: true"),
        ("http://localhost.example.com", "connection.insecure: true"),
        ("http://169.254.169.254", "169.254.169.254"),
        ("http://[::1", ""),
    ],
)
def test_forbidden_addresses_are_an_error(address: str, keyword: str) -> None:
    line = error_line(changed("https://api.example.com/v1", f'"{address}"'))
    assert line.startswith("sample.yaml:4: connection.baseUrl: ")
    assert keyword in line


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "memory.localhost"])
def test_plain_http_is_allowed_on_loopback(host: str) -> None:
    config = read_provider(document(changed("https://api.example.com", f"http://{host}:8000")))
    assert config.connection is not None
    assert config.connection.base_url.startswith(f"http://{host}:8000")


def test_plain_http_to_other_hosts_needs_insecure() -> None:
    config = read_provider(document(changed("https://api.example.com/v1", "http://10.0.0.7\n  insecure: true")))
    assert config.connection is not None
    assert config.connection.insecure
    assert "insecure" in error_line(changed("https://api.example.com/v1", "http://10.0.0.7"))


def test_password_in_an_address_is_an_error_and_not_shown() -> None:
    line = error_line(changed("https://api", "https://me:hunter2@api"))
    assert "contains a user name or password" in line
    assert "hunter2" not in line


def test_key_instead_of_a_variable_name_is_an_error_and_not_shown() -> None:
    line = error_line(HOSTED + "auth: {type: bearer, envVar: sk-abc123}\n")
    assert "auth.envVar: invalid name" in line
    assert "abc123" not in line


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("name: sample", "name: Sample One", 'sample.yaml:1: name: "Sample One" is not a valid name'),
        ("type: hosted", "type: hostd", 'did you mean "hosted"?'),
        ("baseUrl:", "baseURL:", 'did you mean "baseUrl"?'),
        ("path: /search", "pathh: /search", 'did you mean "path"?'),
        ("path: /search", "path: search", "invalid path"),
        ("path: /search", "path: https://elsewhere.example.com/search", "invalid path"),
        ('"$.content"', '"$.contents"', 'sample.yaml:9: endpoints.add.body.content: unknown variable "contents"'),
        ('"$.content"', '"$.contents"', 'did you mean "content"?'),
        ('"$.content"', '"${contnet}"', 'did you mean "content"?'),
        ('"$.content"', '"$.id"', 'did you mean "documentId"?'),
        ('"$.query"', '"$.content"', "it is available in add only"),
        ('"$.content"', '"${query}"', "it is available in search only"),
        ("path: /search", 'path: "/${collectionId}/search"', "captures: {collectionId: $.id}"),
        ('"$.content"', '"${content.trim()}"', "is not a valid placeholder"),
        ('"$.content"', '"$.embedding"', "add a section embedding"),
        ('"$.results"', '"$.results["', "is not a valid JSONPath"),
        ('"$.results"', '"$.results["', "at column"),
        ('"$.score"', '"$..["', "endpoints.search.response.scoreField"),
        ('results: "$.results", ', "", '"results" is missing'),
        ('contentField: "$.memory | $.chunk", ', "", '"contentField" is missing'),
        ('results: "$.results"', 'zip: {content: "$.a"}, results: "$.results"', "zip cannot be combined"),
        ("type: hosted", "type: hosted\nadapter: builtin:bm25", "has no effect with type: hosted"),
        ("type: hosted", "type: hosted\nauth: {type: bearer}", '"envVar" is missing'),
        ("type: hosted", "type: hosted\ncapabilities: {supportsBatch: true}", "add endpoints.batchAdd"),
        ("type: hosted", 'type: hosted\nscoping: {runIdFormat: "${runID}"}', 'did you mean "runId"?'),
        ("  baseUrl: https://api.example.com/v1", "  timeout: 10", '"baseUrl" is missing'),
    ],
)
def test_errors_are_one_line(old: str, new: str, problem: str) -> None:
    assert problem in error_line(changed(old, new))


def test_capabilities_must_match_the_endpoints() -> None:
    metadata = changed('user: "$.scope"}', 'user: "$.scope", meta: "$.metadata"}')
    assert "capabilities.supportsMetadata" in error_line(metadata + "capabilities: {supportsMetadata: false}\n")
    chunks = changed("contentField", 'chunksField: "$.chunks", contentField')
    assert "has a chunksField" in error_line(chunks + "capabilities: {supportsChunks: false}\n")


@pytest.mark.parametrize("endpoint", ["add", "search"])
def test_request_without_the_scope_is_an_error(endpoint: str) -> None:
    lines = HOSTED.splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if line.startswith(f"  {endpoint}:"))
    at += next(i for i, line in enumerate(lines[at:]) if "$.scope" in line)
    lines[at] = lines[at].replace('"$.scope"', '"everyone"')
    line = error_line("".join(lines))
    assert f"endpoints.{endpoint}: the request does not send the scope" in line


def test_clear_must_name_the_scope() -> None:
    text = HOSTED + "  clear: {method: DELETE, path: /everything}\n"
    assert "endpoints.clear: the request does not send the scope" in error_line(text)


def test_run_and_haystack_ids_do_not_name_a_scope() -> None:
    assert "does not send the scope" in error_line(HOSTED.replace('"$.scope"', '"${runId}"'))


CAPTURED = changed('user: "$.scope"', 'user: "$.userUuid"').replace('user: "$.scope"', 'user: "$.userUuid"')


def test_id_captured_for_a_scope_names_it() -> None:
    setup = 'setup: [{method: POST, path: /users, body: {id: "$.scope"}, captures: {userUuid: "$.uuid"}}]\n'
    read_provider(document(CAPTURED + setup))
    strict = CAPTURED + setup + "scoping: {strategy: userId}\n"
    assert "does not send the scope" in error_line(strict)


def test_id_captured_without_the_scope_does_not_name_it() -> None:
    setup = 'setup: [{method: POST, path: /users, captures: {userUuid: "$.uuid"}}]\n'
    assert "does not send the scope" in error_line(CAPTURED + setup)


def test_a_variable_is_captured_before_it_is_used() -> None:
    first = '  - {method: POST, path: "/a/${later}"}\n'
    second = '  - {method: POST, path: /b, captures: {later: "$.id"}}\n'
    read_provider(document(HOSTED + "setup:\n" + second + first))
    assert 'setup[0].path: unknown variable "later"' in error_line(HOSTED + "setup:\n" + first + second)


@pytest.mark.parametrize(
    ("capture", "problem"),
    [
        ("scope: $.id", "choose another name"),
        ("user-id: $.id", "invalid variable name"),
        ("userUuid: '$.['", "is not a valid JSONPath"),
    ],
)
def test_captures_have_usable_names_and_paths(capture: str, problem: str) -> None:
    assert problem in error_line(HOSTED + f"setup: [{{method: POST, path: /users, captures: {{{capture}}}}}]\n")


def test_a_wait_is_checked_like_any_request() -> None:
    wait = 'wait: {method: GET, path: "/tasks/${taskId}", status: "$.status", done: [ok]}'
    text = changed("path: /documents", f"path: /documents\n    {wait}")
    assert 'endpoints.add.wait.path: unknown variable "taskId"' in error_line(text)
    read_provider(document(text.replace("taskId", "documentId")))
    assert "endpoints.add.wait.status" in error_line(text.replace("taskId", "pollId").replace('"$.status"', '"$.["'))


def test_probe_is_supported_for_adds_only() -> None:
    assert "endpoints.clear.wait" in error_line(
        HOSTED + '  clear: {method: DELETE, path: "/u/${scope}", wait: probe}\n'
    )
    config = read_provider(
        document(changed("path: /documents", "path: /documents\n    wait: {mode: probe, timeout: 900}"))
    )
    assert config.endpoints is not None
    assert config.endpoints.add.wait is not None


LOCAL = "name: sample\ntype: local\nadapter: ADAPTER\n"


@pytest.mark.parametrize("adapter", ["builtin:bm25", "plugin:their-memory", "./adapters/mine.py:Mine"])
def test_a_local_provider_is_python(adapter: str) -> None:
    assert read_provider(document(LOCAL.replace("ADAPTER", adapter))).adapter == adapter


@pytest.mark.parametrize(
    ("adapter", "problem"),
    [
        ("./adapters/aqrag.ts", 'set "./adapters/aqrag.py:Aqrag"'),
        ("./adapters/contextual-retrieval.ts", '"./adapters/contextual-retrieval.py:ContextualRetrieval"'),
        ("builtin:bm52", 'did you mean "bm25"?'),
        ("plugin:../x", "is not a valid name"),
        ("./adapters/mine.py", "./file.py:Class"),
    ],
)
def test_unsupported_adapter_is_an_error_with_remedy(adapter: str, problem: str) -> None:
    assert problem in error_line(LOCAL.replace("ADAPTER", adapter))


def test_local_settings_are_checked() -> None:
    mine = LOCAL.replace("ADAPTER", "./mine.py:Mine")
    config = read_provider(
        document(mine + "local: {database: {schema: ./tables.sql}, chunking: {size: 10, overlap: 2}}")
    )
    assert config.local is not None
    assert config.local.database.schema_file == "./tables.sql"
    assert "local.chunking.overlap" in error_line(mine + "local: {chunking: {size: 10, overlap: 10}}")
    assert '"connectionString" is missing' in error_line(mine + "local: {database: {type: postgres}}")
    built_in = LOCAL.replace("ADAPTER", "builtin:bm25")
    assert "has no effect with adapter: builtin:bm25" in error_line(
        built_in + "local: {chunking: {size: 10, overlap: 2}}"
    )
    assert "endpoints: this key has no effect with type: local" in error_line(
        mine + HOSTED[HOSTED.index("endpoints") :]
    )


def test_each_type_reports_its_missing_keys() -> None:
    assert '"endpoints" is missing' in error_line("name: a\ntype: hosted\nconnection: {baseUrl: https://a.example}")
    assert '"adapter" is missing' in error_line("name: a\ntype: local")
    assert '"docker" is missing' in error_line("name: a\ntype: docker\n" + HOSTED[HOSTED.index("endpoints") :])


DOCKER = HOSTED.replace("type: hosted", "type: docker").replace(
    "connection:\n  baseUrl: https://api.example.com/v1\n",
    "docker: {compose: ./compose.yml, service: memory, healthcheck: 'http://localhost:9/h', baseUrl: 'http://localhost:9'}\n",
)


def test_a_container_speaks_http_on_this_machine() -> None:
    assert read_provider(document(DOCKER)).docker is not None
    assert "docker.healthcheck" in error_line(DOCKER.replace("'http://localhost:9/h'", "'http://10.1.2.3/h'"))
    assert "use docker.baseUrl" in error_line(DOCKER + "connection: {baseUrl: 'http://localhost:9'}\n")


@pytest.mark.parametrize(
    ("base", "endpoint", "replacement"),
    [
        ("https://api.mem0.ai/v1", "search: POST /memories/search/", "/v3/memories/search/"),
        ("https://api.mem0.ai", "add: POST /v1/memories/", "/v3/memories/add/"),
        ("https://api.supermemory.ai/v4", "clear: DELETE /containers/${scope}", "/v3/container-tags/${scope}"),
    ],
)
def test_retired_requests_are_an_error_with_replacement(base: str, endpoint: str, replacement: str) -> None:
    name, method, path = endpoint.replace(":", "").split()
    text = HOSTED.replace("https://api.example.com/v1", base)
    if name == "clear":
        text += f'  clear: {{method: {method}, path: "{path}"}}\n'
    else:
        text = text.replace({"add": "/documents", "search": "/search"}[name], path)
    assert replacement in error_line(text)
    read_provider(document(text.replace(base, "https://api.example.com/v1")))


def test_config_round_trips_through_json() -> None:
    config = read_provider(document(EVERYTHING))
    stored: dict[str, Any] = json.loads(json.dumps(config.model_dump(mode="json", by_alias=True)))
    assert ProviderConfig.model_validate(stored) == config


ODD = (None, True, -1, "", "$.[", "${", "${X:?y}", "http://[${H}", [[]], {"a": {"b": "$.["}})


@pytest.mark.slow
def test_any_value_is_read_or_is_a_one_line_error() -> None:
    whole = document(EVERYTHING).value
    error_lines = [problem(replace_value(whole, place, odd)) for place in places(whole) for odd in ODD]
    assert sum(line is not None for line in error_lines) > 500
    assert not any("\n" in line for line in error_lines if line)


def problem(value: Any) -> str | None:
    try:
        read_provider(Document("sample.yaml", value))
    except BadInput as bad:
        return str(bad)
    return None


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in members:
        yield from places(inner, (*place, step))


def replace_value(value: Any, place: tuple[Any, ...], odd: Any) -> Any:
    if not place:
        return odd
    step, *rest = place
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[step] = replace_value(value[step], tuple(rest), odd)
    return changed
