"""Requests are sent as the YAML describes them, always with a scope."""

from __future__ import annotations

import asyncio
import json

import pytest

from memorybench.core.contracts import Batching, Listing, Receipt
from memorybench.core.errors import BadInput, Lacking, Malformed, ServiceError, Transient
from memorybench.providers.http.provider import HttpProvider
from memorybench.providers.http.waiting import Pacer
from tests.doubles.stub import Stub, raw, reply, status
from tests.providers.http_memory import BATCHED, CONFIG, KEY, MemoryService
from tests.providers.http_opening import HOME, run_with_provider, session

PLAIN = """\
name: plain
type: hosted
connection: {baseUrl: "URL/v1/"}
endpoints:
  add: {method: POST, path: /add, body: {text: "$.content", user: "$.scope"}}
  search:
    method: POST
    path: /search
    body: {query: "$.query", user: "$.scope", k: "$.limit"}
    response: {results: $.results, contentField: $.text}
"""
CAPTURING = """\
name: capturing
type: hosted
connection: {baseUrl: "URL"}
setup:
  - {method: POST, path: /users, body: {id: "$.scope"}, captures: {userUuid: $.uuid}}
  - {method: POST, path: "/users/${userUuid}/threads", captures: {threadUuid: $.uuid}}
endpoints:
  add: {method: POST, path: "/threads/${threadUuid}/messages", body: {text: "$.content", id: "$.documentId"}}
  search:
    method: GET
    path: /graph/${userUuid}
    query: {q: "$.query"}
    response: {results: $.facts, contentField: $.fact, sourcesField: $.document}
  clear: {method: DELETE, path: "/threads/${threadUuid}"}
teardown:
  - {method: DELETE, path: "/users/${userUuid}"}
"""
SESSION = session("topic", "My cat is Otto.")


@pytest.fixture
def stub(stub: Stub) -> Stub:
    stub.always(reply({"results": [], "facts": []}))
    return stub


def requests(stub: Stub) -> list[str]:
    return [f"{call.method} {call.path}" for call in stub.calls]


async def fill(provider: HttpProvider) -> Receipt:
    return await provider.add(HOME, SESSION)


def test_values_keep_their_types_and_the_base_url_its_path(stub: Stub) -> None:
    run_with_provider(PLAIN, stub.url, lambda provider: provider.search(HOME, "cats", 7))
    [call] = stub.calls
    assert call.path == "/v1/search"
    assert call.json["k"] == 7
    assert call.json["user"].startswith("test-run-1-home-")


@pytest.mark.parametrize(
    ("auth", "header", "value"),
    [
        ("{type: bearer, envVar: K}", "Authorization", f"Bearer {KEY}"),
        ("{type: token, envVar: K}", "Authorization", f"Token {KEY}"),
        ("{type: apikey, header: X-Key, envVar: K}", "X-Key", KEY),
        ("{type: apikey, prefix: 'Api-Key ', envVar: K}", "Authorization", f"Api-Key {KEY}"),
        ("{type: none}", "Authorization", None),
    ],
)
def test_each_auth_type_sends_its_header(stub: Stub, auth: str, header: str, value: str | None) -> None:
    run_with_provider(PLAIN + f"auth: {auth}\n", stub.url, fill)
    assert stub.calls[0].headers.get(header) == value


def test_missing_key_is_an_error_at_opening(stub: Stub) -> None:
    with pytest.raises(BadInput, match="PLAIN_KEY is not set"):
        run_with_provider(PLAIN + "auth: {type: bearer, envVar: PLAIN_KEY}\n", stub.url, fill, key=None)
    assert stub.calls == []


def test_path_query_headers_and_body_are_filled_in(stub: Stub) -> None:
    text = PLAIN.replace(
        'path: /add, body: {text: "$.content", user: "$.scope"}',
        'path: "/add/${scope}/${documentId}", query: {tags: [a, b], at: "$.date", sync: true}, '
        'headers: {X-Space: "s-${scope}", X-Env: "${PROJECT}"}, '
        'body: {text: "<${content}>", when: {at: "$.date", epoch: "$.epoch"}, kept: null}',
    )
    run_with_provider(text, stub.url, fill, environment={"PROJECT": "p1"})
    [call] = stub.calls
    scope = call.path.split("/")[3]
    assert call.path.startswith("/v1/add/test-run-1-home-")
    assert call.query.getall("tags") == ["a", "b"]  # type: ignore[attr-defined]
    assert "at" not in call.query
    assert call.query["sync"] == "true"
    assert (call.headers["X-Space"], call.headers["X-Env"]) == (f"s-{scope}", "p1")
    # an undated session has no date to send, and null is what few APIs want to hear; a null of the config stays
    assert call.json == {"text": "<user: My cat is Otto.>", "when": {}, "kept": None}


