"""Waiting until documents are searchable: polling, the marker, and timeouts."""

from __future__ import annotations

import pytest

from memorybench.core.contracts import Listing, Receipt
from memorybench.core.errors import BadInput, Denied, Malformed, NotReady, ServiceError
from memorybench.providers.http.provider import HttpProvider
from tests.doubles.stub import Stub, reply, reset, status, together
from tests.doubles.unusual_servers import ARCHIVE
from tests.providers.http_memory import PROBED, MemoryService
from tests.providers.http_opening import HOME, run_with_provider, session

POLLED = """\
name: polled
type: hosted
connection: {baseUrl: "URL"}
endpoints:
  add:
    method: POST
    path: /add
    body: {text: "$.content", user: "$.scope", id: "$.documentId"}
    captures: {region: $.region}
    wait:
      method: GET
      path: /events/${region}/${pollId}
      id: $.event
      status: $.state
      done: [ok, "true"]
      failed: [lost]
      interval: 1
      timeout: 60000
  search:
    method: POST
    path: /search
    body: {query: "$.query", user: "$.scope"}
    response: {results: $.results, contentField: $.text}
  clear:
    method: DELETE
    path: /users/${scope}
    wait: {method: GET, path: "/users/${scope}", accept: [404], interval: 1, timeout: 60000}
"""
HASTY = POLLED.replace("60000", "50")
BY_DOCUMENT = POLLED.replace("${region}/${pollId}", "${documentId}").replace("      id: $.event\n", "")
SESSION = session("topic", "My cat is Otto.")


@pytest.fixture
def stub(stub: Stub) -> Stub:
    stub.always(reply({"event": "e1", "region": "eu"}), path="/add")
    return stub


async def wait_until_searchable(provider: HttpProvider) -> None:
    await provider.wait_until_searchable(HOME, [await provider.add(HOME, SESSION)])


def polls(stub: Stub) -> list[str]:
    return [call.path for call in stub.calls if call.path.startswith("/events")]


@pytest.mark.parametrize("done", ["ok", True])
def test_status_is_polled_until_done(stub: Stub, done: object) -> None:
    stub.next(reply({"state": "queued"}), reply({"state": "at work"}), reply({"state": done}), path="/events/eu/e1")
    run_with_provider(POLLED, stub.url, wait_until_searchable)
    assert polls(stub) == ["/events/eu/e1"] * 3


def test_every_id_of_a_reply_is_polled(stub: Stub) -> None:
    stub.next(reply({"event": ["e1", 2], "region": "eu"}), path="/add")
    stub.next(reply({"state": "queued"}), reply({"state": "ok"}), reply({"state": "ok"}))
    run_with_provider(POLLED, stub.url, wait_until_searchable)
    assert sorted(polls(stub)) == ["/events/eu/2", "/events/eu/e1", "/events/eu/e1"]


def test_an_id_that_occurs_twice_is_polled_once(stub: Stub) -> None:
    stub.next(reply({"event": ["e1", "e1"], "region": "eu"}), path="/add")
    stub.always(reply({"state": "ok"}))
    run_with_provider(POLLED, stub.url, wait_until_searchable)
    assert polls(stub) == ["/events/eu/e1"]


def test_one_job_for_several_documents_is_an_error_with_per_document(stub: Stub) -> None:
    stub.always(reply({"jobs": ["j1", "j1"]}))

    async def add(provider: HttpProvider) -> None:
        await provider.add(HOME, session("topic", "My cat is Otto.", "My dog is Rex."))

    with pytest.raises(Malformed, match="perDocument"):
        run_with_provider(ARCHIVE, stub.url, add)


def test_parallel_polls_are_limited(stub: Stub) -> None:
    stub.next(reply({"event": [f"e{n}" for n in range(20)], "region": "eu"}), path="/add")
    stub.always(together(stub, 8, reply({"state": "ok"})))
    run_with_provider(POLLED, stub.url, wait_until_searchable)
    assert stub.peak == 8
    assert sorted(polls(stub)) == sorted(f"/events/eu/e{n}" for n in range(20))


