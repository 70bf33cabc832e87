"""Faults of a service and the outcome of a run. Numbers in brackets are those of the fault catalogue."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from aiohttp import web

from tests.doubles.stub import Behaviour, Call, Stub, flood, html, redirect, reply, reset, status
from tests.engine.workload import report
from tests.providers.http_bench import SESSIONS, bench
from tests.providers.http_memory import CONFIG, KEY, MemoryService

ROOT = Path(__file__).parents[2]


@pytest.fixture
def service() -> MemoryService:
    return MemoryService()


@pytest.fixture
def stub(service: MemoryService) -> Iterator[Stub]:
    with Stub() as server:
        server.always(service.behave)
        yield server


def adds(stub: Stub) -> list[Call]:
    return [call for call in stub.calls if call.path.endswith("/documents") and call.method == "POST"]


def searches(stub: Stub) -> list[Call]:
    return [call for call in stub.calls if call.path.endswith("/search")]


def at_path(ending: str, behaviour: Behaviour, otherwise: Behaviour) -> Behaviour:
    async def behave(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        chosen = behaviour if call.path.endswith(ending) and call.method != "GET" else otherwise
        return await chosen(request, call)

    return behave


def test_working_service_is_scored_and_cleared(stub: Stub, service: MemoryService, tmp_path: Path) -> None:
    ended = bench(tmp_path, stub.url)
    assert ended.counts == {"scored": 2}
    assert [outcome.score("recall@1") for outcome in ended.outcomes] == [1.0, 1.0]
    assert service.spaces == {}
    assert ended.notes == []


class Watchful(MemoryService):
    """Detects a search before all documents are indexed, and a document with two ids."""

    def __init__(self) -> None:
        super().__init__()
        self.complaints: list[str] = []

    async def behave(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        if call.path.endswith("/search"):
            for space in self.spaces.values():
                if f"/{space.id}/" in call.path and len(space.found) != SESSIONS:
                    self.complaints.append(f"{len(space.found)} of {SESSIONS} were found when it was searched")
                if len({one["text"] for one in space.documents.values()}) != len(space.documents):
                    self.complaints.append("a session is there twice")
        return await super().behave(request, call)


def run_in_child(folder: Path, url: str, kill_at: int) -> int:
    command = [sys.executable, "-m", "tests.providers.http_bench", str(folder), url, str(kill_at)]
    child = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": "src"}, capture_output=True, text=True)
    assert child.returncode in (0, -9), child.stderr
    return child.returncode


@pytest.mark.slow
@pytest.mark.parametrize("kill_at", [12, *(pytest.param(n, marks=pytest.mark.slow) for n in (5, 19))])
def test_run_killed_while_adding_resumes_with_the_same_documents(tmp_path: Path, kill_at: int) -> None:
    """[4]"""
    with Stub() as stub:
        stub.always(Watchful().behave)
        bench(tmp_path / "whole", stub.url)
        whole = report(tmp_path / "whole", "r1").replace(stub.url, "URL")
    with Stub() as stub:
        service = Watchful()
        stub.always(service.behave)
        folder = tmp_path / "killed"
        assert run_in_child(folder, stub.url, kill_at) == -9
        seen = {call.json["id"] for call in adds(stub)}
        ended = bench(folder, stub.url)
        assert ended.counts == {"scored": 2}, ended.failures
        assert service.complaints == []
        ids = [call.json["id"] for call in adds(stub)]
        assert seen <= set(ids)
        assert len(set(ids)) == 2 * SESSIONS
        assert _outcomes(report(folder, "r1")) == _outcomes(whole)
        assert service.spaces == {}


@pytest.mark.slow
def test_run_killed_while_clearing_clears_when_it_is_resumed(
    stub: Stub, service: MemoryService, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "tests.providers.http_bench", str(tmp_path), stub.url, "0"]
    child = subprocess.Popen(command, cwd=ROOT, env={"PYTHONPATH": "src"})

    async def behave(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        if call.method == "DELETE":
            child.kill()
        return await (status(500) if call.method == "DELETE" else service.behave)(request, call)

    stub.always(behave)
    assert child.wait() == -9
    assert service.spaces
    stub.always(service.behave)
    ended = bench(tmp_path, stub.url)
    assert ended.counts == {"scored": 2}
    assert service.spaces == {}


def test_add_without_a_reply_is_cleared(stub: Stub, service: MemoryService, tmp_path: Path) -> None:
    async def behave(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        reply = await service.behave(request, call)
        is_add = call.path.endswith("/documents") and call.method == "POST"
        return await reset()(request, call) if is_add else reply

    stub.always(behave)
    ended = bench(tmp_path, stub.url, haystacks=1)
    assert ended.counts == {"failed": 1}
    assert service.spaces == {}


def _outcomes(report_json: str) -> object:
    """Return the outcomes without parts that contain the server's port."""
    return [
        {"case": one["trial"]["case_id"], "status": one["status"], "scores": one["scores"], "shown": one["shown"]}
        for one in json.loads(report_json)["outcomes"]
    ]