def test_a_get_sends_its_body_as_the_query_string(stub: Stub) -> None:
    text = PLAIN.replace("method: POST\n    path: /search", "method: GET\n    path: /search")
    run_with_provider(text, stub.url, lambda provider: provider.search(HOME, "cats & dogs", 7))
    [call] = stub.calls
    assert not call.body
    assert (call.query["query"], call.query["k"]) == ("cats & dogs", "7")


def test_ids_of_a_service_are_quoted_in_paths(stub: Stub) -> None:
    stub.next(reply({"uuid": "a b?#1"}), path="/users")
    stub.always(reply({"uuid": "t"}))
    run_with_provider(CAPTURING, stub.url, fill)
    assert requests(stub)[1] == "POST /users/a b?#1/threads"


@pytest.mark.parametrize("uuid", [None, "", True, {"id": 1}, [], "..", "."])
def test_null_id_never_becomes_part_of_a_path(stub: Stub, uuid: object) -> None:
    stub.next(reply({"uuid": uuid}), path="/users")
    with pytest.raises(ServiceError, match=r"userUuid"):
        run_with_provider(CAPTURING, stub.url, fill)
    assert requests(stub) == ["POST /users"]


def test_setup_runs_once_in_order_and_its_captures_are_used(stub: Stub) -> None:
    stub.next(reply({"uuid": "u1"}), reply({"uuid": 22}))

    async def live(provider: HttpProvider) -> None:
        await asyncio.gather(provider.add(HOME, SESSION), provider.add(HOME, session("more", "It is grey.")))
        await provider.search(HOME, "cat", 3)

    run_with_provider(CAPTURING, stub.url, live)
    adds = ["POST /threads/22/messages"] * 2
    assert requests(stub) == ["POST /users", "POST /users/u1/threads", *adds, "GET /graph/u1"]


def test_failed_setup_continues_where_it_stopped(stub: Stub) -> None:
    stub.next(reply({"uuid": "u1"}), status(503), reply({"uuid": "t1"}))

    async def live(provider: HttpProvider) -> None:
        with pytest.raises(Transient):
            await provider.add(HOME, SESSION)
        await provider.add(HOME, SESSION)

    run_with_provider(CAPTURING, stub.url, live)
    threads = ["POST /users/u1/threads"] * 2
    assert requests(stub) == ["POST /users", *threads, "POST /threads/t1/messages"]


def test_another_process_uses_the_ids_of_the_first(stub: Stub) -> None:
    stub.next(reply({"uuid": "u1"}), reply({"uuid": "t1"}))
    receipt = run_with_provider(CAPTURING, stub.url, fill)
    receipt = Receipt.model_validate_json(receipt.model_dump_json())  # as the journal keeps it
    stub.next(reply({"facts": [{"fact": "Otto is a cat", "document": receipt.ids[0]}]}), path="/graph/u1")

    async def resume(provider: HttpProvider) -> None:
        provider.restore(HOME, [receipt])
        await provider.add(HOME, session("more", "It is grey."))
        [memories] = await provider.search(HOME, "cat", 3)
        assert memories.sources == ("topic", "topic:1")
        await provider.clear(HOME)

    run_with_provider(CAPTURING, stub.url, resume)
    assert requests(stub)[3:] == [
        "POST /threads/t1/messages",
        "GET /graph/u1",
        "DELETE /threads/t1",
        "DELETE /users/u1",
    ]


def test_scope_with_unknown_ids_is_an_error(stub: Stub) -> None:
    for work in (lambda provider: provider.search(HOME, "cat", 3), lambda provider: provider.clear(HOME)):
        with pytest.raises(ServiceError, match="userUuid is unknown for scope"):
            run_with_provider(CAPTURING, stub.url, work)
    assert stub.calls == []


