"""Our client of LangSmith against a strict stand-in, which the vendor's own client has judged (tests/real)."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from memorybench.core.errors import BadInput, Denied, Malformed, ServiceError, Transient
from memorybench.core.extraction import Trace
from memorybench.core.plans import Limits
from memorybench.engine.limiter import RateLimiter
from memorybench.engine.retries import RetryState, with_retries
from memorybench.engine.stopping import Stop
from memorybench.http.client import open_http
from memorybench.secrets.redaction import Redactor
from memorybench.traces.langsmith import LangSmith, RunQuery
from memorybench.traces.paths import OF_RUNS, TracePaths, UnusableTrace
from tests.doubles.stub import html, reply, status
from tests.standins.base import KEY, running
from tests.standins.langsmith import BEGAN, NOW, PROJECT, LangSmithServer

from .opening import RUN_PATHS, gathered, opened

NEWER, OLDER = "/api/v2/runs/query", "/runs/query"


def served(count: int = 3) -> LangSmithServer:
    server = LangSmithServer()
    for number in range(count):
        server.add(
            inputs={"conversation": f"I sell {number} bikes."}, outputs={"output": {"stock": [f"{number} bikes"]}}
        )
    return server


def fetched(server: LangSmithServer, **query: Any) -> list[Trace]:
    async def fetch() -> list[Trace]:
        async with opened(server, **query) as source:
            return await gathered(source)

    return asyncio.run(fetch())


def asked(server: LangSmithServer) -> list[str]:
    return [call.path for call in server.stub.calls]


@pytest.mark.parametrize("newer", [True, False], ids=["the newer query", "the older query"])
def test_runs_come_page_by_page_from_either_api(newer: bool) -> None:
    with running(served(250)) as server:
        server.newer = newer
        traces = fetched(server)
    assert [trace.conversation[0].content for trace in traces] == [f"I sell {n} bikes." for n in range(250)]
    assert traces[7].output == {"stock": ["7 bikes"]}
    assert traces[7].at == NOW - timedelta(minutes=7)
    pages = [NEWER] * 3 if newer else [NEWER, OLDER, OLDER, OLDER]
    assert asked(server) == ["/sessions", *pages]


def test_both_apis_give_the_same_traces() -> None:
    with running(served(120)) as server:
        newer = fetched(server, limit=110)
        server.newer = False
        assert fetched(server, limit=110) == newer
    assert len(newer) == 110


@pytest.mark.parametrize("code", [404, 405, 501])
def test_an_installation_without_the_newer_query_is_asked_by_the_older(code: int) -> None:
    with running(served()) as server:
        server.stub.always(status(code), path=NEWER)
        assert len(fetched(server)) == 3


@pytest.mark.parametrize(("code", "error"), [(400, ServiceError), (403, Denied), (422, ServiceError), (500, Transient)])
def test_any_other_refusal_is_not_taken_for_an_old_installation(code: int, error: type[Exception]) -> None:
    with running(served()) as server:
        server.stub.always(status(code), path=NEWER)
        with pytest.raises(error, match=f"HTTP {code}"):
            fetched(server)
        assert OLDER not in asked(server)


def test_a_page_that_is_gone_midway_is_an_error_and_no_reason_to_begin_anew() -> None:
    with running(served(150)) as server:
        server.stub.next(reply({"items": [{"id": "a"}], "next_cursor": "more"}), status(404), path=NEWER)
        with pytest.raises(ServiceError, match="404"):
            fetched(server)
        assert OLDER not in asked(server)


def test_only_finished_runs_with_the_tag_and_since_then_are_fetched() -> None:
    with running(LangSmithServer()) as server:
        kept = server.add(inputs={"conversation": "a"}, outputs={"output": "a"}, age=timedelta(hours=5))
        server.add(inputs={"conversation": "b"}, outputs={"output": "b"}, tags=["chat"])
        server.add(inputs={"conversation": "c"}, status="pending")
        server.add(inputs={"conversation": "d"}, outputs={"output": "d"}, age=timedelta(hours=50))
        assert [trace.id for trace in fetched(server, since=NOW - timedelta(hours=24))] == [kept]
        tagged = fetched(server, tag='say "hi"')
    assert tagged == []


@pytest.mark.parametrize("newer", [True, False])
def test_without_since_the_whole_project_is_meant_and_not_the_last_day(newer: bool) -> None:
    with running(LangSmithServer()) as server:
        server.newer = newer
        server.add(inputs={"conversation": "a"}, outputs={"output": "a"}, age=timedelta(days=60))
        assert len(fetched(server)) == 1
        [body] = [call.json for call in server.stub.calls if call.path == (NEWER if newer else OLDER)]
    assert body["min_start_time" if newer else "start_time"] == BEGAN.isoformat()


def test_a_small_limit_asks_for_a_small_page() -> None:
    with running(served(10)) as server:
        assert len(fetched(server, limit=4)) == 4
        [body] = [call.json for call in server.stub.calls if call.path == NEWER]
    assert body["page_size"] == 4


def test_fields_that_a_path_names_are_asked_for() -> None:
    paths = TracePaths.of(OF_RUNS, {"existing": "$.extra.metadata.memory"})
    with running(LangSmithServer()) as server:
        memory = {"metadata": {"memory": {"name": "Ada"}}}
        server.add(inputs={"conversation": "a"}, outputs={"output": "a"}, extra=memory)
        [trace] = fetched(server, paths=paths)
    assert trace.existing == {"name": "Ada"}


def test_an_address_with_the_older_prefix_reaches_both_apis() -> None:
    with running(served(1)) as server:
        assert len(fetched(server, path="/api/v1")) == 1
        assert asked(server) == ["/api/v1/sessions", NEWER]


def test_an_unknown_project_is_named() -> None:
    with running(served()) as server, pytest.raises(BadInput):
        fetched(server, project="nowhere")


@pytest.mark.parametrize(
    "page",
    [
        reply([]),
        reply({"items": None}),
        reply({"items": {}}),
        reply({"items": ["run"]}),
        reply({"items": [{"name": "no id"}]}),
        reply({"items": [{"id": 7}]}),
        reply({"items": [], "next_cursor": 7}),
        html(),
    ],
)
def test_a_page_that_is_none_is_malformed(page: Any) -> None:
    with running(served()) as server:
        server.stub.always(page, path=NEWER)
        with pytest.raises(Malformed):
            fetched(server)


@pytest.mark.parametrize("newer", [True, False])
def test_an_empty_page_with_others_after_it_is_not_the_end(newer: bool) -> None:
    with running(served()) as server:
        server.newer = newer
        empty = {"items": [], "next_cursor": "more"} if newer else {"runs": [], "cursors": {"next": "more"}}
        last = {"items": [{"id": "a"}]} if newer else {"runs": [{"id": "a"}]}
        server.stub.next(reply(empty), reply(last), path=NEWER if newer else OLDER)
        assert [trace.id for trace in fetched(server)] == ["a"]


def test_pages_that_go_round_in_a_circle_end() -> None:
    with running(served()) as server:
        server.stub.always(reply({"items": [{"id": "a"}], "next_cursor": "again"}), path=NEWER)
        with pytest.raises(Malformed):
            fetched(server)


BROKEN: dict[str, dict[str, Any]] = {
    "no inputs": {"inputs": None, "outputs": {"output": "x"}},
    "inputs are text": {"inputs": "hello", "outputs": {"output": "x"}},
    "no conversation": {"inputs": {"question": "x"}, "outputs": {"output": "x"}},
    "the conversation is null": {"inputs": {"conversation": None}, "outputs": {"output": "x"}},
    "the conversation is a number": {"inputs": {"conversation": 7}, "outputs": {"output": "x"}},
    "the conversation is blank": {"inputs": {"conversation": "  "}, "outputs": {"output": "x"}},
    "no messages": {"inputs": {"messages": []}, "outputs": {"output": "x"}},
    "a message without content": {"inputs": {"messages": [{"role": "user"}]}, "outputs": {"output": "x"}},
    "a message without role": {"inputs": {"messages": [{"content": "x"}]}, "outputs": {"output": "x"}},
    "a message that is a number": {"inputs": {"messages": [7]}, "outputs": {"output": "x"}},
    "content that is a number": {"inputs": {"messages": [{"role": "user", "content": 7}]}, "outputs": {"output": "x"}},
    "no outputs": {"inputs": {"conversation": "x"}, "outputs": None},
    "other outputs": {"inputs": {"conversation": "x"}, "outputs": {"answer": "x"}},
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_run_is_named_with_its_path_and_the_others_go_on(broken: str) -> None:
    with running(served(2)) as server:
        id = server.add(**BROKEN[broken])
        traces = fetched(server)
    [failed] = [trace for trace in traces if isinstance(trace, UnusableTrace)]
    assert failed.id == id
    assert failed.problem.startswith(f"run {id}: $.")
    assert len(traces) == 3


def test_a_run_that_failed_says_so() -> None:
    with running(LangSmithServer()) as server:
        server.add(inputs={"conversation": "x"}, status="error", error="rate limit")
        [failed] = fetched(server)
    assert isinstance(failed, UnusableTrace)
    assert "rate limit" in failed.problem


def posted(server: LangSmithServer, *feedback: tuple[str, dict[str, float]]) -> None:
    async def post() -> None:
        async with opened(server) as sink:
            for run, scores in feedback:
                await sink.post(run, scores, "2 of 3 facts")

    asyncio.run(post())


def test_feedback_carries_score_counts_and_comment() -> None:
    with running(served(1)) as server:
        run = server.runs[0]["id"]
        posted(server, (run, {"precision": 0.5, "recall": 1.0, "f1": 2 / 3, "matched": 1, "hallucinated": 1}))
        given = {entry["key"]: entry for entry in server.feedback.values()}
    assert {key: entry["score"] for key, entry in given.items()} == {"precision": 0.5, "recall": 1.0, "f1": 2 / 3}
    assert given["f1"]["extra"] == {"matched": 1, "hallucinated": 1}
    assert given["f1"]["comment"] == "2 of 3 facts"
    assert given["f1"]["session_id"] == server.project
    assert given["f1"]["run_id"] == run


def test_a_score_that_is_not_defined_is_not_posted() -> None:
    with running(served(1)) as server:
        posted(server, (server.runs[0]["id"], {"recall": 0.0, "matched": 0}))
        assert [entry["key"] for entry in server.feedback.values()] == ["recall"]


def test_feedback_posted_again_takes_its_own_place() -> None:
    with running(served(2)) as server:
        first, second = (run["id"] for run in server.runs)
        posted(server, (first, {"f1": 0.5}), (second, {"f1": 0.5}))
        posted(server, (first, {"f1": 0.75}))
        assert len(server.feedback) == 2
        assert len(server.repeated) == 1
        assert {entry["run_id"]: entry["score"] for entry in server.feedback.values()} == {first: 0.75, second: 0.5}
        assert all(UUID(id).version == 5 for id in server.feedback)


def test_feedback_that_the_server_has_already_is_no_failure() -> None:
    with running(served(1)) as server:
        server.stub.next(status(409), path="/feedback")
        posted(server, (server.runs[0]["id"], {"f1": 0.5}))
    assert asked(server).count("/feedback") == 1, "told once, refused as known, and not told again"


def test_feedback_for_an_id_that_is_no_run_is_refused_before_it_is_sent() -> None:
    with running(served(1)) as server, pytest.raises(ServiceError):
        posted(server, ("line-7", {"f1": 0.5}))
    assert "/feedback" not in asked(server)


def test_the_key_stands_in_no_error() -> None:
    with running(served()) as server:
        server.stub.always(status(403, said=f"{KEY} may not"), path="/sessions")
        with pytest.raises(Denied) as denied:
            fetched(server)
    assert KEY not in str(denied.value)


def test_a_crowded_service_is_asked_again_when_it_says_so() -> None:
    async def fetch(server: LangSmithServer) -> tuple[list[Trace], RetryState]:
        limiter, state = RateLimiter("LangSmith", Limits(), Stop()), RetryState()
        async with open_http(Redactor([KEY])) as http:
            source = LangSmith(
                http,
                KEY,
                RunQuery(PROJECT),
                RUN_PATHS,
                url=server.url,
                attempt=lambda ask: with_retries(ask, limiter, state),
            )
            return await gathered(source), state

    with running(served(5)) as server:
        server.stub.next(status(429, headers={"Retry-After": "0"}), path=NEWER)
        traces, state = asyncio.run(fetch(server))
    assert len(traces) == 5
    assert state.tries == 3, "the project, the page, the page again"
