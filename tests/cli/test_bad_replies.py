"""Bad replies of a memory service: the error names the request, nothing is sent twice, and nothing is scored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web

from tests.cli.command import Command
from tests.doubles.stub import Behaviour, Call, Stub, html, raw, reply
from tests.doubles.unusual_servers import ARCHIVE, PASSWORD, RENEWED, Archive, Vault

RUN = ("eval", "--benchmarks", "starter", "--limit", "2", "--top-k", "10", "--concurrency", "1", "--json")
ITEM = {"ref": "r1", "text": "a cat", "score": 1}
LINKED = ARCHIVE.replace(' after: "$.cursor",', "").replace("by: cursor", "by: link")


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as server:
        yield server


def page(**page: Any) -> Behaviour:
    return reply({"page": {"items": [ITEM], **page}})


SEARCHES: dict[str, tuple[str, Behaviour, str]] = {
    "no JSON": (ARCHIVE, raw(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n{..."), "invalid JSON"),
    "a web page": (ARCHIVE, html(), "invalid JSON"),
    "no results": (ARCHIVE, reply({"page": {}}), "$.page.items"),
    "results are an object": (ARCHIVE, reply({"page": {"items": {"0": ITEM}}}), "$.page.items"),
    "a result without text": (ARCHIVE, reply({"page": {"items": [{"ref": "r"}]}}), "$.text"),
    "a text that is a number": (ARCHIVE, reply({"page": {"items": [{**ITEM, "text": 7}]}}), "$.text"),
    "a score that is a word": (ARCHIVE, reply({"page": {"items": [{**ITEM, "score": "high"}]}}), "$.score"),
    "a score that is true": (ARCHIVE, reply({"page": {"items": [{**ITEM, "score": True}]}}), "$.score"),
    "a cursor that is an object": (ARCHIVE, page(next={"at": 3}), "$.page.next"),
    "a cursor that is true": (ARCHIVE, page(next=True), "$.page.next"),
    "the same page again": (ARCHIVE, page(next="x"), "page 2 has the same results as page 1"),
    "a link to another server": (LINKED, page(next="https://example.invalid/next"), "another server"),
    "a link that is a number": (LINKED, page(next=3), "$.page.next"),
    "a link to the same page": (LINKED, page(next="?"), "page 2 has the same results as page 1"),
}
ADDS: dict[str, tuple[Behaviour, str]] = {
    "no jobs": (reply({}), "$.jobs"),
    "no job for a document": (reply({"jobs": [1]}), "one per document"),
    "a job that is null": (reply({"jobs": [1, None, 3, 4, 5]}), "1 of 5 values"),
    "too many jobs": (reply({"jobs": list(range(9))}), "one per document"),
    "a web page": (html(), "invalid JSON"),
}
LOGINS: dict[str, tuple[Any, str]] = {
    "no token": ({"expires_in": 3}, "$.access"),
    "an empty token": ({"access": "", "expires_in": 3}, "$.access"),
    "no expiry": ({"access": "sentinel-pass-1"}, "$.expires_in"),
    "an expiry that is a word": ({"access": "sentinel-pass-1", "expires_in": "soon"}, "$.expires_in"),
    "an expiry in the past": ({"access": "sentinel-pass-1", "expires_in": -3}, "$.expires_in"),
}


def run(command: Command, stub: Stub, text: str, *flags: str) -> dict[str, Any]:
    folder = command.folder / "providers/configs"
    folder.mkdir(parents=True)
    name = text.split("\n", 1)[0].removeprefix("name: ")
    (folder / f"{name}.yaml").write_text(text.replace("URL", stub.url))
    said = command(*RUN, "--providers", name, *flags)
    assert said.code == 1, said.err
    document: dict[str, Any] = said.json
    return document


def check_failed(document: dict[str, Any], request: str, problem: str) -> None:
    assert document["counts"]["failed"] == document["counts"]["planned"] == 2
    assert document["counts"]["scored"] == 0
    reason = document["failures"][0]["reason"]
    assert request in reason
    assert problem in reason


@pytest.mark.slow
@pytest.mark.parametrize("fault", SEARCHES)
def test_a_bad_page_of_results_fails_the_question(command: Command, stub: Stub, fault: str) -> None:
    text, behaviour, problem = SEARCHES[fault]
    archive, queries = Archive(), Counter[bytes]()

    async def behave(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        if "/query" in call.path:
            queries[call.body] += 1
            return await behaviour(request, call)
        return await archive.behave(request, call)

    stub.always(behave)
    check_failed(run(command, stub, text), "/query", problem)
    assert set(archive.added.values()) == {1}
    assert archive.records == {}, "the scope is cleared"
    # a link sends the same body to another address
    assert max(queries.values()) <= (2 if text is LINKED else 1)


@pytest.mark.parametrize("fault", ADDS)
def test_a_bad_reply_to_an_add_fails_the_haystack(command: Command, stub: Stub, fault: str) -> None:
    behaviour, problem = ADDS[fault]
    archive, adds = Archive(), Counter[bytes]()

    async def behave(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        if call.method == "POST" and call.path.endswith("/records"):
            adds[call.body] += 1
            await archive.behave(request, call)
            return await behaviour(request, call)
        return await archive.behave(request, call)

    stub.always(behave)
    check_failed(run(command, stub, ARCHIVE), "/records", problem)
    assert set(adds.values()) == {1}
    assert not [call for call in stub.calls if call.path.endswith("/query")], "an incomplete memory is not searched"


@pytest.mark.parametrize("fault", LOGINS)
def test_a_bad_reply_to_a_login_fails_the_haystack(
    command: Command, stub: Stub, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setenv("VAULT_PASSWORD", PASSWORD)
    answer, problem = LOGINS[fault]
    stub.always(Vault().behave)
    stub.always(reply(answer), path="/login")
    document = run(command, stub, RENEWED, "--allow-env", "VAULT_PASSWORD")
    check_failed(document, "/login", problem)
    assert "sentinel" not in str(document["failures"])
    assert {call.path for call in stub.calls} == {"/login"}