def test_search_after_a_clear_sends_nothing(stub: Stub) -> None:
    stub.next(reply({"uuid": "u1"}), reply({"uuid": "t1"}))

    async def live(provider: HttpProvider) -> None:
        await provider.add(HOME, SESSION)
        await provider.clear(HOME)
        before = len(stub.calls)
        assert await provider.search(HOME, "cat", 3) == []
        await provider.clear(HOME)
        assert len(stub.calls) == before

    run_with_provider(CAPTURING, stub.url, live)


def test_failed_clear_raises(stub: Stub) -> None:
    stub.next(reply({"uuid": "u1"}), reply({"uuid": "t1"}), reply({}), reply({}), status(500))

    async def live(provider: HttpProvider) -> None:
        await provider.add(HOME, SESSION)
        with pytest.raises(Transient, match=r"DELETE .*/users/u1: HTTP 500"):
            await provider.clear(HOME)

    run_with_provider(CAPTURING, stub.url, live)


def test_config_without_clear_is_lacking(stub: Stub) -> None:
    with pytest.raises(Lacking, match="no endpoint that clears"):
        run_with_provider(PLAIN, stub.url, lambda provider: provider.clear(HOME))


def test_only_accepted_statuses_are_not_failures(stub: Stub) -> None:
    text = PLAIN.replace("k: ", "top: ").replace("    response", "    accept: [404]\n    response")
    stub.next(status(404), status(410))
    assert run_with_provider(text, stub.url, lambda provider: provider.search(HOME, "cats", 3)) == []
    with pytest.raises(ServiceError, match="HTTP 410"):
        run_with_provider(text, stub.url, lambda provider: provider.search(HOME, "cats", 3))


@pytest.mark.parametrize("written", ["${benchmarkId}-${runId}-${haystackId}", "bench_${runId}", "same"])
def test_scope_names_are_unique_with_any_format(stub: Stub, written: str) -> None:
    others = [HOME.model_copy(update={part: "Other/1"}) for part in ("run", "benchmark", "provider", "haystack")]

    async def live(provider: HttpProvider) -> None:
        for scope in (HOME, *others):
            await provider.add(scope, SESSION)

    run_with_provider(PLAIN + f"scoping: {{runIdFormat: '{written}'}}\n", stub.url, live)
    names = [call.json["user"] for call in stub.calls]
    assert len(set(names)) == 5
    for name in names:
        assert len(name) <= 80
        assert name.replace("-", "").replace("_", "").isalnum()


def test_three_names_of_a_scope_have_one_value(stub: Stub) -> None:
    text = PLAIN.replace('{text: "$.content", user: "$.scope"}', '["$.scope", "$.userId", "${runTag}"]')
    run_with_provider(text, stub.url, fill)
    assert len(set(stub.calls[0].json)) == 1


def test_subject_contains_the_api_version_and_no_secret(stub: Stub) -> None:
    secret = "header-secret-77"
    text = PLAIN + "apiVersion: v4\nauth: {type: bearer, envVar: K}\n"
    text = text.replace("path: /add,", 'path: /add, headers: {X-Other: "${OTHER}"},')

    async def subject(provider: HttpProvider) -> str:
        return json.dumps(provider.subject.plain()) + provider.store_id

    subject_json = run_with_provider(text, stub.url, subject, environment={"OTHER": secret})
    assert '"api_version": "v4"' in subject_json
    assert KEY not in subject_json
    assert secret not in subject_json


def test_other_requests_are_another_subject(stub: Stub) -> None:
    async def key(provider: HttpProvider) -> str:
        return provider.subject.key

    keys = {run_with_provider(text, stub.url, key) for text in (PLAIN, PLAIN, PLAIN.replace('k: "$.limit"', "k: 5"))}
    assert len(keys) == 2


def test_threshold_and_token_budget_are_sent_with_a_search(stub: Stub) -> None:
    text = PLAIN.replace('k: "$.limit"', 'max_tokens: "$.tokenBudget", min: "$.threshold"')
    run_with_provider(text, stub.url, lambda provider: provider.search(HOME, "cats", 3))
    text = text.replace("    path: /search\n", "    path: /search\n    tokenBudget: 900\n")
    run_with_provider(text, stub.url, lambda provider: provider.search(HOME, "cats", 3), threshold=0.3)
    sent = [{key: value for key, value in call.json.items() if key in ("max_tokens", "min")} for call in stub.calls]
    assert sent == [{"max_tokens": 4096}, {"max_tokens": 900, "min": 0.3}]


