"""Pages of results, by cursor, offset and link, and what a config must say about them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from multidict import CIMultiDict

from memorybench.catalog.catalog import Catalog
from memorybench.core.contracts import Listing
from memorybench.core.conversation import Found, Memory
from memorybench.core.errors import BadInput, Malformed, ServiceError
from memorybench.core.records import digest
from memorybench.files.yaml_file import parse_yaml
from memorybench.journal.rows import Fingerprint, config_text, differences
from memorybench.providers.config.reading import read_provider
from memorybench.providers.http.provider import HttpProvider, open_http_provider
from memorybench.secrets.redaction import Redactor
from tests.doubles.refusals import refused
from tests.doubles.stub import Stub, reply
from tests.doubles.unusual_servers import ARCHIVE, VAULT
from tests.providers.http_memory import KEY
from tests.providers.http_opening import HOME, run_with_provider

PAGE = (Path(__file__).parents[2] / "docs/adding-a-provider.md").read_text(encoding="utf-8")
PAGED = """\
name: paged
type: hosted
connection: {baseUrl: "URL"}
endpoints:
  add: {method: POST, path: /add, body: {text: "$.content", user: "$.scope"}}
  search:
    method: GET
    path: /search
    query: {q: "$.query", user: "$.scope", count: "$.limit", QUERY}
    pages: {PAGES}
    response: {results: $.hits, contentField: $.text, scoreField: $.score, idField: $.id}
  list:
    method: GET
    path: /list
    query: {user: "$.scope", start: "$.offset"}
    pages: {by: offset, maxPages: 3}
    response: {results: $.hits, contentField: $.text, idField: $.id}
  clear: {method: DELETE, path: "/users/${scope}"}
