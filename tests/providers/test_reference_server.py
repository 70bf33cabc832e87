from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from memorybench.core.contracts import Provider
from memorybench.files.yaml_file import load_yaml
from memorybench.providers.config.reading import read_provider
from memorybench.providers.http.provider import open_http_provider
from memorybench.secrets.redaction import Redactor
from memorybench.testing import ProviderContract
from tests.doubles.reference_server import SERVER, reference_server

EXAMPLE = SERVER.parents[1] / "providers" / "reference-docker.yaml"


class TestAtOnce(ProviderContract):
    options: tuple[str, ...] = ()

    @asynccontextmanager
    async def open_provider(self, folder: Path) -> AsyncIterator[Provider]:
        with reference_server(folder / "memories.db", *self.options) as url:
            config = read_provider(load_yaml(EXAMPLE), {"REFERENCE_MEMORY_PORT": url.rpartition(":")[2]})
            async with open_http_provider(
                _impatient(config), key=None, redactor=Redactor([]), store_id="kept in a file"
            ) as provider:
                yield provider


@pytest.mark.slow
class TestWhenAsked(TestAtOnce):
    options = ("--indexing", "when-asked")
    immediate = False


def _impatient(config: Any) -> Any:
    """Return the example's config with a poll interval of one millisecond."""
    wait = config.endpoints.add.wait.model_copy(update={"interval": 1})
    add = config.endpoints.add.model_copy(update={"wait": wait})
    return config.model_copy(update={"endpoints": config.endpoints.model_copy(update={"add": add})})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with reference_server(tmp_path_factory.mktemp("reference") / "memories.db") as url:
        yield url


def ask(url: str, method: str = "GET", body: Any = None) -> tuple[int, Any]:
    content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, content, method=method)
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.load(refused)


def add(server: str, **changed: Any) -> tuple[int, Any]:
    return ask(f"{server}/memories", "POST", {"scope": "home", "id": "1", "text": "A cat sleeps.", **changed})


def test_reference_server_answers_each_request(server: str) -> None:
    assert ask(f"{server}/health") == (200, {"status": "ok"})
    assert add(server, scope="s", metadata={"day": 1}) == (201, {"id": "1", "status": "stored"})
    assert ask(f"{server}/memories/1?scope=s") == (200, {"id": "1", "status": "stored"})
    memory = {"id": "1", "text": "A cat sleeps.", "metadata": {"day": 1}}
    assert ask(f"{server}/memories?scope=s") == (200, {"memories": [memory]})
    status, found = ask(f"{server}/search", "POST", {"scope": "s", "query": "CAT?", "limit": 5})
    assert (status, [{**memory, "score": pytest.approx(0.2877, abs=1e-4)}]) == (200, found["results"])
    assert ask(f"{server}/memories?scope=s", "DELETE") == (200, {"deleted": 1})
    assert ask(f"{server}/memories?scope=s") == (200, {"memories": []})


def test_the_same_id_again_replaces(server: str) -> None:
    add(server, scope="again", text="A cat sleeps.")
    add(server, scope="again", text="A dog barks.")
    found = [
        ask(f"{server}/search", "POST", {"scope": "again", "query": animal, "limit": 5})[1]["results"]
        for animal in ("cat", "dog")
    ]
    assert [len(results) for results in found] == [0, 1]


def test_pending_memory_is_searchable_when_its_status_is_done(tmp_path: Path) -> None:
    with reference_server(tmp_path / "memories.db", "--indexing", "when-asked") as url:
        assert add(url) == (202, {"id": "1", "status": "pending"})
        search = {"scope": "home", "query": "cat", "limit": 5}
        for status, held in (("pending", 0), ("stored", 1)):
            assert ask(f"{url}/memories/1?scope=home") == (200, {"id": "1", "status": status})
            assert len(ask(f"{url}/search", "POST", search)[1]["results"]) == held
            assert len(ask(f"{url}/memories?scope=home")[1]["memories"]) == held


def test_other_scopes_do_not_change_a_ranking(server: str) -> None:
    def scores() -> list[float]:
        query = {"scope": "quiet", "query": "cat garden", "limit": 5}
        return [one["score"] for one in ask(f"{server}/search", "POST", query)[1]["results"]]

    add(server, scope="quiet", id="1", text="A cat sleeps.")
    add(server, scope="quiet", id="2", text="A cat in the garden.")
    before = scores()
    for n in range(20):
        add(server, scope="loud", id=str(n), text="garden " * n)
    assert scores() == before


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"user": "x"}, "unknown field 'user'; known are scope, id, text, metadata"),
        ({"scope": ""}, "scope must be a text of 1 to 200 characters"),
        ({"id": 7}, "id must be a text"),
        ({"text": None}, "text must be a text"),
        ({"text": "\ud800"}, "text must be a text"),
        ({"metadata": []}, "metadata must be an object"),
    ],
)
def test_invalid_add_is_rejected(server: str, changed: dict[str, Any], problem: str) -> None:
    assert add(server, **changed) == (400, {"error": problem})


@pytest.mark.parametrize("limit", [0, 1001, "5", 5.0, True, None])
def test_invalid_limit_is_rejected(server: str, limit: Any) -> None:
    refused = ask(f"{server}/search", "POST", {"scope": "home", "query": "cat", "limit": limit})
    assert refused == (400, {"error": "limit must be a number from 1 to 1000"})


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/memories", b"{", 400),
        ("POST", "/memories", b"[" * 200_000, 400),
        ("POST", "/memories", b"[]", 400),
        ("GET", "/memories", None, 400),
        ("GET", "/memories?scope=a&scope=b", None, 400),
        ("GET", "/memories?scope=a&limit=1", None, 400),
        ("GET", "/memories/unknown?scope=a", None, 404),
        ("POST", "/health", b"{}", 404),
        ("GET", "/", None, 404),
    ],
)
def test_invalid_request_is_rejected(server: str, method: str, path: str, body: bytes | None, status: int) -> None:
    code, answer = ask(f"{server}{path}", method, body)
    assert code == status
    assert list(answer) == ["error"]


def test_too_large_body_is_rejected_unread(server: str) -> None:
    with closing(HTTPConnection(urlsplit(server).netloc)) as connection:
        connection.putrequest("POST", "/memories")
        connection.putheader("Content-Length", str(4 * 2**20 + 1))
        connection.endheaders()
        assert connection.getresponse().status == 413