def test_long_query_is_shortened_and_blank_query_sends_nothing(stub: Stub) -> None:
    text = PLAIN + "limits: {maxQueryCharacters: 12}\n"
    run_with_provider(text, stub.url, lambda provider: provider.search(HOME, "where did Otto sleep", 3))
    assert stub.calls[0].json["query"] == "where did"
    assert run_with_provider(text, stub.url, lambda provider: provider.search(HOME, " \n", 3)) == []
    assert len(stub.calls) == 1


def test_limit_above_max_results_is_an_error(stub: Stub) -> None:
    with pytest.raises(BadInput, match="maxResults"):
        run_with_provider(
            PLAIN + "limits: {maxResults: 20}\n", stub.url, lambda provider: provider.search(HOME, "cats", 50)
        )
    assert stub.calls == []


def test_web_page_instead_of_a_reply_is_an_error(stub: Stub) -> None:
    stub.next(raw(b"  <!doctype html>", content_type="text/html"))
    with pytest.raises(Malformed):
        run_with_provider(PLAIN, stub.url, fill)
    stub.next(raw(b"accepted", content_type="text/plain"), raw(b"", code=204))
    run_with_provider(PLAIN, stub.url, fill)
    run_with_provider(PLAIN, stub.url, fill)


def test_operations_are_delayed() -> None:
    async def starts() -> float:
        pace, clock = Pacer(30), asyncio.get_running_loop().time
        begun = clock()
        await asyncio.gather(*(pace.wait() for _ in range(4)))
        return clock() - begun

    assert asyncio.run(starts()) >= 0.09


def test_provider_has_only_the_methods_of_its_config(stub: Stub) -> None:
    async def abilities(provider: HttpProvider) -> tuple[bool, bool]:
        return isinstance(provider, Batching), isinstance(provider, Listing)

    one_by_one = BATCHED.replace("unordered: true", "unordered: false")
    refused = BATCHED.replace("unordered: true", "unordered: true, supportsBatch: false")
    texts = (PLAIN, CONFIG, BATCHED, one_by_one, refused)
    memories = [run_with_provider(text, stub.url, abilities) for text in texts]
    assert memories == [(False, False), (False, True), (True, True), (False, True), (False, True)]


def test_batch_size_is_limited_by_the_config(stub: Stub) -> None:
    service = MemoryService()
    stub.always(service.behave)

    async def live(provider: HttpProvider) -> None:
        assert isinstance(provider, Batching)
        sessions = [session(f"s{n}", f"Cat number {n}.") for n in range(7)]
        receipt = await provider.add_batch(HOME, sessions)
        assert await provider.search(HOME, "cat", 10) == []
        await provider.wait_until_searchable(HOME, [receipt])
        assert {memory.sources for memory in await provider.search(HOME, "cat", 10)} == {
            (f"s{n}", f"s{n}:1") for n in range(7)
        }

    run_with_provider(BATCHED, stub.url, live)
    sizes = [len(call.json["documents"]) for call in stub.calls if call.path.endswith("/batch")]
    assert sizes == [3, 3, 1]


def test_failed_batch_continues_where_it_stopped(stub: Stub) -> None:
    stub.always(MemoryService().behave)
    sessions = [session(f"s{n}", f"Cat number {n}.") for n in range(7)]

    async def live(provider: HttpProvider) -> None:
        assert isinstance(provider, Batching)
        await provider.add(HOME, sessions[0])
        path = stub.calls[-1].path.replace("documents", "batch")
        stub.next(reply({"jobs": ["0"]}), status(503), path=path)
        with pytest.raises(Transient):
            await provider.add_batch(HOME, sessions)
        receipt = await provider.add_batch(HOME, sessions)
        assert len(receipt.ids) == 7

    run_with_provider(BATCHED, stub.url, live)
    batches = [[one["text"] for one in call.json["documents"]] for call in stub.calls if call.path.endswith("/batch")]
    assert [len(batch) for batch in batches] == [3, 3, 3, 1]
    assert batches[1] == batches[2]