@pytest.mark.parametrize("limit", ["concurrency: 4", "requestsPerSecond: 1000"])
def test_rate_limited_service_is_polled_sequentially(stub: Stub, limit: str) -> None:
    """The engine counts a wait as one call, so it must not send eight requests at once."""
    stub.next(reply({"event": ["e1", "e2"], "region": "eu"}), path="/add")
    stub.next(reply({"state": "queued"}), reply({"state": "ok"}), reply({"state": "ok"}))
    run_with_provider(f"{POLLED}rateLimit: {{{limit}}}\n", stub.url, wait_until_searchable)
    assert polls(stub) == ["/events/eu/e1", "/events/eu/e1", "/events/eu/e2"]


def test_one_failed_poll_ends_the_wait(stub: Stub) -> None:
    stub.next(reply({"event": ["e1", "e2", "e3"], "region": "eu"}), path="/add")
    stub.always(reply({"state": "queued"}))
    stub.always(reply({"state": "lost"}), path="/events/eu/e2")
    with pytest.raises(ServiceError, match=r'"e2" was accepted, .*"lost"'):
        run_with_provider(POLLED, stub.url, wait_until_searchable)


def test_without_an_id_each_document_is_polled(stub: Stub) -> None:
    stub.always(reply({"state": "ok"}))
    stub.always(reply({"region": "eu"}), path="/add")
    run_with_provider(BY_DOCUMENT, stub.url, wait_until_searchable)
    assert polls(stub) == [f"/events/{stub.calls[0].json['id']}"]


def test_several_statuses_must_all_be_done(stub: Stub) -> None:
    text = POLLED.replace("$.state", "'$.parts[*].state'")
    parts = [reply({"parts": [{"state": one}, {"state": two}]}) for one, two in (("ok", "x"), ("ok", "ok"))]
    stub.next(*parts, path="/events/eu/e1")
    run_with_provider(text, stub.url, wait_until_searchable)
    assert len(polls(stub)) == 2


def test_failed_status_raises(stub: Stub) -> None:
    stub.next(reply({"state": "queued"}), reply({"state": "lost"}), path="/events/eu/e1")
    with pytest.raises(ServiceError, match=r'"e1" was accepted, .*"lost"'):
        run_with_provider(POLLED, stub.url, wait_until_searchable)


def test_poll_timeout_raises_not_ready(stub: Stub) -> None:
    stub.always(reply({"state": "queued"}), path="/events/eu/e1")
    with pytest.raises(NotReady, match=r'"e1" is "queued"; timed out after 0\.05 s'):
        run_with_provider(HASTY, stub.url, wait_until_searchable)


def test_transient_errors_while_polling_are_retried_without_a_second_add(stub: Stub) -> None:
    stub.next(status(503), reset(), status(429, headers={"Retry-After": "0"}), path="/events/eu/e1")
    stub.always(reply({"state": "ok"}), path="/events/eu/e1")
    run_with_provider(POLLED, stub.url, wait_until_searchable)
    assert len(polls(stub)) == 4
    assert len([call for call in stub.calls if call.path == "/add"]) == 1


def test_retry_after_beyond_the_timeout_ends_the_wait(stub: Stub) -> None:
    stub.always(status(429, headers={"Retry-After": "60"}), path="/events/eu/e1")
    with pytest.raises(NotReady, match="HTTP 429"):
        run_with_provider(HASTY, stub.url, wait_until_searchable)
    assert len(polls(stub)) == 1


def test_denied_poll_is_not_repeated(stub: Stub) -> None:
    stub.always(status(403), path="/events/eu/e1")
    with pytest.raises(Denied):
        run_with_provider(POLLED, stub.url, wait_until_searchable)
    assert len(polls(stub)) == 1


@pytest.mark.parametrize("answer", [{}, {"status": "ok"}, [], "ok"])
def test_a_reply_without_a_status_is_an_error(stub: Stub, answer: object) -> None:
    stub.always(reply(answer), path="/events/eu/e1")
    with pytest.raises(Malformed, match=r"status at \$\.state"):
        run_with_provider(POLLED, stub.url, wait_until_searchable)


@pytest.mark.parametrize("answer", [{"region": "eu"}, {"region": "eu", "event": None}, {"region": "eu", "event": []}])
def test_add_without_the_id_to_poll_is_an_error(stub: Stub, answer: object) -> None:
    stub.next(reply(answer), path="/add")
    with pytest.raises(Malformed, match=r"id at \$\.event"):
        run_with_provider(POLLED, stub.url, wait_until_searchable)