"""
BY_OFFSET = PAGED.replace("QUERY", 'start: "$.offset"').replace("PAGES", "by: offset, maxPages: 3")
BY_LINK = PAGED.replace(", QUERY", "").replace("PAGES", "by: link, maxPages: 3")


def hits(*scores: int) -> list[dict[str, object]]:
    return [{"text": f"text {score}", "score": score, "id": score} for score in scores]


def search(text: str, stub: Stub, limit: int) -> Sequence[Memory]:
    return run_with_provider(text, stub.url, lambda provider: provider.search(HOME, "cat", limit))


def contents(memories: Sequence[Memory]) -> list[str]:
    return [memory.content for memory in memories]


def test_pages_are_read_until_there_are_enough(stub: Stub) -> None:
    stub.next(reply({"hits": hits(9, 8)}), reply({"hits": hits(7, 6)}), reply({"hits": hits(5)}))
    assert contents(search(BY_OFFSET, stub, 3)) == ["text 9", "text 8", "text 7"]
    assert [call.query["start"] for call in stub.calls] == ["0", "2"]


def test_an_empty_page_is_the_last_one(stub: Stub) -> None:
    stub.next(reply({"hits": hits(9, 8)}), reply({"hits": []}))
    found = search(BY_OFFSET, stub, 50)
    assert contents(found) == ["text 9", "text 8"]
    assert not isinstance(found, Found)


def test_a_result_that_moved_to_the_next_page_counts_once(stub: Stub) -> None:
    stub.next(reply({"hits": hits(9, 8)}), reply({"hits": hits(8, 7)}), reply({"hits": []}))
    assert contents(search(BY_OFFSET, stub, 50)) == ["text 9", "text 8", "text 7"]


def test_results_of_all_pages_are_sorted_together(stub: Stub) -> None:
    stub.next(reply({"hits": hits(1, 5)}), reply({"hits": hits(7)}), reply({"hits": []}))
    assert contents(search(BY_OFFSET, stub, 50)) == ["text 7", "text 5", "text 1"]


def test_links_of_the_header_are_followed(stub: Stub) -> None:
    link = {"Link": '</first>; rel="first", </search?page=b>; rel="next"'}
    stub.next(reply({"hits": hits(9)}, headers=link), reply({"hits": hits(8)}), path="/search")
    assert contents(search(BY_LINK, stub, 50)) == ["text 9", "text 8"]
    assert dict(stub.calls[1].query) == {"page": "b"}


@pytest.mark.parametrize(
    ("link", "is_followed"),
    [
        ('</search?page=b>; rel="last next"', True),
        ("</search?page=b>; title=more; rel=next", True),
        ("</search?page=b>;REL=Next", True),
        ('</search?page=b>; rel="next-archive"', False),
        ('</search?page=b>; title="; rel=next"', False),
        ('</search?page=a,b;c>; rel="prev", </search?page=b>; title="a, b"; rel="next"', True),
    ],
)
def test_a_link_may_have_several_relations(stub: Stub, link: str, is_followed: bool) -> None:
    stub.next(reply({"hits": hits(9)}, headers={"Link": link}), reply({"hits": hits(8)}), path="/search")
    search(BY_LINK, stub, 50)
    assert [call.query.get("page") for call in stub.calls] == [None, "b"][: 1 + is_followed]


def test_a_link_header_may_occur_twice(stub: Stub) -> None:
    links = CIMultiDict([("Link", '</first>; rel="first"'), ("Link", '</search?page=b>; rel="next"')])
    stub.next(reply({"hits": hits(9)}, headers=links), reply({"hits": hits(8)}), path="/search")
    assert contents(search(BY_LINK, stub, 50)) == ["text 9", "text 8"]


def test_passages_of_one_document_on_a_page_are_all_kept(stub: Stub) -> None:
    passages = [{**hit, "id": "document"} for hit in hits(9, 8)]
    stub.next(reply({"hits": passages}), reply({"hits": []}))
    assert contents(search(BY_OFFSET, stub, 50)) == ["text 9", "text 8"]


def test_a_search_that_the_page_limit_ends_says_so(stub: Stub) -> None:
    stub.next(*(reply({"hits": hits(n)}) for n in range(9)))
    found = search(BY_OFFSET, stub, 50)
    assert len(found) == len(stub.calls) == 3
    assert isinstance(found, Found)
    assert "pages.maxPages" in found.shortfall


def test_more_pages_after_an_empty_one_are_an_error(stub: Stub) -> None:
    stub.always(reply({"hits": [], "more": True}))
    with pytest.raises(Malformed, match="page 1 is empty"):
        search(BY_OFFSET.replace("maxPages: 3}\n    response: {results: $.hits, contentField: $.text, scoreField",
                                 "more: $.more}\n    response: {results: $.hits, contentField: $.text, scoreField"),
               stub, 5)  # fmt: skip


def test_a_listing_is_complete_or_an_error(stub: Stub) -> None:
    async def list_all(provider: HttpProvider) -> Sequence[Memory]:
        assert isinstance(provider, Listing)
        return await provider.list(HOME)

    stub.next(reply({"hits": hits(1, 2)}), reply({"hits": hits(3)}), reply({"hits": []}))
    assert len(run_with_provider(BY_OFFSET, stub.url, list_all)) == 3
    stub.next(*(reply({"hits": hits(n)}) for n in range(9)))
    with pytest.raises(ServiceError, match=r"more than 3 pages"):
        run_with_provider(BY_OFFSET, stub.url, list_all)


@pytest.mark.parametrize(
    ("text", "old", "new", "where"),
    [
        (ARCHIVE, "next: $.page.next", "size: 3", "endpoints.search.pages"),
        (ARCHIVE, 'after: "$.cursor", ', "", "endpoints.search.pages.by"),
        (ARCHIVE, "by: cursor, next", "by: offset, next", "endpoints.search.body.after"),
        (ARCHIVE, "more: $.more", "next: $.more", "endpoints.list.pages.next"),
        (ARCHIVE, "$.page.next}", "'$.page['}", "endpoints.search.pages.next"),
        (ARCHIVE, "by: cursor", "by: guess", "endpoints.search.pages.by"),
        (ARCHIVE, "pages: {by: cursor, next: $.page.next}", "tokenBudget: 5", "endpoints.search.body.after"),
        (ARCHIVE, 'id: "$.jobs[*]", perDocument: true, ', "perDocument: true, ", "endpoints.batchAdd.wait.perDocument"),
        (
            ARCHIVE,
            'text: "$.content"}\n    body: {records: "$.documents"}',
            'text: "$.content"}\n    body: {}',
            "endpoints.batchAdd",
        ),
        (ARCHIVE, "unit: message", "unit: session", "limits.batchMessages"),
        (VAULT, "secret: true", "secret: true, expiresIn: -3", "setup[0].captures.pass"),
        (VAULT, "secret: true", "secret: true, expiresIn: 3, expiresAt: $.at", "setup[0].captures.pass.expiresIn"),
        (VAULT, "secret: true}", "secret: true, expiresIn: 3}, id: $.id", "setup[0].captures.pass.expiresIn"),
        (VAULT, '"URL"', '"URL", sign: sign.py', "connection.sign"),
    ],
)
def test_a_config_that_cannot_work_is_refused(text: str, old: str, new: str, where: str) -> None:
    assert text.count(old) == 1
    error = refused(read_provider, parse_yaml(text.replace(old, new).replace("URL", "http://localhost:1"), "p.yaml"))
    assert isinstance(error, BadInput)
    assert where in error.where


@pytest.mark.parametrize("limit", ["batchMessages: 5", "batchBytes: 99", "batchSessions: 2"])
def test_a_batch_limit_without_batches_is_refused(limit: str) -> None:
    text = f"{BY_OFFSET}limits: {{{limit}}}\n".replace("URL", "http://localhost:1")
    assert "limits.batch" in refused(read_provider, parse_yaml(text, "p.yaml")).where


@pytest.mark.parametrize("names", [["pages"], ["failures"], ["login"], ["login", "token"], ["sign"]])
def test_the_examples_of_the_page_are_valid(names: list[str]) -> None:
    config = yaml.safe_load(BY_OFFSET.replace("URL", "http://localhost:1"))
    for name in names:
        [example] = re.findall(rf'```yaml title="{name}"\n(.*?)```', PAGE, re.DOTALL)
        section = config["endpoints"] if name in ("pages", "failures", "token") else config
        section |= yaml.safe_load(example)
    read_provider(parse_yaml(yaml.safe_dump(config), "p.yaml"))


@pytest.mark.parametrize(
    ("name", "requests", "text"),
    [
        ("mem0", "c7e8934d7235deca", "786729cb1837"),
        ("zep", "dd56240477a4be4e", "77c35fdf82c2"),
        ("letta", "2282b8a212081004", "36c2609d29a4"),
        ("supermemory", "3075bfff2c9948d0", "ac998f41ee36"),
    ],
)
def test_recorded_work_of_earlier_versions_is_not_paid_again(name: str, requests: str, text: str) -> None:
    """The settings of the subject identify recorded searches, and the text of the config decides about a resume."""
    config = Catalog(Path(__file__).parent).provider(name)

    async def settings() -> object:
        async with open_http_provider(config, key=KEY, redactor=Redactor([])) as provider:
            return provider.subject.settings["requests"]

    assert asyncio.run(settings()) == requests, "if a card has changed on purpose, change this digest"
    assert digest(config_text(config.plain()))[:12] == text


def test_empty_keys_of_setup_requests_do_not_keep_a_run_from_being_resumed() -> None:
    """Earlier versions recorded the empty keys of their time."""
    config = Catalog(Path(__file__).parent).provider("zep").plain()
    new = config_text(config)
    old = json.loads(new)
    old["setup"] = [{**request, "wait": None, "query": {}} for request in old["setup"]]
    before, after = (Fingerprint.of(text) for text in (json.dumps(old, indent=1, sort_keys=True), new))
    assert before != after
    assert differences({"zep": before}, {"zep": after}) == []
