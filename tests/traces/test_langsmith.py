"""Our LangSmith client with a strict stand-in server, which tests/real checks with the client of the vendor."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from memorybench.core.errors import BadInput, Denied, Malformed, ServiceError, Transient
from memorybench.core.extraction import Trace, UnusableTrace
from memorybench.core.plans import Limits
from memorybench.engine.limiter import RateLimiter
from memorybench.engine.retries import RetryState, with_retries
from memorybench.engine.stopping import Stop
from memorybench.http.client import open_http
from memorybench.secrets.redaction import Redactor
from memorybench.traces.langsmith import LangSmith, RunQuery
from memorybench.traces.paths import OF_RUNS, TracePaths
from tests.doubles.stub import html, reply, status
from tests.standins.base import KEY, running
from tests.standins.langsmith import BEGAN, NOW, PROJECT, LangSmithServer

from .opening import RUN_PATHS, open_langsmith, read_all

NEWER, OLDER = "/api/v2/runs/query", "/runs/query"


def server_with_runs(count: int = 3) -> LangSmithServer:
    server = LangSmithServer()
    for number in range(count):
        server.add(
            inputs={"conversation": f"I sell {number} bikes."}, outputs={"output": {"stock": [f"{number} bikes"]}}
        )
    return server


def fetch_traces(server: LangSmithServer, **query: Any) -> list[Trace]:
    async def fetch() -> list[Trace]:
        async with open_langsmith(server, **query) as source:
            return await read_all(source)

    return asyncio.run(fetch())


def paths_called(server: LangSmithServer) -> list[str]:
    return [call.path for call in server.stub.calls]


@pytest.mark.parametrize("newer", [True, False], ids=["newer API", "older API"])
def test_both_apis_return_all_pages(newer: bool) -> None:
    with running(server_with_runs(250)) as server:
        server.newer = newer
        traces = fetch_traces(server)
    assert [trace.conversation[0].content for trace in traces] == [f"I sell {n} bikes." for n in range(250)]
    assert traces[7].output == {"stock": ["7 bikes"]}
    assert traces[7].at == NOW - timedelta(minutes=7)
    pages = [NEWER] * 3 if newer else [NEWER, OLDER, OLDER, OLDER]
    assert paths_called(server) == ["/sessions", *pages]


def test_both_apis_return_the_same_traces() -> None:
    with running(server_with_runs(120)) as server:
        newer = fetch_traces(server, limit=110)
        server.newer = False
        assert fetch_traces(server, limit=110) == newer
    assert len(newer) == 110


@pytest.mark.parametrize("code", [404, 405, 501])
def test_the_older_api_is_used_if_the_newer_one_is_missing(code: int) -> None:
    with running(server_with_runs()) as server:
        server.stub.always(status(code), path=NEWER)
        assert len(fetch_traces(server)) == 3


@pytest.mark.parametrize(("code", "error"), [(400, ServiceError), (403, Denied), (422, ServiceError), (500, Transient)])
def test_other_errors_do_not_select_the_older_api(code: int, error: type[ServiceError]) -> None:
    with running(server_with_runs()) as server:
        server.stub.always(status(code), path=NEWER)
        with pytest.raises(error) as raised:
            fetch_traces(server)
        assert raised.value.status == code
        assert OLDER not in paths_called(server)


def test_a_missing_later_page_is_an_error() -> None:
    with running(server_with_runs(150)) as server:
        server.stub.next(reply({"items": [{"id": "a"}], "next_cursor": "more"}), status(404), path=NEWER)
        with pytest.raises(ServiceError) as raised:
            fetch_traces(server)
        assert raised.value.status == 404
        assert OLDER not in paths_called(server)


def test_only_finished_runs_with_the_tag_since_the_date_are_fetched() -> None:
    with running(LangSmithServer()) as server:
        expected = server.add(inputs={"conversation": "a"}, outputs={"output": "a"}, age=timedelta(hours=5))
        server.add(inputs={"conversation": "b"}, outputs={"output": "b"}, tags=["chat"])
        server.add(inputs={"conversation": "c"}, status="pending")
        server.add(inputs={"conversation": "d"}, outputs={"output": "d"}, age=timedelta(hours=50))
        assert [trace.id for trace in fetch_traces(server, since=NOW - timedelta(hours=24))] == [expected]
        tagged = fetch_traces(server, tag='say "hi"')
    assert tagged == []


@pytest.mark.parametrize("newer", [True, False])
def test_without_since_all_runs_of_the_project_are_fetched(newer: bool) -> None:
    with running(LangSmithServer()) as server:
        server.newer = newer
        server.add(inputs={"conversation": "a"}, outputs={"output": "a"}, age=timedelta(days=60))
        assert len(fetch_traces(server)) == 1
        [body] = [call.json for call in server.stub.calls if call.path == (NEWER if newer else OLDER)]
    assert body["min_start_time" if newer else "start_time"] == BEGAN.isoformat()


def test_a_small_limit_requests_a_small_page() -> None:
    with running(server_with_runs(10)) as server:
        assert len(fetch_traces(server, limit=4)) == 4
        [body] = [call.json for call in server.stub.calls if call.path == NEWER]
    assert body["page_size"] == 4


def test_fields_that_a_path_names_are_requested() -> None:
    paths = TracePaths.of(OF_RUNS, {"existing": "$.extra.metadata.memory"})
    with running(LangSmithServer()) as server:
        memory = {"metadata": {"memory": {"name": "Ada"}}}
        server.add(inputs={"conversation": "a"}, outputs={"output": "a"}, extra=memory)
        [trace] = fetch_traces(server, paths=paths)
    assert trace.existing == {"name": "Ada"}


def test_a_url_with_the_older_prefix_works_for_both_apis() -> None:
    with running(server_with_runs(1)) as server:
        assert len(fetch_traces(server, path="/api/v1")) == 1
        assert paths_called(server) == ["/api/v1/sessions", NEWER]


def test_an_unknown_project_is_an_error() -> None:
    with running(server_with_runs()) as server, pytest.raises(BadInput):
        fetch_traces(server, project="nowhere")


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
def test_an_invalid_page_is_malformed(page: Any) -> None:
    with running(server_with_runs()) as server:
        server.stub.always(page, path=NEWER)
        with pytest.raises(Malformed):
            fetch_traces(server)


@pytest.mark.parametrize("newer", [True, False])
def test_pages_after_an_empty_page_are_read(newer: bool) -> None:
    with running(server_with_runs()) as server:
        server.newer = newer
        empty = {"items": [], "next_cursor": "more"} if newer else {"runs": [], "cursors": {"next": "more"}}
        last = {"items": [{"id": "a"}]} if newer else {"runs": [{"id": "a"}]}
        server.stub.next(reply(empty), reply(last), path=NEWER if newer else OLDER)
        assert [trace.id for trace in fetch_traces(server)] == ["a"]


def test_a_repeated_cursor_is_malformed() -> None:
    with running(server_with_runs()) as server:
        server.stub.always(reply({"items": [{"id": "a"}], "next_cursor": "again"}), path=NEWER)
        with pytest.raises(Malformed):
            fetch_traces(server)


INVALID: dict[str, dict[str, Any]] = {
    "missing inputs": {"inputs": None, "outputs": {"output": "x"}},
    "text as inputs": {"inputs": "hello", "outputs": {"output": "x"}},
    "missing conversation": {"inputs": {"question": "x"}, "outputs": {"output": "x"}},
    "the conversation is null": {"inputs": {"conversation": None}, "outputs": {"output": "x"}},
    "the conversation is a number": {"inputs": {"conversation": 7}, "outputs": {"output": "x"}},
    "the conversation is blank": {"inputs": {"conversation": "  "}, "outputs": {"output": "x"}},
    "empty messages": {"inputs": {"messages": []}, "outputs": {"output": "x"}},
    "a message without content": {"inputs": {"messages": [{"role": "user"}]}, "outputs": {"output": "x"}},
    "a message without role": {"inputs": {"messages": [{"content": "x"}]}, "outputs": {"output": "x"}},
    "a message that is a number": {"inputs": {"messages": [7]}, "outputs": {"output": "x"}},
    "content that is a number": {"inputs": {"messages": [{"role": "user", "content": 7}]}, "outputs": {"output": "x"}},
    "missing outputs": {"inputs": {"conversation": "x"}, "outputs": None},
    "other outputs": {"inputs": {"conversation": "x"}, "outputs": {"answer": "x"}},
}


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_run_is_unusable_and_the_others_are_read(name: str) -> None:
    with running(server_with_runs(2)) as server:
        id = server.add(**INVALID[name])
        traces = fetch_traces(server)
    [unusable] = [trace for trace in traces if isinstance(trace, UnusableTrace)]
    assert unusable.id == id
    assert unusable.problem.startswith(f"run {id}: $.")
    assert len(traces) == 3


def test_an_unusable_run_includes_its_error() -> None:
    with running(LangSmithServer()) as server:
        server.add(inputs={"conversation": "x"}, status="error", error="rate limit")
        [unusable] = fetch_traces(server)
    assert isinstance(unusable, UnusableTrace)
    assert "rate limit" in unusable.problem


def post_feedback(server: LangSmithServer, *feedback: tuple[str, dict[str, float]]) -> None:
    async def post() -> None:
        async with open_langsmith(server) as sink:
            for run, scores in feedback:
                for name, value in scores.items():
                    await sink.post(run, name, value, {"matched": 1, "hallucinated": 1}, "2 of 3 facts")

    asyncio.run(post())


def test_feedback_contains_score_counts_and_comment() -> None:
    with running(server_with_runs(1)) as server:
        run = server.runs[0]["id"]
        post_feedback(server, (run, {"precision": 0.5, "recall": 1.0, "f1": 2 / 3}))
        feedback = {entry["key"]: entry for entry in server.feedback.values()}
    assert {key: entry["score"] for key, entry in feedback.items()} == {"precision": 0.5, "recall": 1.0, "f1": 2 / 3}
    assert feedback["f1"]["extra"] == {"matched": 1, "hallucinated": 1}
    assert feedback["f1"]["comment"] == "2 of 3 facts"
    assert feedback["f1"]["session_id"] == server.project
    assert feedback["f1"]["run_id"] == run


def test_repeated_feedback_replaces_the_first() -> None:
    with running(server_with_runs(2)) as server:
        first, second = (run["id"] for run in server.runs)
        post_feedback(server, (first, {"f1": 0.5}), (second, {"f1": 0.5}))
        post_feedback(server, (first, {"f1": 0.75}))
        assert len(server.feedback) == 2
        assert len(server.repeated) == 1
        assert {entry["run_id"]: entry["score"] for entry in server.feedback.values()} == {first: 0.75, second: 0.5}
        assert all(UUID(id).version == 5 for id in server.feedback)


def test_a_conflict_with_existing_feedback_is_ignored() -> None:
    with running(server_with_runs(1)) as server:
        server.stub.next(status(409), path="/feedback")
        post_feedback(server, (server.runs[0]["id"], {"f1": 0.5}))
    assert paths_called(server).count("/feedback") == 1, "not sent again"


def test_feedback_on_an_invalid_run_id_is_not_sent() -> None:
    with running(server_with_runs(1)) as server, pytest.raises(ServiceError):
        post_feedback(server, ("line-7", {"f1": 0.5}))
    assert "/feedback" not in paths_called(server)


def test_errors_do_not_show_the_key() -> None:
    with running(server_with_runs()) as server:
        server.stub.always(status(403, said=f"{KEY} may not"), path="/sessions")
        with pytest.raises(Denied) as denied:
            fetch_traces(server)
    assert KEY not in str(denied.value)


def test_a_request_is_retried_after_status_429() -> None:
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
            return await read_all(source), state

    with running(server_with_runs(5)) as server:
        server.stub.next(status(429, headers={"Retry-After": "0"}), path=NEWER)
        traces, state = asyncio.run(fetch(server))
    assert len(traces) == 5
    assert state.tries == 3, "the project, the page, the page again"