def test_another_process_waits_for_documents_of_the_first(stub: Stub) -> None:
    stub.always(reply({"state": "ok"}), path="/events/eu/e1")

    async def add(provider: HttpProvider) -> Receipt:
        return await provider.add(HOME, SESSION)

    receipt = Receipt.model_validate_json(run_with_provider(POLLED, stub.url, add).model_dump_json())
    assert polls(stub) == []
    run_with_provider(POLLED, stub.url, lambda provider: provider.wait_until_searchable(HOME, [receipt]))
    assert polls(stub) == ["/events/eu/e1"]


def test_a_slow_delete_is_waited_for(stub: Stub) -> None:
    async def clear(provider: HttpProvider) -> str:
        await provider.add(HOME, SESSION)
        path = f"/users/{stub.calls[0].json['user']}"
        stub.next(reply({}), reply({"still": "here"}), status(404), path=path)
        await provider.clear(HOME)
        return path

    path = run_with_provider(POLLED, stub.url, clear)
    assert [call.method for call in stub.calls if call.path == path] == ["DELETE", "GET", "GET"]


def test_delete_timeout_raises_not_ready(stub: Stub) -> None:
    stub.always(reply({}))
    with pytest.raises(NotReady, match="timed out"):
        run_with_provider(HASTY, stub.url, lambda provider: provider.clear(HOME))


def test_wait_that_cannot_end_is_an_error(stub: Stub) -> None:
    with pytest.raises(BadInput, match=r"endpoints\.add\.wait: .*status and done, or accept"):
        run_with_provider(POLLED.replace("      status: $.state\n", ""), stub.url, wait_until_searchable)


def test_captures_from_accepted_error_statuses_are_an_error(stub: Stub) -> None:
    with pytest.raises(BadInput, match=r"endpoints\.add\.accept: "):
        run_with_provider(
            POLLED.replace("path: /add", "path: /add\n    accept: [409]"), stub.url, wait_until_searchable
        )


def test_wait_cannot_use_document_variables(stub: Stub) -> None:
    with pytest.raises(BadInput, match='unknown variable "content"'):
        run_with_provider(POLLED.replace("${pollId}", "${content}"), stub.url, wait_until_searchable)


def test_marker_is_added_searched_and_not_returned(stub: Stub) -> None:
    service = MemoryService(reports_status=False)
    stub.always(service.behave)

    async def live(provider: HttpProvider) -> None:
        sessions = [session(f"s{n}", f"Cat number {n} is the code word of the archive.") for n in range(3)]
        receipts = [await provider.add(HOME, one) for one in sessions]
        await provider.wait_until_searchable(HOME, receipts)
        [space] = service.spaces.values()
        [marker] = [text for one in space.documents.values() if "zq" in (text := one["text"])]
        # the marker would be the best match, and must not cost a place
        memories = await provider.search(HOME, marker, 3)
        assert {memory.sources for memory in memories} == {(f"s{n}", f"s{n}:1") for n in range(3)}
        assert isinstance(provider, Listing)
        assert len(await provider.list(HOME)) == 3
        await provider.wait_until_searchable(HOME, receipts)
        assert len(space.documents) == 4

    run_with_provider(PROBED, stub.url, live)
    assert stub.calls[-1].method in ("POST", "GET")


def test_another_process_recognizes_the_marker(stub: Stub) -> None:
    service = MemoryService(reports_status=False)
    stub.always(service.behave)

    async def add(provider: HttpProvider) -> Receipt:
        receipt = await provider.add(HOME, SESSION)
        await provider.wait_until_searchable(HOME, [receipt])
        return receipt

    async def resume(provider: HttpProvider) -> None:
        provider.restore(HOME, [receipt])
        memories = await provider.search(HOME, "the code word of archive, a cat", 5)
        assert [memory.sources for memory in memories] == [("topic", "topic:1")]

    receipt = run_with_provider(PROBED, stub.url, add)
    run_with_provider(PROBED, stub.url, resume)


def test_marker_timeout_raises_not_ready(stub: Stub) -> None:
    stub.always(reply({"hits": [{"text": "something else"}], "space": {"id": 1}}))
    with pytest.raises(NotReady, match=r"timed out after 0\.05 s"):
        run_with_provider(PROBED.replace("interval: 1}", "interval: 1, timeout: 50}"), stub.url, wait_until_searchable)


def test_no_marker_is_added_to_an_empty_scope(stub: Stub) -> None:
    run_with_provider(PROBED, stub.url, lambda provider: provider.wait_until_searchable(HOME, []))
    assert stub.calls == []