def test_failure_after_acceptance_is_failed_and_not_scored_0(
    stub: Stub, service: MemoryService, tmp_path: Path
) -> None:
    """[5]"""
    service.failing.add("user: The cat is called h1o.")
    ended = bench(tmp_path, stub.url)
    assert ended.counts == {"scored": 1, "failed": 1}
    [failure] = ended.failures
    assert '"lost"' in failure
    assert len(searches(stub)) == 1


def test_a_service_that_is_never_ready_is_failed(stub: Stub, service: MemoryService, tmp_path: Path) -> None:
    """[6]"""
    never = CONFIG.replace("done: [done], failed: [lost]", "done: [never], timeout: 30")
    ended = bench(tmp_path, stub.url, never)
    assert ended.counts == {"failed": 2}
    assert all("timed out" in failure for failure in ended.failures)
    assert searches(stub) == []
    assert [score for outcome in ended.outcomes for score in outcome.scores] == []


def limited(hint: str, times: list[float], otherwise: Behaviour) -> Behaviour:
    """Answer the first add with 429, and record the time of every add."""

    async def behave(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        times.append(time.monotonic())
        first = len(times) == 1
        return await (status(429, headers={"Retry-After": hint}) if first else otherwise)(request, call)

    return at_path("/documents", behave, otherwise)


@pytest.mark.parametrize(
    ("hint", "seconds"),
    [
        ("1", 1.0),
        ("0", 0.0),
        ("-1", 0.0),
        ("soon", 0.0),
        ("Wed, 01 Jan 2020 00:00:00 GMT", 0.0),
    ],
)
def test_no_request_is_sent_before_retry_after(
    stub: Stub, service: MemoryService, tmp_path: Path, hint: str, seconds: float
) -> None:
    """[8]"""
    times: list[float] = []
    stub.always(limited(hint, times, service.behave))
    ended = bench(tmp_path, stub.url, haystacks=1)
    assert ended.counts == {"scored": 1}
    assert times[1] - times[0] >= seconds
    assert len(times) == SESSIONS + 1


def test_retry_after_beyond_the_limit_fails_at_once(stub: Stub, service: MemoryService, tmp_path: Path) -> None:
    """[8]"""
    stub.always(limited("1000000000", [], service.behave))
    ended = bench(tmp_path, stub.url, haystacks=1)
    assert ended.counts == {"failed": 1}
    assert len(adds(stub)) == 1


def test_failing_add_is_retried_as_configured(stub: Stub, service: MemoryService, tmp_path: Path) -> None:
    """[8, 10]"""
    stub.always(at_path("/documents", status(503), service.behave))
    ended = bench(tmp_path, stub.url, CONFIG.replace("retryDelayMs: 0", "retryDelayMs: 0, maxRetries: 2"), haystacks=1)
    assert ended.counts == {"failed": 1}
    assert len(adds(stub)) == 3
    assert searches(stub) == []


@pytest.mark.parametrize("code", [401, 402, 403])
def test_denied_requests_are_not_repeated(stub: Stub, service: MemoryService, tmp_path: Path, code: int) -> None:
    """[9]"""
    stub.always(at_path("/documents", status(code), service.behave))
    ended = bench(tmp_path, stub.url, haystacks=12, concurrency=3)
    assert ended.counts == {"failed": 12}
    assert 1 <= len(adds(stub)) <= 3
    assert searches(stub) == []


def test_lost_reply_is_reported_and_nothing_is_stored_twice(stub: Stub, service: MemoryService, tmp_path: Path) -> None:
    """[11]"""
    lost: list[str] = []
    held: list[int] = []

    async def done_but_silent(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        answer = await service.behave(request, call)
        if not lost:
            lost.append(call.json["id"])
            return await reset()(request, call)
        held.extend(len(space.documents) for space in service.spaces.values())
        return answer

    stub.always(at_path("/documents", done_but_silent, service.behave))
    ended = bench(tmp_path, stub.url, haystacks=1)
    assert ended.counts == {"scored": 1}
    assert ended.charged_twice == 1
    assert [call.json["id"] for call in adds(stub)].count(lost[0]) == 2
    assert max(held) == SESSIONS


BAD_REPLIES: dict[str, Behaviour] = {
    "html": html(),
    "null": reply({"hits": None}),
    "object": reply({"hits": {"text": "a"}}),
    "missing": reply({}),
    "score": reply({"hits": [{"text": "a", "relevance": "high"}]}),
    "endless": flood(2**30),
    "redirect": redirect("https://elsewhere.example.com/search", code=307),
}


@pytest.mark.parametrize("name", BAD_REPLIES)
def test_invalid_reply_is_a_failure_and_not_a_score(
    stub: Stub, service: MemoryService, tmp_path: Path, name: str
) -> None:
    """[12, and the table of bad HTTP replies]"""
    stub.always(at_path("/search", BAD_REPLIES[name], service.behave))
    ended = bench(tmp_path, stub.url, haystacks=1)
    assert ended.counts == {"failed": 1}
    assert ended.outcomes[0].scores == ()
    assert len(searches(stub)) == 1


def test_failed_clear_is_reported_and_affects_no_other_run(stub: Stub, service: MemoryService, tmp_path: Path) -> None:
    """[19]"""

    async def behave(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        return await (status(500) if call.method == "DELETE" else service.behave)(request, call)

    stub.always(behave)
    first = bench(tmp_path, stub.url)
    assert first.counts == {"scored": 2}
    assert [kind for kind, _ in first.notes] == ["leaked scope"] * 2
    assert len(service.spaces) == 2
    stub.always(service.behave)
    second = bench(tmp_path, stub.url, run="r2")
    assert [outcome.scores for outcome in second.outcomes] == [outcome.scores for outcome in first.outcomes]
    assert second.notes == []


def test_haystacks_are_isolated(stub: Stub, service: MemoryService, tmp_path: Path) -> None:
    """[18] Each haystack names its own cat; the question is always the same."""
    ended = bench(tmp_path, stub.url, haystacks=6)
    for n, outcome in enumerate(ended.outcomes):
        assert f"h{n}o" in outcome.shown.context
        assert not any(f"h{other}o" in outcome.shown.context for other in range(6) if other != n)


def test_key_is_stored_nowhere(stub: Stub, service: MemoryService, tmp_path: Path) -> None:
    """A service that returns its input in errors, ids and memories."""
    echo = f"you sent Bearer {KEY} and {quote(KEY)}"
    hit = {"text": echo, "id": KEY, "relevance": 1, "metadata": {"documentId": KEY}}
    stub.always(at_path("/search", reply({"hits": [hit]}), service.behave))
    bench(tmp_path, stub.url)
    stub.always(at_path("/documents", reply({"error": echo}, code=400, headers={"X-Echo": KEY}), service.behave))
    bench(tmp_path, stub.url, run="r2")
    stub.always(at_path("/documents", reply({"job": KEY}), service.behave))
    bench(tmp_path, stub.url, run="r3")
    disguises = [KEY.encode(), KEY.encode().hex().encode(), base64.b64encode(KEY.encode())[:-2], repr(KEY).encode()]
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert files
    for file in files:
        content = file.read_bytes()
        assert not any(disguise in content for disguise in disguises), file.name
